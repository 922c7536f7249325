"""Quantities are exact, and are written back as the API server writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import quantity

CANONICAL = {
    "0": "0",
    "0Gi": "0",
    "1": "1",
    "+80": "80",
    "1.0": "1",
    "1.": "1",
    ".5": "500m",
    "0.5": "500m",
    "1000m": "1",
    "1500m": "1500m",
    "1000": "1k",
    "12.3k": "12300",
    "1024": "1024",
    "1Ki": "1Ki",
    "1024Mi": "1Gi",
    "1.5Gi": "1536Mi",
    "1025Ki": "1025Ki",
    "-1Ki": "-1Ki",
    "0.3Mi": "314572800m",
    ".001Ki": "1024m",
    "0.5Ki": "512",
    "1e3": "1e3",
    "1E3": "1e3",
    "12e6": "12e6",
    "100e-3": "100e-3",
    "1E": "1E",
    "0.0000000001": "1n",
    "5.5n": "6n",
    "9223372036854775808": "9223372036854775807",
}


@pytest.mark.parametrize(("written", "stored"), CANONICAL.items())
def test_canonical_form(written: str, stored: str) -> None:
    """The largest suffix that leaves an integer, of the family that was written."""
    assert quantity.canonical(written) == stored


@pytest.mark.parametrize(
    ("written", "milli", "units"),
    [("500m", 500, 1), ("2", 2000, 2), ("1Ki", 1_024_000, 1024), ("1n", 1, 1), ("-1.5", -1500, -2), (4, 4000, 4)],
)
def test_integers_round_away_from_zero(written: quantity.Quantity, milli: int, units: int) -> None:
    """A request never counts for less than it says; bare numbers of manifests are quantities too."""
    assert (quantity.milli(written), quantity.units(written)) == (milli, units)


@pytest.mark.parametrize(
    "text", ["", "Ki", "1 Gi", "1.1.1", "1mi", "e3", "1e3Ki", ".", "five", "0x10", "1,5", "--1", "1KB"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """The message names the text and what is allowed."""
    with pytest.raises(quantity.QuantityError, match="cannot be read: expected a number"):
        quantity.exact(text)


@given(st.integers(-(2**62), 2**62))
def test_integers_survive_every_form(amount: int) -> None:
    """Writing and reading back loses nothing."""
    assert quantity.units(quantity.from_milli(1000 * amount)) == amount
    assert quantity.units(quantity.binary(amount)) == amount
    assert quantity.milli(quantity.from_milli(amount // 1000)) == amount // 1000


@given(st.decimals(-(10**9), 10**9, places=6), st.sampled_from(["", "m", "k", "M", "Ki", "Gi", "e2", "e-2"]))
def test_canonical_keeps_the_value_and_is_stable(number: object, suffix: str) -> None:
    """The canonical form means the same, and is its own canonical form."""
    text = f"{number}{suffix}"
    once = quantity.canonical(text)
    assert quantity.exact(once) == quantity.exact(text)
    assert quantity.canonical(once) == once


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_sums_are_exact(left: int, right: int) -> None:
    """Lists add up name by name; a sum keeps the suffix family of its first part."""
    total = quantity.add({"memory": quantity.binary(left)}, {"memory": quantity.binary(right), "cpu": "1"})
    assert quantity.exact(total["memory"]) == Fraction(left + right)
    assert total["cpu"] == "1"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1e999999999", "9223372036854775807"),
        ("-1e999999999", "-9223372036854775807"),
        ("1e-999999999", "1n"),
        ("0e9999", "0"),
    ],
)
def test_a_large_exponent_stopped_whoever_read_it(written: str, stored: str) -> None:
    """Powers beyond what Kubernetes holds are capped or rounded without being computed."""
    assert quantity.exact(written) == quantity.exact(stored)


@pytest.mark.parametrize("text", ["9" * 5000, "1" * 257, "1\n", "\u0661"])
def test_what_is_long_or_has_other_digits_is_refused(text: str) -> None:
    """Neither a line end nor digits of other scripts belong to a quantity; long ones take long to read."""
    with pytest.raises(quantity.QuantityError):
        quantity.exact(text)

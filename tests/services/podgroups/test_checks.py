"""What the PodGroup webhook refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spinney.api.kai import PodGroupSpec
from spinney.api.meta import Json, convert
from spinney.services.podgroups import podgroup_checks


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"minMember": 1, "minSubGroup": 1}, "exclude each other"),
        ({"subGroups": [{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}]}, "listed twice"),
        ({"subGroups": [{"name": "a", "minMember": 1, "parent": "b"}]}, "parent b is not a subgroup"),
        ({"subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}, "its own ancestor"),
        ({"subGroups": [{"name": "a", "minSubGroup": 1}]}, "minSubGroup must not be set"),
        ({"subGroups": [{"name": "a"}]}, "minMember must be set"),
        (
            {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1, "parent": "a"}]},
            "instead of minMember",
        ),
    ],
)
def test_groups_that_are_refused(spec: Json, says: str) -> None:
    """Each broken tree is refused by name."""
    errors, _ = podgroup_checks.check(convert(PodGroupSpec, spec), creating=True)
    assert says in "; ".join(errors)


def test_an_old_group_with_a_minimum_on_a_parent_stays_editable() -> None:
    """On update that is only a warning."""
    spec = {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1, "parent": "a"}]}
    errors, warnings = podgroup_checks.check(convert(PodGroupSpec, spec), creating=False)
    assert (errors, len(warnings)) == ([], 1)


@pytest.mark.parametrize("parents", [lambda n: f"s{n - 1}" if n else "", lambda n: f"s{(n + 1) % 8000}"])
def test_a_chain_of_thousands_of_subgroups_stopped_the_webhook(parents: Callable[[int], str]) -> None:
    """It is refused, in time linear in its length."""
    subgroups = [{"name": f"s{n}", "parent": parents(n), "minSubGroup": 1} for n in range(8000)]
    errors, _ = podgroup_checks.check(convert(PodGroupSpec, {"subGroups": subgroups}), creating=True)
    assert errors[0] in (
        "the tree of subgroups has 8000 levels, more than 32",
        "subgroup s0 is its own ancestor",
    )


def test_a_subgroup_below_a_circle() -> None:
    """Only the members of the circle are named."""
    tree = {"a": "b", "b": "c", "c": "b", "d": "a"}
    subgroups = [{"name": name, "parent": parent} for name, parent in tree.items()]
    errors, _ = podgroup_checks.check(convert(PodGroupSpec, {"subGroups": subgroups}), creating=True)
    assert errors == ["subgroup b is its own ancestor", "subgroup c is its own ancestor"]


def test_durations_that_cannot_be_read_are_refused() -> None:
    """They were stored without a word, and counted as not set."""
    spec = convert(PodGroupSpec, {"preemptionDelay": "2 minutes", "stalenessGracePeriod": "5"})
    errors = podgroup_checks.duration_errors(spec, {})
    assert [error.split(" cannot")[0] for error in errors] == [
        "spec.preemptionDelay: duration '2 minutes'",
        "spec.stalenessGracePeriod: duration '5'",
    ]
    stored: Json = {"preemptionDelay": "2 minutes", "stalenessGracePeriod": "5"}
    assert podgroup_checks.duration_errors(spec, stored) == []


def test_only_the_grace_period_may_be_below_zero() -> None:
    """A negative one means never."""
    spec = convert(PodGroupSpec, {"preemptionDelay": "-2m", "stalenessGracePeriod": "-1s"})
    assert podgroup_checks.duration_errors(spec, {}) == ["spec.preemptionDelay: -2m is below 0s; write 0s or more"]

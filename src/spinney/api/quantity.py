"""Kubernetes quantities, exactly: `500m`, `1.5Gi`, `1e3` to integers and back in canonical form."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

# On the wire a quantity is a string; people also write bare numbers in manifests.
Quantity = str | int | float
ResourceList = dict[str, Quantity]

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
# From the largest power of ten to the smallest.
_SUFFIXES = {power: suffix for suffix, power in reversed(_DECIMAL.items())}
_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII)
_LONGEST = 256
# Kubernetes holds quantities as 64-bit numbers; what is larger or finer is capped or rounded up.
_LARGEST = (1 << 63) - 1


class QuantityError(ValueError):
    """Text that is not a quantity."""


@lru_cache(maxsize=65536)
def exact(quantity: Quantity) -> Fraction:
    """The exact value, finer than a nano rounded up and larger than 2⁶³-1 capped, as Kubernetes does."""
    text = str(quantity)
    if len(text) > _LONGEST:
        raise QuantityError(f"quantity {text[:16]!r}… has {len(text)} characters, more than {_LONGEST}")
    match = _FORM.fullmatch(text)
    if not match:
        raise QuantityError(
            f"quantity {text!r} cannot be read: expected a number with an optional suffix out of "
            "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent (500m, 1.5Gi, 2e3)"
        )
    value = Fraction(match[1]) * _multiplier(match[2] or "")
    nanos = Fraction(_up(value * 10**9), 10**9)
    return max(min(nanos, Fraction(_LARGEST)), Fraction(-_LARGEST))


def _multiplier(suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    # With at most 256 digits in front, larger powers are capped anyway, and smaller ones are rounded up.
    return Fraction(10) ** max(-2 * _LONGEST, min(power, 2 * _LONGEST))


@lru_cache(maxsize=65536)
def milli(quantity: Quantity) -> int:
    """Thousandths, rounded away from zero: `500m` → 500, `2` → 2000."""
    return _up(exact(quantity) * 1000)


@lru_cache(maxsize=65536)
def units(quantity: Quantity) -> int:
    """Whole units, rounded away from zero: `1Ki` → 1024, `1500m` → 2."""
    return _up(exact(quantity))


def _up(value: Fraction) -> int:
    whole = -(-abs(value.numerator) // value.denominator)
    return -whole if value < 0 else whole


@lru_cache(maxsize=65536)
def canonical(quantity: Quantity) -> str:
    """Kubernetes' canonical form: no fraction, the largest suffix that fits, the suffix family kept."""
    value = exact(quantity)
    match = _FORM.fullmatch(str(quantity))
    suffix = (match[2] or "") if match else ""
    if suffix in _BINARY and value.denominator == 1 and abs(value) >= 1024:
        return binary(int(value))
    if suffix and suffix not in _DECIMAL and suffix not in _BINARY:
        number, power = _thousands(value)
        return f"{number}e{power}" if power else str(number)
    return _decimal(value)


def binary(amount: int) -> str:
    """An integer with the largest binary suffix that divides it: 2147483648 → `2Gi`."""
    for suffix, size in reversed(_BINARY.items()):
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount)


@lru_cache(maxsize=4096)
def from_milli(amount: int) -> str:
    """Thousandths as a quantity: 1500 → `1500m`, 2000 → `2`."""
    return _decimal(Fraction(amount, 1000))


def _decimal(value: Fraction) -> str:
    number, power = _thousands(value)
    return f"{number}{_SUFFIXES[power]}"


def _thousands(value: Fraction) -> tuple[int, int]:
    """An integer and the largest power of a thousand, as a power of ten, that together make the value."""
    if value == 0:
        return 0, 0
    for power in _SUFFIXES:
        scaled = value / Fraction(10) ** power
        if scaled.denominator == 1:
            return scaled.numerator, power
    raise QuantityError(f"quantity {value} is finer than a nano")


def add(total: ResourceList, more: ResourceList) -> dict[str, Quantity]:
    """The sum of two resource lists, name by name."""
    result = dict(total)
    for name, amount in more.items():
        result[name] = _sum(result[name], amount) if name in result else amount
    return result


def _sum(left: Quantity, right: Quantity) -> str:
    value = exact(left) + exact(right)
    # A sum keeps the suffix family of its first part that is not zero.
    leading = left if exact(left) else right
    if str(leading).endswith("i") and value.denominator == 1 and abs(value) >= 1024:
        return binary(int(value))
    return _decimal(value)

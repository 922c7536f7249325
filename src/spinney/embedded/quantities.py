"""Quantities in Kubernetes' canonical form: `0.5` becomes `500m`, `1024Mi` becomes `1Gi`."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"^([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$")
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_POWER_NAMES = {power: name for name, power in _DECIMAL.items()}

RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class NotAQuantity(ValueError):
    """The text is no quantity."""


@lru_cache(maxsize=16384)
def value(text: str) -> Fraction:
    """The exact amount."""
    found = _FORM.match(text)
    if found is None:
        raise NotAQuantity(RULE)
    sign, digits, suffix = found[1], found[2], found[3] or ""
    amount = Fraction(digits.rstrip(".") if not digits.startswith(".") else "0" + digits)
    if suffix in _BINARY:
        amount *= _BINARY[suffix]
    elif suffix in _DECIMAL:
        amount *= Fraction(1000) ** _DECIMAL[suffix]
    else:
        amount *= Fraction(10) ** int(suffix[1:])
    return -amount if sign == "-" else amount


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """The one way Kubernetes writes this amount, in the family of suffixes that was used."""
    amount = value(text)
    found = _FORM.match(text)
    assert found is not None
    suffix = found[3] or ""
    if amount == 0:
        return "0"
    if suffix in _BINARY and abs(amount) >= 1024:
        return _binary(amount)
    exponent = suffix[:1] in ("e", "E") and len(suffix) > 1
    return _decimal(amount, exponent)


def _binary(amount: Fraction) -> str:
    if amount.denominator != 1:
        return _decimal(amount, False)
    number, name = amount.numerator, ""
    for step in _BINARY:
        if number % 1024:
            break
        number, name = number // 1024, step
    return f"{number}{name}"


def _decimal(amount: Fraction, exponent: bool) -> str:
    scaled, power = amount, 0
    while scaled.denominator != 1 and power > -3:
        scaled, power = scaled * 1000, power - 1
    # Finer than a nano is rounded away from zero.
    number = -((-scaled.numerator) // scaled.denominator) if scaled > 0 else scaled.numerator // scaled.denominator
    while number % 1000 == 0 and power < 6:
        number, power = number // 1000, power + 1
    if exponent:
        return f"{number}e{power * 3}" if power else str(number)
    return f"{number}{_POWER_NAMES[power]}"

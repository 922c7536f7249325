"""Label selectors, as objects and as strings: what lists and watches are filtered by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

from spinney.api.meta import Struct
from spinney.api.schema import ATOMIC, REQUIRED


class Requirement(Struct, frozen=True):
    """One expression: a key, an operator, and the values it is compared with."""

    key: Annotated[str, REQUIRED] = ""
    operator: Annotated[str, REQUIRED] = ""
    values: Annotated[tuple[str, ...], ATOMIC] = ()


class LabelSelector(Struct, frozen=True):
    """Chooses objects by their labels; an empty one chooses all."""

    atomic: ClassVar[bool] = True

    match_labels: dict[str, str] = {}
    match_expressions: Annotated[tuple[Requirement, ...], ATOMIC] = ()


class SelectorError(ValueError):
    """A selector that cannot be read; the message says where and what is allowed."""


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector; an absent selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        satisfies(requirement, labels) for requirement in selector.match_expressions
    )


def satisfies(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet one requirement; a missing key meets NotIn and DoesNotExist only."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compare(requirement, value)
    raise SelectorError(
        f"selector for {requirement.key!r}: operator {requirement.operator!r} is not one of In, NotIn, Exists, "
        "DoesNotExist, Gt, Lt"
    )


def _compare(requirement: Requirement, value: str | None) -> bool:
    """Gt and Lt of node selectors: both sides must be integers, else no match."""
    if value is None or len(requirement.values) != 1:
        return False
    try:
        left, right = int(value), int(requirement.values[0])
    except ValueError:
        return False
    return left > right if requirement.operator == "Gt" else left < right


_SET = re.compile(r"^([^\s!=(),]+)\s+(in|notin)\s*\(([^()]*)\)$")
_EQUAL = re.compile(r"^([^\s!=(),]+)\s*(==|=|!=)\s*([^\s!=(),]*)$")
_EXISTS = re.compile(r"^(!?)\s*([^\s!=(),]+)$")
_COMPARE = re.compile(r"^([^\s!=(),<>]+)\s*([<>])\s*(-?\d+)$")
_KEY = re.compile(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")


def parse(text: str) -> LabelSelector:
    """A selector from its string form: `a=b,c!=d,e in (f,g),h,!i`."""
    return LabelSelector(match_expressions=tuple(_parse_one(part) for part in _split(text)))


def _split(text: str) -> list[str]:
    """The comma-separated parts, commas inside parentheses aside."""
    if not text.strip():
        return []
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", text)]
    if not all(parts):
        raise SelectorError(f"selector {text!r}: empty requirement between commas")
    return parts


def _parse_one(part: str) -> Requirement:
    if match := _SET.match(part):
        values = tuple(sorted({value.strip() for value in match[3].split(",")}))
        return _checked(part, match[1], "In" if match[2] == "in" else "NotIn", values)
    if match := _COMPARE.match(part):
        return _checked(part, match[1], "Gt" if match[2] == ">" else "Lt", (match[3],))
    if match := _EQUAL.match(part):
        return _checked(part, match[1], "NotIn" if match[2] == "!=" else "In", (match[3],))
    if match := _EXISTS.match(part):
        return _checked(part, match[2], "DoesNotExist" if match[1] else "Exists", ())
    raise SelectorError(
        f"selector {part!r}: expected key, !key, key=value, key!=value, key in (a,b) or key notin (a,b)"
    )


def _checked(part: str, key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if not _KEY.match(key):
        raise SelectorError(f"selector {part!r}: {key!r} is not a label key")
    for value in values:
        if operator in ("In", "NotIn") and not _VALUE.match(value):
            raise SelectorError(f"selector {part!r}: {value!r} is not a label value")
    return Requirement(key=key, operator=operator, values=values)

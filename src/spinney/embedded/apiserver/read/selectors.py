"""Label and field selectors, as strings of a query and as objects in a spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from spinney.api.meta import Json, convert
from spinney.api.selector import LabelSelector, Requirement, SelectorError, parse, satisfies
from spinney.api.text_cache import text_cache
from spinney.embedded.apiserver.errors import bad_request

Selector = tuple[Requirement, ...]


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy every requirement."""
    try:
        return all(satisfies(requirement, labels) for requirement in selector)
    except SelectorError:
        # An unknown operator selects nothing; validation refuses it elsewhere.
        return False


@text_cache(1024)
def parse_labels(text: str) -> Selector:
    """The requirements of a `labelSelector`."""
    try:
        return parse(text).match_expressions
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


FieldTest = tuple[str, bool, str]  # field, wanted equal, value


@text_cache(1024)
def parse_fields(text: str) -> tuple[FieldTest, ...]:
    """The requirements of a `fieldSelector`."""
    tests: list[FieldTest] = []
    for term in filter(None, re.split(r"(?<!\\),", text)):
        match = re.fullmatch(r"([^=!]*)(==|!=|=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        tests.append((match[1], match[2] != "!=", _unescaped(match[3])))
    return tuple(tests)


def _unescaped(value: str) -> str:
    for wrong in re.finditer(r"\\(.?)", value):
        if wrong[1] not in (",", "=", "\\"):
            raise bad_request(f"invalid field selector: invalid escape sequence: \\{wrong[1]}")
    return re.sub(r"\\([,=\\])", r"\1", value)


def field_matcher(tests: tuple[FieldTest, ...]) -> Callable[[Mapping[str, str]], bool]:
    """A function that says whether an object's selectable fields meet the conditions."""

    def check(fields: Mapping[str, str]) -> bool:
        return all((fields.get(name, "") == value) is equal for name, equal, value in tests)

    return check


def from_object(selector: Json | None) -> Selector:
    """The requirements of a `metav1.LabelSelector`; an empty one matches everything."""
    label_selector = convert(LabelSelector, selector or {})
    labels = (
        Requirement(key=key, operator="In", values=(value,)) for key, value in label_selector.match_labels.items()
    )
    return (*labels, *label_selector.match_expressions)


def formatted(selector: Json | None) -> str:
    """A `metav1.LabelSelector` as kubectl and `scale.status.selector` write it."""
    selector = selector or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in sorted(selector.get("matchExpressions") or (), key=lambda item: str(item["key"])):
        key, listed = term["key"], ",".join(sorted(term.get("values") or ()))
        match term["operator"]:
            case "In":
                parts.append(f"{key} in ({listed})")
            case "NotIn":
                parts.append(f"{key} notin ({listed})")
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
    return ",".join(parts)

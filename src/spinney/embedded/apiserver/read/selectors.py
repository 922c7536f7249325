"""Label and field selectors, as strings of a query and as objects in a spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from spinney.api import naming
from spinney.api.meta import Json, convert
from spinney.api.selector import LabelSelector, Requirement, SelectorError, satisfies
from spinney.embedded.apiserver.errors import bad_request

_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")

VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


Selector = tuple[Requirement, ...]


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every condition."""
    try:
        return all(satisfies(requirement, labels) for requirement in selector)
    except SelectorError:
        # An unknown operator selects nothing; validation refuses it elsewhere.
        return False


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> Selector:
    """The conditions of a `labelSelector`."""
    tokens = [match.group(1) for match in _TOKEN.finditer(text)]
    if tokens and tokens[0] in _MARKS:
        raise bad_request(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
    requirements: list[Requirement] = []
    position = 0
    while position < len(tokens):
        requirement, position = _requirement(tokens, position)
        requirements.append(requirement)
        if position < len(tokens):
            if tokens[position] != ",":
                raise bad_request(f"found '{tokens[position]}', expected: ',' or 'end of string'")
            position += 1
            following = tokens[position] if position < len(tokens) else ""
            if following in ("", ","):
                raise bad_request(f"found '{following}', expected: identifier after ','")
    return tuple(requirements)


_MARKS = ("=", "==", "!=", "(", ")", "<", ">")


def _unparsable(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


def _requirement(tokens: list[str], at: int) -> tuple[Requirement, int]:
    if tokens[at] == "!":
        key = _key(tokens, at + 1, "identifier")
        return _requires(key, "DoesNotExist"), at + 2
    key = _key(tokens, at)
    at += 1
    if at == len(tokens) or tokens[at] == ",":
        return _requires(key, "Exists"), at
    operator = tokens[at]
    at += 1
    if operator in ("in", "notin"):
        values, at = _set(tokens, at)
        return _requires(key, "In" if operator == "in" else "NotIn", *values), at
    if operator not in ("=", "==", "!=", "<", ">"):
        raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
    value = ""
    if at < len(tokens) and tokens[at] != ",":
        value = _value(key, tokens[at])
        at += 1
    if operator in ("<", ">"):
        if not re.fullmatch(r"-?\d+", value):
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _unparsable(f'values[0]: Invalid value: "{value}": {rule}')
        return _requires(key, "Gt" if operator == ">" else "Lt", value), at
    return _requires(key, "NotIn" if operator == "!=" else "In", value), at


def _requires(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def _key(tokens: list[str], at: int, expected: str = "!, identifier, or 'end of string'") -> str:
    key = tokens[at] if at < len(tokens) else ""
    if not key or key in ("=", "==", "!=", ",", "(", ")", "<", ">", "!"):
        raise _unparsable(f"found '{key}', expected: {expected}")
    problems = [f'<nil>: Invalid value: "{key}": {problem}' for problem in naming.qualified_problems(key)]
    if problems:
        raise _unparsable(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return key


def _value(key: str, value: str) -> str:
    if value in ("=", "==", "!=", "(", ")", "<", ">", "!"):
        raise _unparsable(f"found '{value}', expected: identifier")
    if not _VALUE.match(value):
        raise _unparsable(f'values[0][{key}]: Invalid value: "{value}": {VALUE_RULE}')
    return value


def _set(tokens: list[str], at: int) -> tuple[tuple[str, ...], int]:
    if at >= len(tokens) or tokens[at] != "(":
        token = tokens[at] if at < len(tokens) else ""
        raise _unparsable(f"found '{token}' expected: '('")
    values: list[str] = []
    at += 1
    while at < len(tokens) and tokens[at] != ")":
        if tokens[at] != ",":
            values.append(_value("", tokens[at]))
        at += 1
    if at >= len(tokens):
        expected = "',', ')' or identifier" if tokens[-1] in ("(", ",") else "',' or ')'"
        raise _unparsable(f"found '', expected: {expected}")
    return tuple(values) or ("",), at + 1


FieldTest = tuple[str, bool, str]  # field, wanted equal, value


@lru_cache(maxsize=1024)
def parse_fields(text: str) -> tuple[FieldTest, ...]:
    """The conditions of a `fieldSelector`."""
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
    """The conditions of a `metav1.LabelSelector`; an empty one matches everything."""
    label_selector = convert(LabelSelector, selector or {})
    labels = (_requires(key, "In", value) for key, value in label_selector.match_labels.items())
    return (*labels, *label_selector.match_expressions)


def from_labels(selector: Json) -> Json:
    """A selector as a `metav1.LabelSelector`; that of a ReplicationController is a plain map of labels."""
    is_map = all(isinstance(value, str) for value in selector.values())
    return {"matchLabels": selector} if is_map else selector


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

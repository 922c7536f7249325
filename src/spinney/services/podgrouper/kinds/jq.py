"""A subset of jq: paths, alternatives, arithmetic, comparisons and a few functions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from spinney.services.podgrouper.grouping import GroupingError

Query = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<field>\.[A-Za-z_]\w*)|(?P<word>[A-Za-z_]\w*)
        |(?P<sign>//|==|!=|<=|>=|[.|()\[\]<>+\-*/?,]))""",
    re.VERBOSE,
)
# From the loosest to the tightest; all are left-associative (jq's `//` is not, with the same result).
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("|",),
    ("//",),
    ("or",),
    ("and",),
    ("==", "!=", "<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/"),
)
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "length": lambda value: 0 if value is None else len(value),
    "keys": sorted,
    "to_entries": lambda value: [{"key": key, "value": inner} for key, inner in value.items()],
    "not": lambda value: not _truth(value),
    "tostring": lambda value: value if isinstance(value, str) else msgspec.json.encode(value).decode(),
    "tonumber": lambda value: value if isinstance(value, int | float) else float(value),
    "type": lambda value: _TYPES[type(value)],
}
_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}


def ask(query: str, document: Any) -> list[Any]:
    """All results of a query on a document."""
    try:
        return list(_parsed(query)(document))
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise GroupingError(f"query {query!r}: {error}") from None


@lru_cache(maxsize=1024)
def _parsed(query: str) -> Query:
    parser = _Parser(query)
    parsed = parser.level(0)
    if parser.peek():
        raise GroupingError(f"query {query!r}: {parser.peek()!r} is not understood")
    return parsed


class _Parser:
    """A precedence-climbing parser of queries."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while query[position:].strip():
            match = _TOKEN.match(query, position)
            if match is None:
                raise GroupingError(f"query {query!r}: {query[position:]!r} is not understood")
            self._tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
            position = match.end()
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> tuple[str, str]:
        if self._at >= len(self._tokens) or (wanted and self.peek() != wanted):
            raise GroupingError(f"query {self._query!r}: {wanted or 'something'!r} is missing at {self.peek()!r}")
        self._at += 1
        return self._tokens[self._at - 1]

    def level(self, depth: int) -> Query:
        if depth == len(_LEVELS):
            return self._term()
        left = self.level(depth + 1)
        while self.peek() in _LEVELS[depth]:
            sign = self._take()[1]
            left = _combined(sign, left, self.level(depth + 1))
        return left

    def _term(self) -> Query:
        kind, text = self._take()
        if kind == "number":
            term = _constant(float(text) if "." in text else int(text))
        elif kind == "string":
            term = _constant(msgspec.json.decode(text))
        elif kind == "field":
            term = _field(text[1:])
        elif text == "-":
            return _combined("-", _constant(0), self._term())
        elif text == ".":
            term = _quoted(self._take()[1]) if self.peek().startswith('"') else _identity
        elif text == "(":
            term = self.level(0)
            self._take(")")
        else:
            term = self._word(text)
        return self._with_suffixes(term)

    def _word(self, text: str) -> Query:
        if text in _LITERALS:
            return _constant(_LITERALS[text])
        if text in _FUNCTIONS:
            return lambda value: iter((_FUNCTIONS[text](value),))
        if text in ("select", "map"):
            self._take("(")
            inner = self.level(0)
            self._take(")")
            return _select(inner) if text == "select" else _map(inner)
        raise GroupingError(f"query {self._query!r}: {text!r} is not understood")

    def _with_suffixes(self, query: Query) -> Query:
        """A term with its suffixes: `.field`, `[]`, `[0]`, `["key"]`, `?`."""
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind == "field":
                self._at += 1
                query = _combined("|", query, _field(text[1:]))
            elif text == "[":
                self._at += 1
                query = _combined("|", query, self._index())
            elif text == "?":
                self._at += 1
                query = _without_errors(query)
            elif text == "." and self._tokens[self._at + 1 : self._at + 2] == [("sign", "[")]:
                self._at += 1
            else:
                break
        return query

    def _index(self) -> Query:
        if self.peek() == "]":
            self._take()
            return _each
        inner = self.level(0)
        self._take("]")
        return lambda value: (_at(value, key) for key in inner(value))


def _identity(value: Any) -> Iterator[Any]:
    yield value


def _constant(value: Any) -> Query:
    return lambda _: iter((value,))


def _field(name: str) -> Query:
    return lambda value: iter((_at(value, name),))


def _quoted(text: str) -> Query:
    return _field(msgspec.json.decode(text))


def _each(value: Any) -> Iterator[Any]:
    if value is None:
        raise TypeError("nothing to go through")
    return iter(value.values() if isinstance(value, dict) else value)


def _at(value: Any, key: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else None
    raise TypeError(f"{type(value).__name__} has no {key!r}")


def _select(inner: Query) -> Query:
    return lambda value: (value for result in inner(value) if _truth(result))


def _map(inner: Query) -> Query:
    return lambda value: iter(([result for each in value for result in inner(each)],))


def _without_errors(inner: Query) -> Query:
    def query(value: Any) -> Iterator[Any]:
        try:
            yield from list(inner(value))
        except (TypeError, ValueError, AttributeError):
            return

    return query


def _combined(sign: str, left: Query, right: Query) -> Query:
    if sign == "|":
        return lambda value: (result for middle in left(value) for result in right(middle))
    if sign == "//":
        return _alternative(left, right)
    if sign == "and":
        return lambda value: (_truth(a) and _truth(b) for a in left(value) for b in right(value))
    if sign == "or":
        return lambda value: (_truth(a) or _truth(b) for a in left(value) for b in right(value))
    apply = _ARITHMETIC[sign]
    return lambda value: (apply(a, b) for a in left(value) for b in right(value))


def _alternative(left: Query, right: Query) -> Query:
    def query(value: Any) -> Iterator[Any]:
        results = [each for each in _without_errors(left)(value) if _truth(each)]
        yield from results or right(value)

    return query


def _truth(value: Any) -> bool:
    return value is not None and value is not False

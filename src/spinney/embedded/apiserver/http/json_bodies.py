"""JSON errors in the words of Go's decoder, for bodies that do not parse."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

_SPACE = " \t\r\n"
_LITERALS = {"t": "true", "f": "false", "n": "null"}
ENDED = "unexpected end of JSON input"
_MAX_DEPTH = 10_000


def _number(text: str) -> int | float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() else value


_decoder = msgspec.json.Decoder(float_hook=_number)


def untyped(body: bytes) -> Any:
    """What is read without a type in mind, as patches and custom objects are: there 1.0 and 1e3 are whole numbers."""
    return _decoder.decode(body)


class _Found(Exception):
    """Where the text stops being JSON."""


def explain(body: bytes) -> str:
    """Why a text is not JSON."""
    scanner = _Scanner(body.decode("utf-8", "replace") if body[:1] < b"\x80" else body.decode("latin-1"))
    try:
        scanner.value(0, "looking for beginning of value")
        scanner.space()
        if scanner.at < len(scanner.text):
            return scanner.unexpected("after top-level value")
    except _Found as found:
        return str(found)
    except RecursionError:
        return "exceeded max depth"
    return "invalid JSON"


def summary(body: bytes, limit: int = 30) -> str:
    """The beginning of a body, as it is quoted back."""
    if not body:
        return "<empty>"
    cut = body[:limit]
    shown = cut.decode("utf-8", "replace") if body.startswith(b"{") else cut.hex()
    return f"{shown} ..." if len(body) > limit else shown


def duplicates(body: bytes) -> list[str]:
    """The paths of fields that an object gives more than once."""
    found: list[str] = []
    twice = object()

    def pairs(items: list[tuple[str, Any]]) -> Any:
        result: dict[Any, Any] = {}
        for key, value in items:
            if key in result:
                result.setdefault(twice, []).append(key)
            result[key] = value
        return result

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            found.extend(f"{path}.{key}".lstrip(".") for key in value.pop(twice, ()))
            for key, item in value.items():
                walk(item, f"{path}.{key}")
        elif isinstance(value, list):
            for at, item in enumerate(value):
                walk(item, f"{path}[{at}]")

    try:
        walk(json.loads(body, object_pairs_hook=pairs), "")
    except (ValueError, RecursionError):
        return []
    return found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def unexpected(self, where: str) -> str:
        letter = self.text[self.at]
        shown = {"'": "'\\''", '"': "'\"'"}.get(letter)
        if shown is None:
            shown = f"'{letter}'" if letter.isprintable() else f"'\\u{ord(letter):04x}'"
        return f"invalid character {shown} {where}"

    def peek(self, where: str) -> str:
        self.space()
        if self.at >= len(self.text):
            raise _Found(ENDED)
        return self.text[self.at]

    def fail(self, where: str) -> _Found:
        return _Found(self.unexpected(where))

    def value(self, depth: int, where: str) -> None:
        if depth > _MAX_DEPTH:
            raise _Found("exceeded max depth")
        letter = self.peek(where)
        if letter == "{":
            self.object(depth)
        elif letter == "[":
            self.array(depth)
        elif letter == '"':
            self.string()
        elif letter in _LITERALS:
            self.literal(_LITERALS[letter])
        elif letter == "-" or letter.isdigit():
            self.number()
        else:
            raise self.fail(where)

    def object(self, depth: int) -> None:
        self.at += 1
        first = True
        while True:
            letter = self.peek("")
            if letter == "}" and first:
                self.at += 1
                return
            if letter != '"':
                raise self.fail("looking for beginning of object key string")
            self.string()
            if self.peek("") != ":":
                raise self.fail("after object key")
            self.at += 1
            self.value(depth + 1, "looking for beginning of value")
            letter = self.peek("")
            self.at += 1
            if letter == "}":
                return
            if letter != ",":
                self.at -= 1
                raise self.fail("after object key:value pair")
            first = False

    def array(self, depth: int) -> None:
        self.at += 1
        if self.peek("") == "]":
            self.at += 1
            return
        while True:
            self.value(depth + 1, "looking for beginning of value")
            letter = self.peek("")
            self.at += 1
            if letter == "]":
                return
            if letter != ",":
                self.at -= 1
                raise self.fail("after array element")

    def string(self) -> None:
        self.at += 1
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == '"':
                self.at += 1
                return
            if letter < " ":
                raise self.fail("in string literal")
            self.at += 2 if letter == "\\" else 1
        raise _Found(ENDED)

    def literal(self, word: str) -> None:
        for letter in word:
            if self.at >= len(self.text):
                raise _Found(ENDED)
            if self.text[self.at] != letter:
                raise self.fail(f"in literal {word} (expecting '{letter}')")
            self.at += 1

    def number(self) -> None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "+-.eE0123456789":
            self.at += 1
        if self.text[start : self.at] == "-":
            if self.at >= len(self.text):
                raise _Found(ENDED)
            raise self.fail("in numeric literal")

"""YAML as Kubernetes reads it, into plain data of bounded depth and size, whoever wrote it.

PyYAML's own loaders compose recursively, expand aliases without a limit, and read `1:1:1…` as one huge number: a few
lines can end or stop the process. Here the parser's events are read one by one, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml

MOST_LEVELS = 128
# A file of manifests may be large; who reads a body of a request sets a lower limit.
MOST_VALUES = 1_000_000
# Characters that the aliases of a document may stand for, altogether.
_MOST_REPEATED = 4 * 1024 * 1024
_MOST_DIGITS = 400
_CORE = "tag:yaml.org,2002:"
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# libyaml compares every %TAG directive with all others.
_TAG_DIRECTIVE = re.compile(rb"^%TAG", re.MULTILINE)
_BOOLEANS = {
    text: value
    for word, value in (("yes", True), ("true", True), ("on", True), ("no", False), ("false", False), ("off", False))
    for text in (word, word.capitalize(), word.upper())
}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_NUMBER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)", re.ASCII)
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class YamlError(ValueError):
    """Text that is not YAML, or more of it than is read; the message names the line."""


class Document(msgspec.Struct, frozen=True):
    """One document, and the keys that one of its objects has twice."""

    value: Any
    repeated: list[str]


def read_yaml(text: str | bytes, most_values: int = MOST_VALUES) -> Any:
    """The first document of a text; None if there is none."""
    return next((document.value for document in documents(text, most_values)), None)


def read_all_yaml(text: str | bytes, most_values: int = MOST_VALUES) -> list[Any]:
    """All documents of a text."""
    return [document.value for document in documents(text, most_values)]


def documents(text: str | bytes, most_values: int = MOST_VALUES) -> Iterator[Document]:
    """The documents of a text, one after the other."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if _TAG_DIRECTIVE.search(raw):
        raise YamlError("%TAG directives are not supported")
    reader = _Reader(most_values)
    try:
        for event in yaml.parse(raw, Loader=_Parser):
            if isinstance(event, yaml.DocumentEndEvent):
                yield Document(reader.value, reader.repeated)
                reader = _Reader(most_values)
            else:
                reader.take(event)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise YamlError(f"line {line}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlError(f"{error}") from None


class _Open:
    """An object or list whose end has not come yet."""

    __slots__ = ("anchor", "before", "key", "merges", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None, before: tuple[int, int]) -> None:
        self.value = value
        self.anchor = anchor
        # How many values and characters there were before this one.
        self.before = before
        # Of an object: the key whose value comes next, and the objects that `<<` merges into it.
        self.key: str | None = None
        self.merges: list[Any] = []


class _Reader:
    """Turns the events of one document into a value."""

    def __init__(self, most_values: int) -> None:
        self.value: Any = None
        self.repeated: list[str] = []
        self._most = most_values
        self._count = 0
        self._characters = 0
        self._repeated_characters = 0
        self._open: list[_Open] = []
        # With each value, how many values and characters it is made of.
        self._anchors: dict[str, tuple[Any, int, int]] = {}

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(event, self._scalar(event), 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _begin(self, event: Any) -> None:
        is_object = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_CORE}map" if is_object else f"{_CORE}seq"):
            raise YamlError(f"line {_line(event)}: tag {event.tag!r} is not supported")
        if len(self._open) >= MOST_LEVELS:
            raise YamlError(f"more than {MOST_LEVELS} levels deep")
        if self._open and self._wants_key():
            raise YamlError(f"line {_line(event)}: a key must be a string")
        self._open.append(_Open({} if is_object else [], event.anchor, (self._count, self._characters)))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            for merged in done.merges:
                for key, value in merged.items():
                    done.value.setdefault(key, value)
        if done.anchor is not None:
            values, characters = done.before
            self._anchors[done.anchor] = done.value, self._count - values + 1, self._characters - characters
        self._put(event, done.value, 1)

    def _alias(self, event: Any) -> None:
        if any(holder.anchor == event.anchor for holder in self._open):
            raise YamlError(f"anchor {event.anchor!r} contains itself")
        if event.anchor not in self._anchors:
            raise YamlError(f"line {_line(event)}: unknown anchor {event.anchor!r}")
        value, size, characters = self._anchors[event.anchor]
        # Counted before anything is copied.
        self._characters += characters
        self._repeated_characters += characters
        if self._repeated_characters > _MOST_REPEATED:
            raise YamlError(f"its aliases stand for more than {_MOST_REPEATED} characters")
        if self._open and self._wants_key():
            self._set_key(event, value)
            return
        self._put(event, value, size, _copy)

    def _add(self, event: Any, value: Any, size: int) -> None:
        self._characters += len(event.value)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, size, len(event.value)
        if self._open and self._wants_key():
            self._set_key(event, value)
        else:
            self._put(event, value, size)

    def _wants_key(self) -> bool:
        innermost = self._open[-1]
        return isinstance(innermost.value, dict) and innermost.key is None

    def _set_key(self, event: Any, value: Any) -> None:
        if isinstance(value, dict | list):
            raise YamlError(f"line {_line(event)}: a key must be a string")
        innermost = self._open[-1]
        innermost.key = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if innermost.key in innermost.value and innermost.key != "<<":
            self.repeated.append(f'line {_line(event)}: key "{innermost.key}" already set in map')

    def _put(self, event: Any, value: Any, size: int, copied: Callable[[Any], Any] = lambda value: value) -> None:
        self._count += size
        if self._count > self._most:
            raise YamlError(f"more than {self._most} values, aliases expanded")
        if not self._open:
            self.value = value
            return
        innermost = self._open[-1]
        if isinstance(innermost.value, list):
            innermost.value.append(copied(value))
            return
        key, innermost.key = innermost.key, None
        assert key is not None
        if key == "<<" and isinstance(value, dict | list):
            innermost.merges.extend(_merged(event, copied(value)))
        else:
            innermost.value[key] = copied(value)

    def _scalar(self, event: Any) -> Any:
        tag, text = event.tag, event.value
        if tag is None or tag == "!":
            return _resolved(text, event) if event.implicit[0] else text
        if tag == f"{_CORE}str":
            return text
        if tag in (f"{_CORE}int", f"{_CORE}float", f"{_CORE}bool", f"{_CORE}null"):
            value = _resolved(text, event)
            if isinstance(value, str):
                raise YamlError(f"line {_line(event)}: {text[:40]!r} is no {tag.removeprefix(_CORE)}")
            return value
        raise YamlError(f"line {_line(event)}: tag {tag!r} is not supported")


def _merged(event: Any, value: Any) -> list[Any]:
    objects = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in objects):
        raise YamlError(f"line {_line(event)}: map merge requires map or sequence of maps as the value")
    return objects


def _resolved(text: str, event: Any) -> Any:
    """What an unquoted text stands for: a boolean, null, a number as JSON has it, or itself."""
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _NULLS:
        return None
    if not (text[0].isdigit() or text[0] in "+-."):
        return text
    if _NO_NUMBER.fullmatch(text):
        raise YamlError(f"line {_line(event)}: {text} is not a number that JSON has")
    if _NUMBER.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise YamlError(f"line {_line(event)}: a number has more than {_MOST_DIGITS} digits")
        return _integer(text)
    if len(text) <= _MOST_DIGITS and _FLOAT.fullmatch(text):
        value = float(text.replace("_", ""))
        if value in (float("inf"), float("-inf")):
            raise YamlError(f"line {_line(event)}: {text[:40]} is too large for a number")
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    return text


def _integer(text: str) -> int | str:
    plain = text.replace("_", "")
    digits = plain.lstrip("+-")
    base = 2 if digits.startswith("0b") else 16 if digits.startswith("0x") else 8 if digits[:1] == "0" else 10
    try:
        return int(plain, base) if digits != "0" else 0
    except ValueError:
        # 089 is a string, as in YAML 1.1.
        return text


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1

"""Objects that depend on values: plain data with expressions in it, evaluated here or printed as Helm templates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.api.meta import Json

# Data in which expressions and conditions may stand for values, and conditions for keys and items.
Tree = Any


@dataclass(frozen=True)
class Scope:
    """What an expression can see: values, the release, what the cluster serves, and the current item of a loop."""

    values: Json
    namespace: str
    version: str
    served: frozenset[str] = frozenset()
    item: Any = None


@dataclass(frozen=True)
class Expression:
    """A value, in Helm's language and in ours."""

    go: str
    of: Callable[[Scope], Any]


@dataclass(frozen=True)
class When:
    """Data that is there only if a condition holds."""

    condition: Expression
    then: Tree


@dataclass(frozen=True)
class Each:
    """Documents, once for every item of a list."""

    over: Expression
    documents: tuple[Tree, ...]


@dataclass(frozen=True)
class Merged:
    """A tree, changed by the fields of a value. Empty fields change nothing, as in Helm's `mergeOverwrite`."""

    name: str
    base: Tree
    over: Expression = field(compare=False)


@dataclass(frozen=True)
class Document:
    """A tree as JSON text, for configuration files."""

    name: str
    tree: Tree


NAMESPACE = Expression("$.Release.Namespace", lambda scope: scope.namespace)
VERSION = Expression("$.Chart.AppVersion", lambda scope: scope.version)


def value(path: str) -> Expression:
    """The value at a path such as `image.tag`."""
    return Expression(f"$.Values.{path}", lambda scope: _at(scope.values, path.split(".")))


def item(path: str) -> Expression:
    """A field of the current item of a loop."""
    return Expression(f"$item.{path}", lambda scope: _at(scope.item, path.split(".")))


def text(*parts: str | Expression) -> Expression:
    """Parts put together to one text."""
    pattern = "".join("%s" if isinstance(part, Expression) else part.replace("%", "%%") for part in parts)
    arguments = " ".join(f"({part.go})" for part in parts if isinstance(part, Expression))

    def joined(scope: Scope) -> str:
        return "".join(str(part.of(scope)) if isinstance(part, Expression) else part for part in parts)

    return Expression(f"printf {json.dumps(pattern)} {arguments}", joined)


def either(first: Expression, otherwise: Expression) -> Expression:
    """The first value, or the other where it is empty."""
    return Expression(f"{first.go} | default {otherwise.go}", lambda scope: first.of(scope) or otherwise.of(scope))


@dataclass(frozen=True)
class Digest:
    """A short text that changes with a document."""

    document: Document

    def hashed(self, written: str) -> str:
        """The digest of the document's text."""
        return hashlib.sha256(written.encode()).hexdigest()[:16]


def mapped(inner: Expression, key: str) -> Expression:
    """A list of names as a list of objects with that name under a key."""
    go = f'include "spinney.named" (dict "key" {json.dumps(key)} "names" ({inner.go})) | fromJsonArray'
    return Expression(go, lambda scope: [{key: name} for name in inner.of(scope)])


def is_(inner: Expression, expected: object) -> Expression:
    """Whether a value is this one."""
    return Expression(f"eq ({inner.go}) {json.dumps(expected)}", lambda scope: inner.of(scope) == expected)


def above(inner: Expression, number: int) -> Expression:
    """Whether a number is larger than another."""
    return Expression(f"gt (int ({inner.go})) {number}", lambda scope: inner.of(scope) > number)


def all_of(*conditions: Expression) -> Expression:
    """Whether all conditions hold."""
    go = "and " + " ".join(f"({condition.go})" for condition in conditions)
    return Expression(go, lambda scope: all(condition.of(scope) for condition in conditions))


def not_(condition: Expression) -> Expression:
    """Whether a condition does not hold."""
    return Expression(f"not ({condition.go})", lambda scope: not condition.of(scope))


def includes(names: Expression, name: str) -> Expression:
    """Whether a list is empty, which stands for everything, or has a name."""
    go = f"or (empty ({names.go})) (has {json.dumps(name)} ({names.go}))"
    return Expression(go, lambda scope: not names.of(scope) or name in names.of(scope))


def serves(api_version: str) -> Expression:
    """Whether the cluster serves an API version."""
    go = f"$.Capabilities.APIVersions.Has {json.dumps(api_version)}"
    return Expression(go, lambda scope: api_version in scope.served)


def lifted(data: Any, marks: Mapping[str, Expression]) -> Tree:
    """Data in which marks inside of texts become expressions."""
    if isinstance(data, Mapping):
        return {key: lifted(inner, marks) for key, inner in data.items()}
    if isinstance(data, str):
        return _lifted_text(data, marks)
    if isinstance(data, Sequence):
        return [lifted(inner, marks) for inner in data]
    return data


def _lifted_text(data: str, marks: Mapping[str, Expression]) -> str | Expression:
    parts: list[str | Expression] = [data]
    for mark, expression in marks.items():
        split: list[str | Expression] = []
        for part in parts:
            if not isinstance(part, str):
                split.append(part)
                continue
            for at, piece in enumerate(part.split(mark)):
                split += [expression] if at else []
                split += [piece] if piece else []
        parts = split
    if len(parts) == 1:
        return parts[0]
    return text(*parts) if parts else ""


def to_json(data: Any) -> str:
    """JSON as Helm writes it: sorted, without spaces, safe inside of HTML."""
    written = json.dumps(_whole(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def _whole(data: Any) -> Any:
    """Data in which numbers without a fraction are integers."""
    if isinstance(data, Mapping):
        return {key: _whole(inner) for key, inner in data.items()}
    if isinstance(data, list | tuple):
        return [_whole(inner) for inner in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data


def _at(data: Any, path: Sequence[str]) -> Any:
    for part in path:
        data = data[part]
    return data

"""Evaluate trees to objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from spinney.api.meta import Json
from spinney.app.install.template import Digest, Document, Each, Expression, Merged, Scope, Tree, When, to_json

_NOTHING = object()


def evaluated(documents: Iterable[Tree], scope: Scope) -> Iterator[Json]:
    """The objects of documents, for values."""
    for document in documents:
        if isinstance(document, Each):
            for item in document.over.of(scope):
                yield from evaluated(document.documents, replace(scope, item=item))
        elif isinstance(document, When) and isinstance(document.then, Each):
            if document.condition.of(scope):
                yield from evaluated([document.then], scope)
        elif (result := _evaluate(document, scope)) is not _NOTHING:
            yield result


def _evaluate(tree: Tree, scope: Scope) -> Any:
    match tree:
        case Expression():
            return tree.of(scope)
        case When():
            return _evaluate(tree.then, scope) if tree.condition.of(scope) else _NOTHING
        case Merged():
            return _merged(_evaluate(tree.base, scope), tree.over.of(scope))
        case Document():
            return to_json(_evaluate(tree.tree, scope))
        case Digest():
            return tree.hashed(to_json(_evaluate(tree.document.tree, scope)))
        case dict():
            results = ((key, _evaluate(inner, scope)) for key, inner in tree.items())
            return {key: result for key, result in results if result is not _NOTHING}
        case list() | tuple():
            return [result for inner in tree if (result := _evaluate(inner, scope)) is not _NOTHING]
    return tree


def _merged(under: Json, over: Json) -> Json:
    result = dict(under)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = _merged(result[key], value)
        elif value or key not in result:
            result[key] = value
    return result

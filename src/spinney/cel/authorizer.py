"""The `authorizer` of CEL, with which admission rules ask whether a user may do something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from spinney.api.meta import Json

# Returns why a request is allowed, or None. The request holds verb, group, resource, subresource, namespace, name,
# path, and `account` (namespace and name) where a rule asks about a service account.
Decide = Callable[[Mapping[str, Any]], str | None]
# A context variable, because CEL's values cannot hold a callable.
_decide: ContextVar[Decide] = ContextVar("decide")
_ATTRIBUTES = ("group", "resource", "subresource", "namespace", "name", "path", "fieldSelector", "labelSelector")


@contextmanager
def deciding_by(decide: Decide) -> Iterator[None]:
    """Answer the checks of expressions that are evaluated inside of this block."""
    token = _decide.set(decide)
    try:
        yield
    finally:
        _decide.reset(token)


def _check(request: Mapping[str, Any], verb: str) -> Json:
    reason = _decide.get()({**request, "verb": verb})
    return {"allowed": reason is not None, "reason": reason or ""}


def _account(request: Mapping[str, Any], namespace: str, name: str) -> Json:
    return {**request, "account": [namespace, name]}


def functions(function: Any, type_: Any) -> list[Any]:
    """The functions, made with the declaring function and the types of the language."""
    text, any_map = type_.STRING, type_.Map(type_.STRING, type_.DYN)

    def attribute(name: str) -> Any:
        return function(name, ([any_map, text], any_map, lambda request, value: {**request, name: value}, True))

    return [
        *(attribute(name) for name in _ATTRIBUTES),
        function("serviceAccount", ([any_map, text, text], any_map, _account, True)),
        function("check", ([any_map, text], any_map, _check, True)),
        function("allowed", ([any_map], type_.BOOL, lambda decision: decision["allowed"], True)),
        function("reason", ([any_map], text, lambda decision: decision["reason"], True)),
        function("errored", ([any_map], type_.BOOL, lambda decision: False, True)),
        function("error", ([any_map], text, lambda decision: "", True)),
    ]

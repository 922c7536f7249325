"""`authorizer` in CEL: rules of admission ask whether somebody may do something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.access.rbac import Attributes
from spinney.kube.client.transport import User

if TYPE_CHECKING:
    from spinney.embedded.apiserver.calls import Call
    from spinney.embedded.apiserver.server import ApiServer

# Answers for the rules that are being evaluated: functions of the language know nothing else of the server.
_decide: ContextVar[Callable[[Mapping[str, Any]], str | None]] = ContextVar("decide")
_ACCOUNTS = "system:serviceaccount"


@contextmanager
def asked_by(server: ApiServer, call: Call) -> Iterator[Json]:
    """The value of `authorizer`, which answers for who makes a request, or for the account that a rule names."""

    def decide(asked: Mapping[str, Any]) -> str | None:
        known = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
        wanted = Attributes(**{key: asked[key] for key in known if key in asked})
        return server.authorizer.allows(_account(asked) or call.user, wanted)

    kind = call.kind
    request = {"group": kind.group, "resource": kind.plural, "subresource": call.subresource}
    token = _decide.set(decide)
    try:
        yield {"requestResource": {**request, "namespace": call.namespace, "name": call.name}}
    finally:
        _decide.reset(token)


def _account(asked: Mapping[str, Any]) -> User | None:
    if "account" not in asked:
        return None
    namespace, name = asked["account"]
    groups = (f"{_ACCOUNTS}s", f"{_ACCOUNTS}s:{namespace}", "system:authenticated")
    return User(f"{_ACCOUNTS}:{namespace}:{name}", groups)


def _check(asked: Mapping[str, Any], verb: str) -> Json:
    reason = _decide.get()({**asked, "verb": verb})
    return {"allowed": reason is not None, "reason": reason or ""}


def functions(function: Any, type_: Any) -> list[Any]:
    """The functions, by who declares them and the types of the language."""
    text, any_map = type_.STRING, type_.Map(type_.STRING, type_.DYN)

    def narrowing(name: str) -> Any:
        return function(name, ([any_map, text], any_map, lambda asked, value: {**asked, name: value}, True))

    def account(asked: Mapping[str, Any], namespace: str, name: str) -> Json:
        return {**asked, "account": [namespace, name]}

    return [
        *(narrowing(name) for name in ("group", "resource", "subresource", "namespace", "name", "path")),
        *(narrowing(name) for name in ("fieldSelector", "labelSelector")),
        function("serviceAccount", ([any_map, text, text], any_map, account, True)),
        function("check", ([any_map, text], any_map, _check, True)),
        function("allowed", ([any_map], type_.BOOL, lambda decision: decision["allowed"], True)),
        function("reason", ([any_map], text, lambda decision: decision["reason"], True)),
        function("errored", ([any_map], type_.BOOL, lambda decision: False, True)),
        function("error", ([any_map], text, lambda decision: "", True)),
    ]

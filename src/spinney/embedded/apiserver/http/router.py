"""From a request's path and method to the handler that answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from spinney.embedded.apiserver.access import reviews
from spinney.embedded.apiserver.access.authentication import Authenticator
from spinney.embedded.apiserver.access.rbac import MASTERS, Attributes
from spinney.embedded.apiserver.calls import Call, is_old_watch, split_path, verb_of
from spinney.embedded.apiserver.errors import bad_request, method_not_allowed, not_found, not_served, too_large
from spinney.embedded.apiserver.http import discovery, health
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.http.openapi import OpenApi
from spinney.embedded.apiserver.read import get_list
from spinney.embedded.apiserver.read.watch import Watches
from spinney.embedded.apiserver.resources import scale
from spinney.embedded.apiserver.write import deletion, handlers
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.kube.client.transport import Request, Response, User

MAX_BODY = 3 * 1024 * 1024
NOT_FOUND = Response(404, b"404 page not found\n", {**JSON, "content-type": "text/plain; charset=utf-8"})
Handler = Callable[[Pipeline, Call], Awaitable[Response]]
_WRITES: dict[str, Handler] = {
    "create": handlers.create,
    "update": handlers.update,
    "patch": handlers.patch,
    "delete": deletion.delete,
    "deletecollection": deletion.delete_collection,
}


class Router:
    """Finds the kind and verb of a request, checks the user's rights, and calls the handler."""

    def __init__(self, pipeline: Pipeline, authenticator: Authenticator, watches: Watches) -> None:
        self._pipeline = pipeline
        self._core, self._kinds, self._authorizer = pipeline.core, pipeline.kinds, pipeline.authorizer
        self._authenticator = authenticator
        self._watches = watches
        # Groups that are served by a function in this process, as by an APIService.
        self.aggregated: dict[str, Callable[[Call], Response]] = {}
        self._discovery = discovery.Discovery(self._kinds)
        self._openapi = OpenApi(self._kinds)

    async def route(self, request: Request, warnings: list[str]) -> Response:
        """Answer a request; warnings for the client are added to the list."""
        user = self._authenticator.identify(request)
        parts = split_path(request.path)
        if parts is None:
            self._authorizer.check(user, Attributes(request.method.lower(), path=request.path))
            return self._other(request)
        group, version, namespace, plural, name, sub = parts
        query = dict(request.query)
        verb = verb_of(request.method, name, query)
        if verb in ("get", "list") and "/watch/" in request.path and is_old_watch(request.path.strip("/").split("/")):
            verb = "watch"
        if MASTERS not in user.groups:
            self._authorize(user, verb, parts, query)
        kind = self._kinds.find(group, version, plural)
        if kind is None or (namespace and not kind.namespaced):
            if not self._kinds.knows(group, version):
                return NOT_FOUND
            raise not_served()
        first, _, rest = sub.partition("/")
        if sub and first not in kind.subresources:
            raise not_found(kind, name) if kind.custom is not None else not_served()
        if rest and first != "proxy":
            raise not_served()
        if len(request.body) > MAX_BODY:
            raise too_large(MAX_BODY)
        if kind.custom is not None and kind.custom.versions[version].warning and request.method == "GET":
            warnings.append(kind.custom.versions[version].warning)
        elif kind.resource.warnings.deprecation:
            warnings.append(kind.resource.warnings.deprecation)
        return await self._dispatch(Call(verb, kind, namespace, name, sub, request, query, user, warnings))

    def _authorize(self, user: User, verb: str, parts: tuple[str, ...], query: dict[str, str]) -> None:
        group, _, namespace, plural, name, sub = parts
        if plural == "namespaces" and not group and name:
            namespace = name
        selector = query.get("fieldSelector", "")
        # A creation selects nothing, so a selector must not give it a name that a rule allows.
        if not name and verb != "create" and selector.startswith("metadata.name=") and "," not in selector:
            name = selector.removeprefix("metadata.name=").lstrip("=")
        self._authorizer.check(user, Attributes(verb, group, plural, sub, namespace, name))

    async def _dispatch(self, call: Call) -> Response:
        verb, kind = call.verb, call.kind
        if call.subresource:
            return await self._subresource(call)
        if kind.namespaced and not call.namespace and call.name:
            raise not_served()
        if verb not in kind.verbs or (kind.namespaced and not call.namespace and verb not in ("list", "watch")):
            raise method_not_allowed()
        if (verb == "create") is bool(call.name) and verb in ("create", "update", "patch"):
            raise method_not_allowed()
        if verb in ("create", "update", "patch"):
            call.check_options()
        if reviews.is_review(kind):
            return reviews.review(self._authenticator, call)
        if kind.group in self.aggregated and verb in ("get", "list"):
            return self.aggregated[kind.group](call)
        if "" in kind.resource.handlers:
            return await kind.resource.handlers[""](self._pipeline, call)
        match verb:
            case "get":
                return get_list.get(self._core, call)
            case "list":
                return get_list.list_(self._core, call)
            case "watch":
                return self._watches.open(call)
        return await _WRITES[verb](self._pipeline, call)

    async def _subresource(self, call: Call) -> Response:
        name = call.subresource.partition("/")[0]
        if call.verb not in call.kind.subresources[name].verbs:
            raise method_not_allowed()
        if name == "token":
            return reviews.request_token(self._authenticator, call)
        if name == "scale":
            return await scale.scale(self._pipeline, call)
        if name in call.kind.resource.handlers:
            return await call.kind.resource.handlers[name](self._pipeline, call)
        if name == "proxy":
            # Nothing listens behind a simulated node or service. Reading or writing the object itself is another right.
            get_list.get(self._core, call)
            raise bad_request("address not allowed")
        if call.verb == "get":
            return get_list.get(self._core, call)
        return await _WRITES[call.verb](self._pipeline, call)

    def _other(self, request: Request) -> Response:
        """Answer a path that is no resource: discovery, OpenAPI, probes, metrics."""
        if request.path == "/metrics":
            return health.page(self._core.store, self._kinds, discovery.VERSION)
        return self._discovery.answer(request) or self._openapi.answer(request) or NOT_FOUND

"""The API server: requests in, answers out. No sockets, threads or files; time and chance are handed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

from spinney.api.meta import Json, encode
from spinney.api.times import rfc3339
from spinney.embedded.apiserver.access import rbac, reviews
from spinney.embedded.apiserver.access.authentication import identify, user_of_token
from spinney.embedded.apiserver.access.credentials import Tokens
from spinney.embedded.apiserver.access.rbac import MASTERS, Attributes, Authorizer
from spinney.embedded.apiserver.admission.remote_webhooks import over_https
from spinney.embedded.apiserver.admission.webhooks import TABLES as ADMISSION_TABLES
from spinney.embedded.apiserver.admission.webhooks import Admission, Resolver
from spinney.embedded.apiserver.calls import Call, is_old_watch, split_path, verb_of
from spinney.embedded.apiserver.errors import (
    Refusal,
    forbidden,
    internal,
    method_not_allowed,
    not_found,
    not_served,
    too_large,
)
from spinney.embedded.apiserver.followers.aggregated_roles import RoleAggregator
from spinney.embedded.apiserver.followers.custom_definitions import DefinitionKeeper
from spinney.embedded.apiserver.followers.garbage_collector import Collector
from spinney.embedded.apiserver.followers.namespaces import NamespaceKeeper
from spinney.embedded.apiserver.followers.quotas import QuotaKeeper
from spinney.embedded.apiserver.http import content_types, discovery, metrics_page
from spinney.embedded.apiserver.http.content_types import JSON
from spinney.embedded.apiserver.http.openapi import OpenApi
from spinney.embedded.apiserver.read import get_list
from spinney.embedded.apiserver.read.watch import Watch, watch
from spinney.embedded.apiserver.resources import bootstrap, pod_spec_cache, pod_subresources, scale
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.pod_spec_cache import PODS, PodSpecs
from spinney.embedded.apiserver.resources.registry import Kinds
from spinney.embedded.apiserver.resources.service_allocator import Allocation
from spinney.embedded.apiserver.schema import custom_resources
from spinney.embedded.apiserver.store.conversion import load
from spinney.embedded.apiserver.store.store import Event, Item, Store
from spinney.embedded.apiserver.write import deletion, handlers
from spinney.embedded.apiserver.write.creation import create_from
from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, Response, User
from spinney.kube.clock import Clock, seconds

_log = structlog.get_logger("spinney.embedded")
MAX_BODY = 3 * 1024 * 1024
SYSTEM = User("system:apiserver", ("system:masters",))
NOT_FOUND = Response(404, b"404 page not found\n", {**JSON, "content-type": "text/plain; charset=utf-8"})


class ApiServer:
    """A Kubernetes API in this process."""

    def __init__(
        self,
        clock: Clock,
        chance: Chance,
        *,
        store: Store | None = None,
        bookmark_seconds: float = 60.0,
        resolve_webhook: Resolver | None = None,
        token_key: bytes = b"",
    ) -> None:
        self.clock = clock
        self.chance = chance
        self.store = store or Store()
        self.kinds = Kinds()
        self.admission = Admission(self, resolve_webhook or over_https)
        self.watches: set[Watch] = set()
        # Groups whose objects others make up when they are read, like those of an APIService.
        self.aggregated: dict[str, Callable[[Call], Response]] = {}
        self.bookmark_seconds = bookmark_seconds
        # What clients have to trust, where someone serves this API over HTTPS.
        self.ca_certificate = ""
        self.discovery = discovery.Discovery(self.kinds)
        self.openapi = OpenApi(self.kinds)
        self.authorizer = Authorizer(self)
        self._roles = RoleAggregator(self)
        self.definitions = DefinitionKeeper(self)
        self._collector = Collector(self)
        self._namespaces = NamespaceKeeper(self)
        self._quotas = QuotaKeeper(self)
        self.pod_specs = PodSpecs(self)
        self._tables: dict[str, Kind] = {}
        self._tables_revision = -1
        self.tokens = Tokens(token_key or chance.uid().encode())
        self._second = self._next_second = datetime.min.replace(tzinfo=UTC)
        self._second_text = ""
        self.allocation = Allocation(self.store)
        self.store.listeners.append(self._follow)

    async def start(self) -> None:
        """Make what every cluster has from its first day."""
        await bootstrap.fill(self)

    async def create(self, api_version: str, kind: str, document: Json, namespace: str = "") -> Json:
        """Create an object as the server itself."""
        found = self.kinds.by_kind(api_version, kind)
        assert found is not None, f"{api_version} {kind} is not served"
        call = Call("create", found, namespace, "", "", Request("POST", ""), {}, SYSTEM)
        return load(await create_from(self, call, document))

    def _follow(self, table: str, event: Event) -> None:
        if table == custom_resources.TABLE:
            self.definitions.follow(event)
        elif table in ADMISSION_TABLES:
            self.admission.refresh(table)
        elif table in rbac.TABLES:
            self.authorizer.forget()
            if table == rbac.CLUSTER_ROLES:
                self._roles.follow()
        elif table in pod_spec_cache.TABLES:
            self.pod_specs.forget()
        if event.deleted:
            self.definitions.object_gone(table)
        self._collector.follow(table, event)
        self._namespaces.follow(table, event)
        self._quotas.follow(event)

    def restore(self, table: str, item: Item) -> None:
        """Put back an object from before, and let everyone who follows writes know of it."""
        self.store.restore(table, item)
        self._follow(table, Event(item.version, item, None))

    async def handle(self, request: Request) -> Response:
        """The answer to one request."""
        warnings: list[str] = []
        try:
            response = await self._route(request, warnings)
        except Refusal as refusal:
            response = Response(refusal.code, encode(refusal.body()), _headers(refusal))
        except Exception as error:
            # A defect of ours must not cost others their connection.
            _log.exception("request.failed", method=request.method, path=request.path)
            response = Response(500, encode(internal(f"{type(error).__name__}: {error}").body()), JSON)
        if request.method == "HEAD":
            response = Response(response.status, b"", response.headers)
        if self.store.journal is not None:
            # Nobody is told of anything that a crash could undo, by a write's answer or by a read's.
            await self.store.durable()
        if request.query or request.headers.get("accept", "").startswith("application/yaml"):
            response = content_types.finished(request, response)
        if not warnings:
            return response
        told = ", ".join(f'299 - "{_quoted(text)}"' for text in dict.fromkeys(warnings))
        return Response(response.status, response.body, {**response.headers, "warning": told}, response.stream)

    async def _route(self, request: Request, warnings: list[str]) -> Response:
        user = identify(self, request)
        parts = split_path(request.path)
        if parts is None:
            self.authorizer.check(user, Attributes(request.method.lower(), path=request.path))
            return self._other(request)
        group, version, namespace, plural, name, sub = parts
        query = dict(request.query)
        verb = verb_of(request.method, name, query)
        if verb in ("get", "list") and "/watch/" in request.path and is_old_watch(request.path.strip("/").split("/")):
            verb = "watch"
        if MASTERS not in user.groups:
            self._authorize(user, verb, parts, query)
        kind = self.kinds.find(group, version, plural)
        if kind is None or (namespace and not kind.namespaced):
            if not self.kinds.knows(group, version):
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
        named = query.get("fieldSelector", "")
        if not name and named.startswith("metadata.name=") and "," not in named:
            name = named.removeprefix("metadata.name=").lstrip("=")
        self.authorizer.check(user, Attributes(verb, group, plural, sub, namespace, name))

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
            return reviews.review(self, call)
        if kind.group in self.aggregated and verb in ("get", "list"):
            return self.aggregated[kind.group](call)
        if kind.table == "/bindings":
            return await pod_subresources.bind_by_name(self, call)
        match verb:
            case "get":
                return get_list.get(self, call)
            case "list":
                return get_list.list_(self, call)
            case "watch":
                return watch(self, call)
        return await _WRITES[verb](self, call)

    async def _subresource(self, call: Call) -> Response:
        name = call.subresource.partition("/")[0]
        if call.verb not in call.kind.subresources[name].verbs:
            raise method_not_allowed()
        if name in _ACTIONS and (name != "proxy" or call.kind.table == PODS):
            return await _ACTIONS[name](self, call)
        if call.verb == "get":
            return get_list.get(self, call)
        return await _WRITES[call.verb](self, call)

    def _other(self, request: Request) -> Response:
        if request.path == "/metrics":
            return metrics_page.page(self.store, self.kinds, discovery.VERSION)
        found = self.discovery.answer(request) or self.openapi.answer(request)
        return found if found is not None else NOT_FOUND

    def end_watches(self) -> None:
        """End every watch, as a server that goes away does."""
        for each in tuple(self.watches):
            each.end()

    def user_of_token(self, token: str) -> User:
        """The service account that a token speaks for; a bad token is refused."""
        found = user_of_token(self, token)
        if found is None:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        return found

    def timestamp(self) -> str:
        """Now, as `metav1.Time` writes it."""
        now = self.clock.now()
        # Written once for all writes of a second.
        if not self._second <= now < self._next_second:
            self._second = seconds(now)
            self._next_second = self._second + timedelta(seconds=1)
            self._second_text = rfc3339(self._second)
        return self._second_text

    def check_namespace(self, call: Call, name: str) -> None:
        """Refuse what would be made in a namespace that is not there, or not for long."""
        if not call.kind.namespaced:
            return
        item = self.store.get("/namespaces", call.namespace)
        if item is None:
            namespaces = self.kind_of_table("/namespaces")
            assert namespaces is not None
            raise not_found(namespaces, call.namespace)
        if item.going:
            why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
            refusal = forbidden(call.kind, name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {call.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            refusal.details = {**(refusal.details or {}), "causes": [cause]}
            raise refusal

    def kind_of_table(self, table: str) -> Kind | None:
        """A kind that is kept in a table."""
        if self._tables_revision != self.kinds.revision:
            self._tables = {}
            for kind in self.kinds:
                if kind.stored == kind.api_version or kind.table not in self._tables:
                    self._tables[kind.table] = kind
            self._tables_revision = self.kinds.revision
        return self._tables.get(table)


_WRITES: dict[str, Callable[[ApiServer, Call], Awaitable[Response]]] = {
    "create": handlers.create,
    "update": handlers.update,
    "patch": handlers.patch,
    "delete": deletion.delete,
    "deletecollection": deletion.delete_collection,
}
_ACTIONS: dict[str, Callable[[ApiServer, Call], Awaitable[Response]]] = {
    "binding": pod_subresources.bind,
    "eviction": pod_subresources.evict,
    "log": pod_subresources.log,
    "exec": pod_subresources.connect,
    "attach": pod_subresources.connect,
    "portforward": pod_subresources.connect,
    "proxy": pod_subresources.connect,
    "scale": scale.scale,
    "token": reviews.request_token,
}


def _headers(refusal: Refusal) -> dict[str, str]:
    retry = (refusal.details or {}).get("retryAfterSeconds")
    return {**JSON, "retry-after": str(retry)} if retry else JSON


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')

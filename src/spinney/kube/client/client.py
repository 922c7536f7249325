"""The client: the verbs of the Kubernetes API, typed, over any transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Literal, TypeVar, cast, overload

import msgspec
from msgspec.structs import replace

from spinney.api.meta import Json, Key, Object, ObjectMeta, Resource, decode, encode
from spinney.kube.chance import Chance
from spinney.kube.client.flow import Flow, Priority, priority_of
from spinney.kube.client.retry import Backoff, Repeat, send_with_retries
from spinney.kube.client.transport import Request, Response, Transport
from spinney.kube.client.wire import (
    Listing,
    Unreadable,
    WatchEvent,
    read_event,
    read_lines,
    read_page,
    read_status,
    read_write,
)
from spinney.kube.client.writes import Write, Writes
from spinney.kube.difference import covers, without_none
from spinney.kube.errors import AlreadyExists, ConnectionLost, NotFound, NotSent, error_for
from spinney.kube.metrics import Metrics
from spinney.kube.metrics import metrics as default_metrics

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

T = TypeVar("T", bound=Object)

# Who holds a place in the flow. Tasks that it starts inherit the variable, but not the place.
_holder: ContextVar[asyncio.Task[Any] | None] = ContextVar("holder", default=None)


class Patch(StrEnum):
    """The four kinds of patch, by content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Client:
    """Talks to one API server as one user.

    `of` is a wire type, which comes back typed, or a `Resource`, which comes back as plain data. `key` is namespace and
    name, or the name alone of a cluster-scoped object.
    """

    def __init__(
        self,
        transport: Transport,
        chance: Chance | None = None,
        field_manager: str = "spinney",
        *,
        flow: Flow | None = None,
        backoff: Backoff | None = None,
        may_write: Callable[[], None] = lambda: None,
        metrics: Metrics | None = None,
    ) -> None:
        self.transport = transport
        self.chance = chance or Chance()
        self.field_manager = field_manager
        self.writes = Writes()
        self._flow = flow
        self._backoff = backoff or Backoff()
        self._may_write = may_write
        self.metrics = metrics or default_metrics()

    def named(self, component: str, may_write: Callable[[], None] | None = None) -> Client:
        """A client of one component on the same connection, with its own field manager and write counters.

        `may_write` is called right before each write is sent, and raises to stop it, for instance without the lease.
        """
        return Client(
            self.transport,
            self.chance,
            component,
            flow=self._flow,
            backoff=self._backoff,
            may_write=may_write or self._may_write,
            metrics=self.metrics,
        )

    @asynccontextmanager
    async def turn(self, priority: Priority) -> AsyncIterator[None]:
        """Wait for a place in the flow and hold it for the block, whose requests are sent one after the other.

        Use it for requests that are more or less urgent than their kind. Use it for a status, too: computed when its
        turn comes, it needs one write for all that happened meanwhile.
        """
        if self._flow is None or _has_place():
            yield
            return
        async with self._flow.turn(priority):
            token = _holder.set(asyncio.current_task())
            try:
                yield
            finally:
                _holder.reset(token)

    async def call(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: object = None,
        content_type: str = "application/json",
        *,
        repeat: Repeat | None = None,
        accept: str = "application/json",
    ) -> Response:
        """Send a request, with retries where they are safe; an error response is raised as its exception.

        By default reads are always repeated, and writes only if the first try certainly had no effect.
        """
        headers = {"accept": accept}
        payload = b""
        if body is not None:
            headers["content-type"] = content_type
            payload = body if isinstance(body, bytes) else encode(body)
        request = Request(method, path, tuple(query), headers, payload)
        if repeat is None:
            repeat = Repeat.ALWAYS if method == "GET" else Repeat.UNLESS_DONE
        response = await send_with_retries(self._send, request, repeat, self._backoff, self.chance)
        if response.status >= 400:
            raise error_for(read_status(response))
        return response

    async def _send(self, request: Request) -> Response:
        # A watch would keep its place in the flow for as long as it lasts.
        if self._flow is None or _has_place() or ("watch", "true") in request.query:
            return await self._send_now(request)
        async with self._flow.turn(priority_of(request)):
            return await self._send_now(request)

    async def _send_now(self, request: Request) -> Response:
        if not _is_read_only(request):
            self._may_write()
        response = await self.transport.send(request)
        self.metrics.requests(request.method, response.status).inc()
        return response

    async def _write(
        self,
        write: Write,
        method: str,
        query: Sequence[tuple[str, str]],
        body: object,
        content_type: str = "application/json",
        *,
        repeat: Repeat = Repeat.UNLESS_DONE,
    ) -> Response:
        path = write.resource.path(write.namespace, "" if write.verb == "create" else write.name, write.subresource)
        dry = ("dryRun", "All") in query
        try:
            response = await self.call(method, path, query, body, content_type, repeat=Repeat.ALWAYS if dry else repeat)
        except NotSent:
            raise
        except ConnectionLost:
            if not dry:
                self.writes.note(replace(write, lost=True))
            raise
        if not dry:
            self.writes.note(read_write(write, response.body))
            self.metrics.writes(self.field_manager, write.verb, write.resource.kind).inc()
        return response

    @overload
    async def get(self, of: type[T], key: Key | str, *, subresource: str = "") -> T: ...
    @overload
    async def get(self, of: Resource, key: Key | str, *, subresource: str = "") -> Json: ...
    async def get(self, of: type[T] | Resource, key: Key | str, *, subresource: str = "") -> T | Json:
        """Read one object."""
        namespace, name = _split(key)
        response = await self.call("GET", _resource(of).path(namespace, name, subresource))
        return _read(of, response.body)

    @overload
    async def find(self, of: type[T], key: Key | str) -> T | None: ...
    @overload
    async def find(self, of: Resource, key: Key | str) -> Json | None: ...
    async def find(self, of: type[T] | Resource, key: Key | str) -> T | Json | None:
        """Read one object; None where it is not there."""
        try:
            return await self.get(of, key)
        except NotFound:
            return None

    async def metadata(self, of: type[T], key: Key | str) -> ObjectMeta | None:
        """Read the metadata of an object, without its spec and status; None where it is not there."""
        namespace, name = _split(key)
        try:
            response = await self.call("GET", of.resource.path(namespace, name, ""), accept=_METADATA)
        except NotFound:
            return None
        return decode(Object, response.body).metadata

    async def list(
        self, of: type[T], namespace: str = "", *, labels: str = "", fields: str = "", page: int = 500
    ) -> Listing[T]:
        """List all objects in pages; an empty namespace means all namespaces."""
        items: list[T] = []
        unreadable: list[Unreadable] = []
        version = ""
        async for part in self.pages(of, namespace, labels=labels, fields=fields, page=page):
            items += part.items
            unreadable += part.unreadable
            version = part.resource_version
        return Listing(items, version, tuple(unreadable))

    async def pages(
        self, of: type[T], namespace: str = "", *, labels: str = "", fields: str = "", page: int = 500
    ) -> AsyncIterator[Listing[T]]:
        """List all objects page by page, without holding them all; every page is of the same version."""
        token = ""
        while True:
            query = [("limit", str(page)), *_filters(labels, fields)]
            query += [("continue", token)] if token else []
            response = await self.call("GET", _resource(of).path(namespace), query)
            part, token = read_page(of, response.body)
            yield part
            if not token:
                return

    def watch(
        self, of: type[T], namespace: str = "", *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """Watch events after a version, bookmarks included, until the server ends the stream."""
        return self._watch(of, namespace, [("resourceVersion", resource_version), *_filters(labels, fields)])

    def stream(
        self, of: type[T], namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> AsyncIterator[WatchEvent[T]]:
        """List and watch in one: existing objects as ADDED, then SYNCED, then changes.

        Servers without this feature raise `Invalid` at the first event.
        """
        query = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        return self._watch(of, namespace, [*query, *_filters(labels, fields)])

    async def _watch(
        self, of: type[T], namespace: str, query: Sequence[tuple[str, str]]
    ) -> AsyncIterator[WatchEvent[T]]:
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), *query]
        response = await self.call("GET", _resource(of).path(namespace), query, repeat=Repeat.NEVER)
        if response.stream is None:
            raise ConnectionLost("the server answered a watch with a whole body")
        async with aclosing(cast(AsyncGenerator[bytes, None], read_lines(response.stream))) as lines:
            async for line in lines:
                yield read_event(of, line)

    @overload
    async def create(
        self, of: type[T], body: T | Json, namespace: str = "", *, dry_run: bool = False, strict: bool = False
    ) -> T: ...
    @overload
    async def create(
        self, of: Resource, body: Json, namespace: str = "", *, dry_run: bool = False, strict: bool = False
    ) -> Json: ...
    async def create(
        self,
        of: type[T] | Resource,
        body: T | Json,
        namespace: str = "",
        *,
        dry_run: bool = False,
        strict: bool = False,
    ) -> T | Json:
        """Create an object. `strict` rejects unknown fields; not checking them saves the server a fifth."""
        resource = _resource(of)
        document = cast(Json, body if isinstance(body, dict) else msgspec.to_builtins(body))
        document = {**document, "apiVersion": resource.api_version, "kind": resource.kind}
        query = [("fieldManager", self.field_manager)]
        query += [("dryRun", "All")] if dry_run else []
        query += [("fieldValidation", "Strict" if strict else "Ignore")]
        metadata = document.get("metadata") or {}
        if not metadata.get("name") and not metadata.get("generateName"):
            # Only requests that store nothing have no name, such as an access review: they may be repeated.
            response = await self.call("POST", resource.path(namespace), query, document, repeat=Repeat.ALWAYS)
            return _read(of, response.body)
        return _read(of, await self._create(resource, namespace, query, document))

    async def _create(
        self, resource: Resource, namespace: str, query: Sequence[tuple[str, str]], document: Json
    ) -> bytes:
        """Create; if the response is lost, read the object: one that covers what we sent is ours."""
        generated = not (document.get("metadata") or {}).get("name")
        named = self._with_name(document)
        lost = False
        for attempt in range(self._backoff.attempts):
            name = named["metadata"]["name"]
            write = Write("create", resource, namespace, name)
            try:
                return (await self._write(write, "POST", query, named)).body
            except NotSent:
                raise
            except ConnectionLost:
                lost = True
                stored = await self._find(write)
                if stored is not None and covers(msgspec.json.decode(stored), without_none(named)):
                    return stored
                await asyncio.sleep(self._backoff.delay(attempt, self.chance))
            except AlreadyExists:
                stored = await self._find(write) if lost else None
                if stored is not None and covers(msgspec.json.decode(stored), without_none(named)):
                    return stored
                if not generated:
                    raise
                named = self._with_name(document)
        raise ConnectionLost(f"creating {resource.kind} {namespace}/{name}: no response arrived, and it does not exist")

    async def _find(self, write: Write) -> bytes | None:
        try:
            return (await self.call("GET", write.resource.path(write.namespace, write.name))).body
        except NotFound:
            return None

    def _with_name(self, document: Json) -> Json:
        """Generate the name here, not on the server, so that a create with a lost response can be found."""
        metadata = document.get("metadata") or {}
        if metadata.get("name"):
            return document
        base = str(metadata.get("generateName", ""))[:58]
        return {**document, "metadata": {**metadata, "name": base + self.chance.suffix()}}

    @overload
    async def patch(
        self,
        of: type[T],
        key: Key | str,
        patch: Mapping[str, Any] | Sequence[Json],
        *,
        kind: Patch = Patch.MERGE,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T: ...
    @overload
    async def patch(
        self,
        of: Resource,
        key: Key | str,
        patch: Mapping[str, Any] | Sequence[Json],
        *,
        kind: Patch = Patch.MERGE,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Json: ...
    async def patch(
        self,
        of: type[T] | Resource,
        key: Key | str,
        patch: Mapping[str, Any] | Sequence[Json],
        *,
        kind: Patch = Patch.MERGE,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> T | Json:
        """Change an object. A `metadata.resourceVersion` in a merge patch is a precondition.

        Unknown fields are not checked, as in `create`.
        """
        namespace, name = _split(key)
        resource = _resource(of)
        body: object = patch
        if kind is Patch.APPLY:
            body = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                **cast(Mapping[str, Any], patch),
            }
        query = [("fieldManager", self.field_manager), ("fieldValidation", "Ignore")]
        query += [("force", "true")] if force else []
        query += [("dryRun", "All")] if dry_run else []
        write = Write("patch", resource, namespace, name, subresource)
        # A JSON patch may not be idempotent, for instance an "add" to a list.
        repeat = Repeat.UNLESS_DONE if kind is Patch.JSON else Repeat.ALWAYS
        response = await self._write(write, "PATCH", query, body, kind.value, repeat=repeat)
        return _read(of, response.body)

    async def delete(
        self,
        of: type[Object] | Resource,
        key: Key | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Literal["", "Foreground", "Background", "Orphan"] = "",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object; with a UID or version, only that exact one."""
        namespace, name = _split(key)
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        # By name alone, a retry might delete a new object of the same name.
        repeat = Repeat.ALWAYS if preconditions else Repeat.UNLESS_DONE
        write = Write("delete", _resource(of), namespace, name, uid=uid)
        await self._write(write, "DELETE", (), options, repeat=repeat)

    async def post(self, of: type[Object] | Resource, key: Key | str, subresource: str, body: Json) -> Json:
        """Create a subresource: a binding, an eviction, a token."""
        namespace, name = _split(key)
        # 429 on an eviction is the disruption budget's answer, and for the caller to handle.
        repeat = Repeat.NEVER if subresource == "eviction" else Repeat.UNLESS_DONE
        write = Write("post", _resource(of), namespace, name, subresource)
        response = await self._write(write, "POST", (), body, repeat=repeat)
        return cast(Json, msgspec.json.decode(response.body))

    async def close(self) -> None:
        """Close connections."""
        await self.transport.close()


def _is_read_only(request: Request) -> bool:
    """Whether a request changes nothing: a standby may still send dry runs and access reviews."""
    if request.method == "GET" or ("dryRun", "All") in request.query:
        return True
    return request.path.startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"))


def _has_place() -> bool:
    holder = _holder.get()
    return holder is not None and holder is asyncio.current_task()


def _split(key: Key | str) -> Key:
    return ("", key) if isinstance(key, str) else key


def _filters(labels: str, fields: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value]


def _resource(of: type[Object] | Resource) -> Resource:
    return of if isinstance(of, Resource) else of.resource


def _read(of: type[T] | Resource, body: bytes) -> T | Json:
    return cast(Json, msgspec.json.decode(body)) if isinstance(of, Resource) else decode(of, body)

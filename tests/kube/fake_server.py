"""A scripted API server of a few lines, to show the runtime what real ones do wrong: cut, lose, refuse, forget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar
from urllib.parse import parse_qs

import msgspec

from spinney.api import selector
from spinney.api.meta import Json, Object, Resource
from spinney.kube.caches.cache import Caches
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response
from spinney.kube.clock import LoopClock
from spinney.kube.errors import ConnectionLost, status_body
from spinney.kube.runtime import Runtime
from spinney.sim.loop import START


class Thing(Object, frozen=True):
    """A kind without a meaning."""

    resource: ClassVar[Resource] = Resource("example.com/v1", "Thing", "things")
    spec: Json = msgspec.field(default_factory=dict)


def thing(name: str, namespace: str = "default", **spec: Any) -> Json:
    """A thing as plain data."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


Fault = Callable[[Request], Awaitable[Response | None]]


class FakeServer:
    """Objects by path, one version for all, watches with a history, and faults for requests that match."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 0
        self.history: list[tuple[int, str, str, Json]] = []
        self.oldest = 0
        self.requests: list[Request] = []
        self.faults: list[tuple[Callable[[Request], bool], Fault]] = []
        self.held: asyncio.Event | None = None
        self._watchers: dict[asyncio.Queue[bytes | None], str] = {}

    # What tests do to it.

    def put(self, body: Json) -> Json:
        """Store an object as somebody else would."""
        path = _path(body)
        previous = self.objects.get(path)
        self.version += 1
        metadata = {"uid": f"uid-{self.version}", **(previous["metadata"] if previous else {}), **body["metadata"]}
        metadata["resourceVersion"] = str(self.version)
        stored = {**body, "metadata": metadata}
        self.objects[path] = stored
        self._tell("MODIFIED" if previous else "ADDED", path, stored)
        return stored

    def remove(self, name: str, namespace: str = "default") -> None:
        """Delete a thing as somebody else would."""
        self._drop(Thing.resource.path(namespace, name))

    def cut(self) -> None:
        """End every watch as a closing connection does."""
        for queue in self._watchers:
            queue.put_nowait(None)

    def compact(self) -> None:
        """Forget the history: older versions can no longer be watched from."""
        self.history.clear()
        self.oldest = self.version

    def lag(self) -> asyncio.Event:
        """Hold watch events back until the returned event is set."""
        self.held = asyncio.Event()
        return self.held

    def once(self, method: str, fault: Fault, times: int = 1, path: str = "") -> None:
        """Let the next requests of a method meet a fault."""
        left = times

        def matches(request: Request) -> bool:
            nonlocal left
            if request.method != method or path not in request.path or left == 0:
                return False
            left -= 1
            return True

        self.faults.append((matches, fault))

    def bookmark(self) -> None:
        """Tell every watch how far the world is."""
        line = {"type": "BOOKMARK", "object": {"kind": "Thing", "metadata": {"resourceVersion": str(self.version)}}}
        for queue in self._watchers:
            queue.put_nowait(msgspec.json.encode(line) + b"\n")

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._watchers)

    def count(self, method: str) -> int:
        """How many requests of a method came."""
        return sum(request.method == method for request in self.requests)

    # What a transport does.

    async def send(self, request: Request) -> Response:
        """Answer as an API server would, unless a fault says otherwise."""
        self.requests.append(request)
        for matches, fault in self.faults:
            if matches(request):
                response = await fault(request)
                if response is not None:
                    return response
        return self.answer(request)

    def answer(self, request: Request) -> Response:
        """The honest answer."""
        query = dict(request.query)
        body = msgspec.json.decode(request.body) if request.body else {}
        match request.method:
            case "GET" if query.get("watch") == "true":
                return self._watch(request.path, query)
            case "GET" if request.path in self.objects:
                return _ok(self.objects[request.path])
            case "GET" if request.path.endswith(("/things", "/events", "/leases")):
                return self._list(request.path, selector.parse(query.get("labelSelector", "")))
            case "POST":
                namespace = request.path.partition("/namespaces/")[2].partition("/")[0]
                return self._create({**body, "metadata": {"namespace": namespace, **body["metadata"]}})
            case "PATCH" if "apply-patch" in request.headers["content-type"] and request.path not in self.objects:
                return _ok(self.put(body), 201)
            case "PATCH" if request.path in self.objects:
                return self._patch(request.path, body)
            case "DELETE" if request.path in self.objects:
                self._drop(request.path)
                return _ok({"kind": "Status", "status": "Success"})
        return error(404, "NotFound", f"{request.path} not found")

    async def close(self) -> None:
        """Nothing is held."""

    def _list(self, path: str, labels: selector.LabelSelector) -> Response:
        items = [item for at, item in self.objects.items() if _in(at, path) and _matches(labels, item)]
        return _ok({"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _create(self, body: Json) -> Response:
        if _path(body) in self.objects:
            return error(409, "AlreadyExists", f"{_path(body)} already exists")
        return _ok(self.put(body), 201)

    def _patch(self, path: str, patch: Json | list[Json]) -> Response:
        stored = self.objects[path]
        if isinstance(patch, list):
            return _ok(self.put(_edited(stored, patch)))
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != stored["metadata"]["resourceVersion"]:
            return error(409, "Conflict", "the object has been modified")
        merged = _merge(stored, patch)
        return _ok(stored if merged == stored else self.put(merged))

    def _drop(self, path: str) -> None:
        gone = self.objects.pop(path)
        self.version += 1
        metadata = {**gone["metadata"], "resourceVersion": str(self.version)}
        self._tell("DELETED", path, {**gone, "metadata": metadata})

    def _tell(self, kind: str, path: str, body: Json) -> None:
        self.history.append((self.version, kind, path, body))
        for queue, at in self._watchers.items():
            if _in(path, at):
                queue.put_nowait(_line(kind, body))

    def _watch(self, path: str, query: dict[str, str]) -> Response:
        since = int(query.get("resourceVersion") or 0)
        if query.get("sendInitialEvents"):
            return error(422, "Invalid", "sendInitialEvents is forbidden for watch")
        if since < self.oldest:
            return error(410, "Expired", f"too old resource version: {since} ({self.oldest})")
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for version, kind, at, body in self.history:
            if version > since and _in(at, path):
                queue.put_nowait(_line(kind, body))
        self._watchers[queue] = path
        return Response(200, stream=self._stream(queue))

    async def _stream(self, queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        try:
            while (line := await queue.get()) is not None:
                if self.held is not None:
                    await self.held.wait()
                yield line
        finally:
            del self._watchers[queue]


def runtime(world: FakeServer, seed: int = 1) -> Runtime:
    """A component's life in a world, in virtual time."""
    client = Client(world, Chance(seed))
    return Runtime(client=client, caches=Caches(client), clock=LoopClock(START))


async def settle() -> None:
    """Let everything that is ready run, without moving time by more than a blink."""
    for _ in range(50):
        await asyncio.sleep(0)


def refuse(code: int, reason: str = "", **headers: str) -> Fault:
    """A fault: the server says no."""

    async def fault(_: Request) -> Response | None:
        return Response(code, error(code, reason, "refused").body, headers)

    return fault


def lose_answer(world: FakeServer) -> Fault:
    """A fault: the server acts, and its answer never comes."""

    async def fault(request: Request) -> Response | None:
        world.answer(request)
        raise ConnectionLost("connection reset")

    return fault


async def lose_request(_: Request) -> Response | None:
    """A fault: the request gets lost, and nobody can tell."""
    raise ConnectionLost("connection reset")


def error(code: int, reason: str, message: str) -> Response:
    """A Status."""
    return Response(code, msgspec.json.encode(status_body(code, reason, message)))


def _ok(body: Json, code: int = 200) -> Response:
    return Response(code, msgspec.json.encode(body))


def _matches(labels: selector.LabelSelector, body: Json) -> bool:
    return selector.matches(labels, body["metadata"].get("labels", {}))


def _path(body: Json) -> str:
    metadata = body["metadata"]
    resource = Resource(body["apiVersion"], body["kind"], body["kind"].lower() + "s")
    return resource.path(metadata.get("namespace", ""), metadata["name"])


def _in(path: str, collection: str) -> bool:
    root, _, plural = collection.rpartition("/")
    return path.startswith(root + "/") and path.split("/")[-2] == plural


def _line(kind: str, body: Json) -> bytes:
    return msgspec.json.encode({"type": kind, "object": body}) + b"\n"


def _edited(stored: Json, operations: list[Json]) -> Json:
    """The object after the additions of a JSON patch."""
    result: Json = msgspec.json.decode(msgspec.json.encode(stored))
    for operation in operations:
        *parents, last = operation["path"].strip("/").split("/")
        place: Any = result
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if operation["op"] == "add":
            place[last] = operation["value"]
    return result


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


def query_of(request: Request) -> dict[str, list[str]]:
    """A request's query, by name."""
    return parse_qs("&".join(f"{key}={value}" for key, value in request.query))

"""The API of the dashboard: answers as JSON, each with the rights of its reader."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import cast

import msgspec
from aiohttp import web

from spinney.answers.model import Answer, Queue, Topology, Workload, WorkloadTree
from spinney.answers.whatif.changes import ChangeError
from spinney.api.meta import encode
from spinney.web.board import Board
from spinney.web.history import History
from spinney.web.limits import ClientLimits
from spinney.web.overview import overview_of
from spinney.web.rights import Scope
from spinney.web.rows import KINDS, RowKind
from spinney.web.settings import DashboardSettings
from spinney.web.source import Source
from spinney.web.stream import Stream
from spinney.web.users import COOKIE, LONGEST_TOKEN, ByToken, Identity, NotLoggedIn, WebUser
from spinney.web.viewer import View, Viewers
from spinney.web.visible import NODES, PODS, QUEUES, visible_tree
from spinney.web.whatif import read_bounded_request

# Bytes from which an answer is compressed, and from which a thread does it.
_SMALL = 2048
_LARGE = 65536


class Endpoints:
    """Handlers of `/api/v1`."""

    def __init__(
        self,
        settings: DashboardSettings,
        identity: Identity,
        viewers: Viewers,
        live: Source,
        limits: ClientLimits,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._viewers = viewers
        self._live = live
        self._board: Board = live.board
        self._history: History = live.history
        self._limits = limits

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Register every path."""
        router.add_get("/api/v1/session", self._session)
        router.add_post("/api/v1/session", self._log_in)
        router.add_delete("/api/v1/session", self._log_out)
        for kind in ("workloads", "nodes", "queues", "evictions"):
            router.add_get(f"/api/v1/{kind}", self._listing)
        router.add_get("/api/v1/workloads/{namespace}/{kind}/{name}", self._workload)
        router.add_get("/api/v1/overview", self._overview)
        router.add_get("/api/v1/topology", self._topology)
        router.add_get("/api/v1/waiting", self._waiting)
        router.add_get("/api/v1/capacity", self._capacity)
        router.add_get("/api/v1/history", self._moment)
        router.add_get("/api/v1/history/range", self._range)
        router.add_get("/api/v1/history/queues", self._queue_history)
        router.add_get("/api/v1/stream", self._stream)
        router.add_post("/api/v1/what-if", self._what_if)

    # Sessions

    async def _session(self, request: web.Request) -> web.Response:
        user = await self._identity.user(request)
        name = user.name if user is not None else ""
        return _json({"login": self._settings.login, "user": name, "at": self._live.now()})

    async def _log_in(self, request: web.Request) -> web.Response:
        if not isinstance(self._identity, ByToken):
            raise web.HTTPNotFound(text="there is no login by token here\n")
        try:
            token = str(msgspec.json.decode(await request.read())["token"]).strip()
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise web.HTTPBadRequest(text='send {"token": "…"}\n') from error
        if len(token) > LONGEST_TOKEN:
            raise web.HTTPBadRequest(text=f"a token has at most {LONGEST_TOKEN} characters\n")
        user = await self._identity.review(token)
        response = _json({"login": self._settings.login, "user": user.name, "at": self._live.now()})
        secure = request.secure or request.headers.get("X-Forwarded-Proto") == "https"
        response.set_cookie(COOKIE, token, httponly=True, samesite="Strict", secure=secure, path="/")
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        response = _json({})
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
        return response

    # Rows

    async def _view(self, request: web.Request) -> View:
        """What the sender of a request may see, now or at the moment `at`."""
        user = await self._identity.user(request)
        await self._live.ready()
        table, at, tag = self._board.table, self._board.at, self._board.tag
        if wanted := request.query.get("at"):
            past = self._history.at(_moment(wanted))
            if past is None:
                raise web.HTTPNotFound(text=f"nothing is recorded of {wanted}\n")
            table, at = past, wanted
        scope = await self._viewers.scope(user, table)
        return View(table, at, scope, self._viewers.kinds, tag, self._live.missing())

    async def _listing(self, request: web.Request) -> web.Response:
        kind = cast(RowKind, request.path.rpartition("/")[2])
        view = await self._view(request)
        # Ten thousand nodes are 23 MB of JSON: a thread encodes them while other requests are answered.
        return await asyncio.to_thread(_json, view.listing(kind), view.tag)

    async def _workload(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        parts = request.match_info
        row = view.find(f"{parts['namespace']}/{parts['kind']}/{parts['name']}")
        if row is None:
            raise web.HTTPNotFound(text="there is no such workload, or you may not see it\n")
        if request.query.get("at"):
            return _json(WorkloadTree(workload=row))
        tree = await self._live.tree(row)
        return _json(visible_tree(tree or WorkloadTree(workload=row), view.scope), view.tag)

    async def _overview(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        capacity = await self._live.capacity() if view.scope.allows(PODS) and view.scope.allows(NODES) else None
        return _json(overview_of(view, capacity), view.tag)

    async def _topology(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        if not view.scope.allows(NODES):
            return _json(Topology())
        topology = await self._live.topology()
        # The free GPUs of a domain reveal what all pods in it use.
        return _json(topology if view.scope.allows(PODS) else msgspec.structs.replace(topology, domains=()))

    async def _waiting(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        listing = view.listing("workloads")
        waiting = [row for row in listing.items if isinstance(row, Workload) and row.phase == "Waiting"]
        return _json(msgspec.structs.replace(listing, items=waiting), view.tag)

    async def _capacity(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        if not (view.scope.allows(PODS) and view.scope.allows(NODES)):
            raise web.HTTPForbidden(text="capacity is known only to who may list all nodes and all pods\n")
        return _json(await self._live.capacity())

    async def _what_if(self, request: web.Request) -> web.Response:
        """Answer a what-if; it is about the whole cluster, so only users who may read all of it may ask."""
        user = await self._identity.user(request)
        self._limits.what_if(_client(request, user))
        view = await self._view(request)
        if not all(view.scope.allows(resource) for resource in (PODS, NODES, QUEUES)):
            raise web.HTTPForbidden(text="a what-if is for who may list all pods, nodes and queues\n")
        try:
            wanted = read_bounded_request(await request.read())
            return _json(await self._live.what_if(wanted.changes))
        except ChangeError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error

    # The past

    async def _range(self, request: web.Request) -> web.Response:
        await self._identity.user(request)
        moments = self._history.moments
        if not moments:
            return _json({"from": None, "to": None})
        return _json({"from": moments[0], "to": moments[-1]})

    async def _moment(self, request: web.Request) -> web.Response:
        if "at" not in request.query:
            raise web.HTTPBadRequest(text="say of when: ?at=2026-01-31T12:00:00Z\n")
        view = await self._view(request)
        return await asyncio.to_thread(_json, {"at": view.at, **{kind: view.listing(kind) for kind in KINDS}})

    async def _queue_history(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        queues = [row for row in view.rows("queues") if isinstance(row, Queue)]
        names, parents = {row.name for row in queues}, {row.parent for row in queues}
        samples = [
            {"at": sample.at, "gpus": {name: gpus for name, gpus in sample.gpus.items() if name in names}}
            for sample in self._history.samples
        ]
        # The amount of a queue includes the queues below it: only leaves can be added up.
        return _json({"at": view.at, "leaves": sorted(names - parents), "samples": samples})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        user = await self._identity.user(request)
        await self._live.ready()

        async def scope() -> Scope:
            # A token may expire while its stream is open.
            return await self._viewers.scope(await self._identity.user(request))

        kinds = frozenset(request.query.get("kinds", ",".join(KINDS)).split(",")) & frozenset(KINDS)
        since = request.headers.get("Last-Event-ID") or request.query.get("since", "")
        stream = Stream(
            self._board,
            cast(frozenset[RowKind], kinds),
            self._viewers.kinds.known,
            scope,
        )
        with self._limits.stream(_client(request, user)):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
            await response.prepare(request)
            try:
                await stream.send(response, since)
            except (ConnectionError, NotLoggedIn):
                pass
            return response


def _json(answer: Answer | dict[str, object], tag: str = "") -> web.Response:
    body = encode(answer)
    headers = {"Content-Type": "application/json"}
    if tag:
        headers["Spinney-Seq"] = tag
    response = web.Response(body=body, headers=headers, zlib_executor_size=_LARGE)
    if len(body) > _SMALL:
        response.enable_compression()
    return response


def _client(request: web.Request, user: WebUser | None) -> str:
    return user.name if user is not None else request.remote or ""


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"at is {text!r}: it must be a time such as 2026-01-31T12:00:00Z\n") from error
    if moment.tzinfo is None:
        raise web.HTTPBadRequest(text=f"at is {text!r}: it must name its time zone, such as Z\n")
    return moment

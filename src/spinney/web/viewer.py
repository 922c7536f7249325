"""One reader's view of the board: the rows that a user may see, now or at a moment of the past."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.answers.model import Answer, Event, Eviction, Listing, Node, Unread, Workload
from spinney.api.meta import Resource
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.errors import ApiError, ConnectionLost
from spinney.web.board import Board
from spinney.web.rights import EVERYTHING, Reviewer, Scope
from spinney.web.rows import RowKind, Table
from spinney.web.users import WebUser
from spinney.web.visible import RESOURCES, namespace_of, unread, visible


class KindsServed:
    """Where the kinds of workloads are served; looked up once for each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.known: dict[tuple[str, str], Resource] = {}

    async def learn(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Look up the kinds that are not known yet; one that is not served stays unknown, and hidden."""
        for api_version, kind in set(wanted) - self.known.keys():
            try:
                resource = await Discovery(self._client).resource(api_version, kind)
            except (ApiError, ConnectionLost):
                continue
            if resource is not None:
                self.known[api_version, kind] = resource


@dataclass(frozen=True)
class View:
    """The rows of a table that a scope lets through."""

    table: Table
    at: str
    scope: Scope
    kinds: KindsServed
    # `epoch-seq` of the table: changes after it are missing.
    tag: str = ""
    # What the server itself could not read.
    missing: tuple[Unread, ...] = ()

    def rows(self, kind: RowKind) -> list[Answer]:
        """The visible rows of a kind."""
        return [row for _, row in visible(self.table[kind], self.scope, self.kinds.known)]

    def listing(self, kind: RowKind) -> Listing[Answer]:
        """The visible rows of a kind, and what is missing among them."""
        partial = [*self.missing, *unread(kind, self.scope, namespaces_of(self.table))]
        return Listing(at=self.at, items=self.rows(kind), partial=partial)

    def find(self, key: str) -> Workload | None:
        """A visible workload by its key."""
        row = self.table["workloads"].get(key)
        seen = dict(visible({key: row}, self.scope, self.kinds.known)).get(key) if row is not None else None
        return seen if isinstance(seen, Workload) else None


class Viewers:
    """Makes views for users."""

    def __init__(self, board: Board, reviewer: Reviewer, kinds: KindsServed) -> None:
        self._board = board
        self._reviewer = reviewer
        self.kinds = kinds

    async def scope(self, user: WebUser | None, table: Table | None = None) -> Scope:
        """What a user may see of a table; by default of the newest."""
        if user is None:
            return EVERYTHING
        table = table or self._board.table
        refs = [row.ref for row in table["workloads"].values() if isinstance(row, Workload)]
        await self.kinds.learn((ref.api_version, ref.kind) for ref in refs)
        resources = {*RESOURCES, *self.kinds.known.values()}
        return await self._reviewer.scope(user, resources, namespaces_of(table))


def namespaces_of(table: Table) -> set[str]:
    """The namespaces that rows of a table are about."""
    names = {row.ref.namespace for row in table["workloads"].values() if isinstance(row, Workload)}
    for row in table["nodes"].values():
        if isinstance(row, Node):
            names |= {sharer.namespace for gpu in row.gpus for sharer in gpu.sharers}
    for row in (*table["evictions"].values(), *table["events"].values()):
        if isinstance(row, Eviction | Event):
            names.add(namespace_of(row))
    return names - {""}

"""A data folder: an API server whose objects, token key and certificate authority survive a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from spinney.api.meta import decode, encode
from spinney.embedded.apiserver.access.credentials import SERVER_NAMES, Authority
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.schema import custom_resources
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.apiserver.store.journal import SqliteJournal
from spinney.embedded.apiserver.store.store import NO_LABELS, SPACE, Item, Store
from spinney.kube.admission.certificates import Bundle, renewed
from spinney.kube.chance import Chance
from spinney.kube.clock import Clock


class _Owner(msgspec.Struct):
    uid: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class _Head(msgspec.Struct):
    metadata: _Metadata


_head = msgspec.json.Decoder(_Head).decode


class DataFolder:
    """Opens a folder, and makes a server and an authority from it."""

    def __init__(self, folder: Path) -> None:
        self.journal = SqliteJournal(folder / "cluster.db")

    def server(self, clock: Clock, chance: Chance, space: int = SPACE) -> ApiServer:
        """The API server with all objects from before."""
        secret = self.journal.note("token-key", chance.uid().encode())
        store = Store(journal=self.journal, space=space)
        server = ApiServer(clock, chance, store=store, token_key=secret)
        self._restore(server)
        return server

    def authority(self, clock: Clock) -> Authority:
        """The authority that existing kubeconfigs trust."""
        bundle = renewed(None, SERVER_NAMES, clock.now())
        return Authority(clock.now(), decode(Bundle, self.journal.note("authority", encode(bundle))))

    def _restore(self, server: ApiServer) -> None:
        """Restore all objects, CustomResourceDefinitions first, because they define the other kinds."""
        last_versions = dict(self.journal.resources())
        for table in sorted(last_versions, key=lambda name: name != custom_resources.TABLE):
            kind = server.kinds.of_table(table)
            for key, version, body in self.journal.objects(table):
                head = _head(body).metadata
                document: Any = msgspec.json.decode(body)
                fields = selectable_fields.values(kind, document) if kind is not None else {}
                owners = tuple(owner.uid for owner in head.owner_references or ())
                labels, going = head.labels or NO_LABELS, bool(head.deletion_timestamp)
                item = Item(key, version, body, head.uid, labels, fields, owners, going, head.finalizers)
                server.restore(table, item)
            server.store.resume(table, last_versions[table])

    async def close(self) -> None:
        """Commit pending writes, and close the folder."""
        await self.journal.close()

"""The last step of a write: put the object into the store."""

from __future__ import annotations

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.store.conversion import to_stored
from spinney.embedded.apiserver.store.store import Fields, Item, NotStored, TooLarge


def commit(core: Core, call: Call, document: Json, selectable: Fields | None = None) -> Item:
    """Store an object; for a dry run, only return it as it would be stored."""
    kind = call.kind
    document = {"kind": kind.kind, "apiVersion": kind.api_version, **document}
    if kind.stored != kind.api_version:
        document = kind.resource.complete(to_stored(kind, document))
    fields = selectable_fields.values(kind, document) if selectable is None else selectable
    if call.dry_run:
        metadata = document["metadata"]
        labels = metadata.get("labels") or {}
        return Item(call.key, core.store.version, encode(document), metadata["uid"], labels, fields)
    try:
        return core.store.put_within_limits(kind.table, call.key, document, fields)
    except TooLarge as error:
        raise Refusal(413, "RequestEntityTooLarge", str(error)) from None
    except NotStored as error:
        # Kubernetes passes etcd's error on.
        raise Refusal(500, "", str(error)) from None

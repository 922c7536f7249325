"""Objects as a Table, or as their metadata only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from spinney.api.meta import Json, encode
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import bad_request
from spinney.embedded.apiserver.kubectl import columns
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.store.conversion import from_stored
from spinney.embedded.apiserver.store.store import Item, load


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw


_decode_metadata = msgspec.json.Decoder(_MetadataOnly).decode
_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


def partial(item: Item) -> bytes:
    """Only the metadata."""
    return _PARTIAL + bytes(_decode_metadata(item.body).metadata) + b"}"


def of_item(core: Core, call: Call, item: Item, *, include_columns: bool) -> bytes:
    """A Table of one object."""
    metadata = {"resourceVersion": str(item.version)}
    rows = b",".join(rows_of(core, call, [item]))
    return head(call.kind, metadata, include_columns=include_columns) + rows + b"]}"


def head(kind: Kind, metadata: Json, *, include_columns: bool) -> bytes:
    """A Table up to its first row."""
    definitions = list(columns.for_kind(kind).headers) if include_columns else None
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions}
    return encode(table)[:-1] + b',"rows":['


def rows_of(core: Core, call: Call, items: Iterable[Item]) -> Iterator[bytes]:
    """The rows of a Table, written one by one as they are taken."""
    return _rows(call.kind, items, included(call), core.clock.now())


def included(call: Call) -> str:
    """How much of each object the rows of a Table have."""
    include = call.query.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        why = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {why}")
    return include


def _rows(kind: Kind, items: Iterable[Item], include: str, now: datetime) -> Iterator[bytes]:
    definition, row_conditions = columns.for_kind(kind), kind.resource.table.row_conditions
    for item in items:
        document = load(item)
        row: Json = {"cells": definition.cells(document, now), "object": None}
        if row_conditions is not None and (conditions := row_conditions(document)):
            row["conditions"] = conditions
        document = from_stored(kind, document)
        if include == "Object":
            row["object"] = document
        elif include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": document["metadata"],
            }
        yield encode(row)


def bookmark(kind: Kind, metadata: Json, now: datetime) -> Json:
    """A bookmark as a Table with one row."""
    cells = columns.for_kind(kind).cells({"metadata": {"name": ""}}, now)
    partial_object = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "columnDefinitions": None,
        "rows": [{"cells": cells, "object": partial_object}],
    }

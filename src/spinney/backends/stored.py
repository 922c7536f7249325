"""Objects of any scheduler's kind in a watch cache: metadata typed, spec and status as they are on the wire."""

from __future__ import annotations

from functools import cache
from typing import cast

import msgspec

from spinney.api.meta import Json, Object, Resource


class Stored(Object, frozen=True):
    """An object whose kind no type of ours describes."""

    spec: Json = msgspec.field(default_factory=dict)
    status: Json = msgspec.field(default_factory=dict)

    def plain(self) -> Json:
        """The object as plain data; fields outside metadata, spec and status are not kept."""
        metadata = msgspec.json.decode(msgspec.json.encode(self.metadata))
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": metadata,
            "spec": self.spec,
            "status": self.status,
        }


@cache
def stored(resource: Resource) -> type[Stored]:
    """The type of a resource's objects; the same one on every call, so that caches are shared."""
    made = msgspec.defstruct(
        f"Stored{resource.kind}", [], bases=(Stored,), namespace={"resource": resource}, frozen=True, gc=False
    )
    return cast(type[Stored], made)

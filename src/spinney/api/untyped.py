"""Objects of kinds without a wire type: spec and status are plain data."""

from __future__ import annotations

import msgspec

from spinney.api.meta import Json, Object, Resource


class Untyped(Object, frozen=True):
    """An object of any kind."""

    spec: Json = {}
    status: Json = {}

    def plain(self) -> Json:
        """As plain data, with its kind."""
        # Through JSON: to_builtins keeps tuples, which equal no list of a wanted object.
        metadata: Json = msgspec.json.decode(msgspec.json.encode(self.metadata))
        kind = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        return {**msgspec.to_builtins(self), **kind, "metadata": metadata}


_types: dict[Resource, type[Untyped]] = {}


def untyped(resource: Resource) -> type[Untyped]:
    """The type of one kind, to list, watch and cache it like any other."""
    if resource not in _types:
        _types[resource] = msgspec.defstruct(  # type: ignore[assignment]  # made at run time, one per kind
            resource.kind, [], bases=(Untyped,), namespace={"resource": resource}, frozen=True
        )
    return _types[resource]

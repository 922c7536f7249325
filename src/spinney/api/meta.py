"""Parts of every Kubernetes object: metadata, resource, and encoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar, cast

import msgspec

from spinney.api.schema import CONDITION_REASON, NODE_LABEL, REQUIRED, Int64, Json, enum, list_map, schema

__all__ = [
    "Condition",
    "Conditions",
    "Json",
    "Key",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "Resource",
    "Struct",
    "convert",
    "decode",
    "encode",
    "without_nulls",
]


# Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
Key = tuple[str, str]


class Struct(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", kw_only=True):
    """The base of every wire type: immutable, camel case on the wire, unknown fields ignored on reading.

    Lists are `tuple[X, ...] = ()` and maps `dict[str, X] = {}`. A type is a narrow view of what the API server
    holds, so objects are never written back from it: changes go out as patches.
    """


@dataclass(frozen=True, slots=True)
class Resource:
    """Where a kind is served: `/api/v1/namespaces/{namespace}/pods/{name}`."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        group, _, version = self.api_version.rpartition("/")
        return group if version else ""

    @property
    def version(self) -> str:
        """The version inside the group."""
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of one of its subresources."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


class OwnerReference(Struct, frozen=True):
    """A reference to the owner of an object; the object is deleted with it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True):
    """The metadata of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class Object(Struct, frozen=True):
    """A kind with metadata; subclasses name the resource that serves them."""

    resource: ClassVar[Resource]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, empty for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.metadata.uid


class Condition(Struct, frozen=True):
    """One entry of `status.conditions`."""

    type: Annotated[str, schema(maxLength=316, pattern=NODE_LABEL), REQUIRED] = ""
    status: Annotated[str, enum("True", "False", "Unknown"), REQUIRED] = ""
    observed_generation: Annotated[Int64, schema(minimum=0)] = 0
    last_transition_time: Annotated[datetime | None, REQUIRED] = None
    reason: Annotated[str, schema(minLength=1, maxLength=1024, pattern=CONDITION_REASON), REQUIRED] = ""
    message: Annotated[str, schema(maxLength=32768), REQUIRED] = ""


Conditions = Annotated[tuple[Condition, ...], list_map("type")]


T = TypeVar("T")

_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


# JSON for a wire type or plain data.
encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


def decode(of: type[T], body: bytes | msgspec.Raw) -> T:
    """One object from JSON; Go's `null` for an empty list or map is read as absent."""
    decoder = _decoders.get(of)
    if decoder is None:
        decoder = _decoders[of] = msgspec.json.Decoder(of, strict=False)
    try:
        return cast(T, decoder.decode(body))
    except msgspec.ValidationError:
        return convert(of, without_nulls(msgspec.json.decode(body)))


def convert(of: type[T], value: object) -> T:
    """A typed view of plain data that is already decoded."""
    return msgspec.convert(value, of, strict=False)


def without_nulls(value: Any) -> Any:
    """Plain data with every `null` member of a map dropped, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value

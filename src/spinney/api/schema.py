"""What wire types say about themselves for the CRD generator; reading objects ignores all of it.

Constraints are attached to fields as `Annotated[X, …]` and stay out of decoding: the API server checks what users
write, and a reader must not choke on an object that was stored under older rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

# Objects as they are on the wire, where no type of ours fits (a user's pod spec, a patch).
Json = dict[str, Any]

REQUIRED = Meta(extra={"required": True})
ATOMIC = Meta(extra_json_schema={"x-kubernetes-list-type": "atomic"})


def schema(**keywords: Any) -> Meta:
    """Keywords of the field's OpenAPI schema, as they are: `schema(minimum=0)`."""
    return Meta(extra_json_schema=keywords)


def default(value: object) -> Meta:
    """The default that the API server sets."""
    return schema(default=value)


def enum(*values: str) -> Meta:
    """The allowed values."""
    return schema(enum=list(values))


def list_map(*keys: str) -> Meta:
    """A list whose items are identified by keys, so that several writers can share it."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def rules(*validations: Json) -> Meta:
    """CEL rules on the field."""
    return Meta(extra_json_schema={"x-kubernetes-validations": list(validations)})


def rule(cel: str, message: str, **more: Any) -> Json:
    """One CEL rule with the message a user sees."""
    return {"rule": cel, "message": message, **more}


Int32 = Annotated[int, schema(format="int32")]
Int64 = Annotated[int, schema(format="int64")]

CONDITION_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
NODE_LABEL = (
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; wide ones show with `-o wide` only."""

    name: str
    path: str
    type: str = "integer"
    wide: bool = False


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers."""

    selector: str
    spec: str = ".spec.replicas"
    status: str = ".status.replicas"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a CRD says beyond its schema."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    status: bool = True
    annotations: dict[str, str] = field(default_factory=dict)

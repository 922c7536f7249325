"""The record of a kind: its names, and what is special about its objects when they are written and shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spinney.api.meta import Json
from spinney.api.naming import subdomain_problems
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources import cells, deletion_marks
from spinney.embedded.apiserver.resources.quota import Quota

if TYPE_CHECKING:
    from spinney.embedded.apiserver.calls import Call
    from spinney.kube.client.transport import Response

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY = ("create",)
READ_ONLY = ("get", "list")
_NO_QUOTA = Quota()

Check = Callable[[Json], list[FieldError]]
CheckUpdate = Callable[[Json, Json], list[FieldError]]


def _no_change(*_: Any) -> None:
    """Do nothing."""


def _no_errors(*_: Any) -> list[FieldError]:
    return []


def _no_warnings(*_: Any) -> tuple[str, ...]:
    return ()


def _as_it_is(document: Json) -> Json:
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Checks of an object: at every write, at creation, and at an update against the old object."""

    name: Callable[[str], tuple[str, ...]] = subdomain_problems
    # Finalizers are Kubernetes' own, or have a domain in their name.
    qualified_finalizers: bool = True
    object: Check = _no_errors
    create: Check = _no_errors
    update: CheckUpdate = _no_errors
    subresources: Mapping[str, CheckUpdate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Warnings:
    """What a client is warned of although the object is stored."""

    create: Callable[[Json], Iterable[str]] = _no_warnings
    # At every request.
    deprecation: str = ""


def _deletable(name: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How objects of a kind are deleted."""

    # The reason why the object of this name can never be deleted; empty where it can.
    refusal: Callable[[str], str] = _deletable
    # Marks an object for deletion, given its finalizers and the request's options; returns whether it has to wait.
    begin: Callable[[Core, Json, list[str], Json], bool] = deletion_marks.begin
    # Dependents stay unless the request says otherwise; the warning tells the client.
    orphans_by_default: bool = False
    warning: str = ""
    # The answer is the deleted object in place of a Status.
    returns_object: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """The table of `kubectl get`.

    Columns are separated by commas. A mark in front says more: `+Node` is for wide output only, `#Count` is a number,
    `?Flag` a boolean, `@When` a date.
    """

    columns: str
    cells: Callable[[Json, datetime], list[Any]]
    row_conditions: Callable[[Json], list[Json]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVersion:
    """A version at which a kind is served, besides its storage version."""

    version: str
    group: str
    from_stored: Callable[[Json], Json]
    to_stored: Callable[[Json], Json]
    # Selectable fields by the names of this version; empty where they are the same.
    selectable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Everything that is special about one kind."""

    kind: str = ""
    plural: str = ""
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    other_versions: tuple[OtherVersion, ...] = ()
    # The version that Kubernetes stores, where discovery does not list it.
    storage_version: str = ""
    # Handlers of subresources that are more than a part of the object; "" handles creation. They are called with the
    # Pipeline and the Call; naming the Pipeline here would close a cycle of imports.
    handlers: Mapping[str, Callable[..., Awaitable[Response]]] = field(default_factory=dict)

    # Fills in what the API documents as defaults, in place.
    default: Callable[[Json], None] = _no_change
    # Adds members that Kubernetes always writes. Nested data is shared with the old object, and never changed.
    complete: Callable[[Json], Json] = _as_it_is
    # Called with a new object before its managed fields are recorded, and after.
    prepare_create: Callable[[Core, Call, Json], None] = _no_change
    admit_create: Callable[[Core, Call, Json], None] = _no_change
    # Called with a new object that mutating webhooks changed.
    after_webhooks: Callable[[Core, Json], None] = _no_change
    # Called with the new object and the old one; both may share nested data.
    prepare_update: Callable[[Core, Call, Json, Json], None] = _no_change
    prepare_status: Callable[[Core, Json, Json], None] = _no_change
    # What a write to a subresource makes of the new object and the old one.
    prepare_subresources: Mapping[str, Callable[[Json, Json], Json]] = field(default_factory=dict)

    # The status of a new object is kept.
    status_on_create: bool = False
    # Metadata that a write to the status cannot change; None for all of it.
    status_keeps: tuple[str, ...] | None = ()
    # Defaults apply to writes of the status, too.
    default_status: bool = False

    has_generation: bool = False
    # Metadata that counts as a part of the spec.
    generation_covers: str = ""
    generation_changes: bool = True

    allow_unconditional_update: bool = True
    allow_create_on_update: bool = False

    deletion: Deletion = Deletion()
    quota: Quota = _NO_QUOTA
    checks: Checks = Checks()
    warnings: Warnings = Warnings()
    table: Table = Table("Name,@Created At", cells.created)
    # Fields that a selector may name, as dotted paths.
    selectable: tuple[str, ...] = ()


# What all custom resources have in common; the rest is in their definition.
CUSTOM = Resource(
    has_generation=True,
    allow_unconditional_update=False,
    status_keeps=None,
    checks=Checks(qualified_finalizers=False),
)

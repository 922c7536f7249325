"""`managedFields`: which manager last wrote which field."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Raw

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.shapes import Shape, built_in_shape
from spinney.embedded.apiserver.write import field_sets
from spinney.embedded.apiserver.write.field_sets import FieldSet

_TYPE = ("kind", "apiVersion")
_HEAD = (*_TYPE, "metadata")
_SERVER_META = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
_NOTHING: Json = {}
MAX_UPDATERS = 10
_ALWAYS_THERE = ("f:containers", "f:podGroups")
_PATHS_TO_LISTS = ("f:spec", "f:template", "f:jobTemplate")


def shape_of(kind: Kind) -> Shape:
    """The shape that decides how fields of a kind are owned."""
    if kind.custom is not None:
        return kind.custom.shape(kind.version)
    return built_in_shape(kind.group, kind.version, kind.kind)


def owned_part(document: Json, other: Json = _NOTHING) -> Json:
    """The object without fields that only the server writes, and without those shared with another state of it."""
    part = {key: value for key, value in document.items() if key not in _TYPE and value is not other.get(key)}
    other_metadata = other.get("metadata") or _NOTHING
    part["metadata"] = {
        key: value
        for key, value in document["metadata"].items()
        if key not in _SERVER_META and value is not other_metadata.get(key)
    }
    return part


@dataclass(frozen=True, slots=True)
class Writer:
    """The manager of a write, its subresource, and the time."""

    manager: str
    subresource: str
    now: str


def record_creation(kind: Kind, new: Json, writer: Writer, spec: FieldSet | Raw | None = None) -> None:
    """Record the creator as the owner of a new object's fields; `spec` holds those of the spec, if known."""
    shape = shape_of(kind)
    written = {key: value for key, value in new["metadata"].items() if key not in _SERVER_META}
    owned_metadata = field_sets.added(written, shape.child("metadata")) if written else {}
    owned: FieldSet = {"f:metadata": owned_metadata} if owned_metadata else {}
    if spec is not None:
        owned["f:spec"] = spec
    else:
        # The status of a new object is not its creator's.
        others = ("status", *_HEAD) if "status" in kind.subresources else _HEAD
        body = {key: value for key, value in new.items() if key not in others}
        owned.update(_unmarked(field_sets.added(body, shape)))
    set_entries(new, [make_entry(writer, "Update", kind.api_version, owned)] if owned else [])


def record_update(kind: Kind, old: Json, new: Json, writer: Writer) -> None:
    """Record in the new object which fields this write changed, and by whom; nothing if it changed none."""
    entries = _entries(old["metadata"].get("managedFields") or [], new["metadata"].get("managedFields") or [])
    if not entries:
        # An object without entries stays untracked until somebody applies it.
        new["metadata"].pop("managedFields", None)
        return
    changes = field_sets.compare(owned_part(old, new), owned_part(new, old), shape_of(kind))
    changed, removed = _unmarked(changes.changed), changes.removed
    if not changed and not removed:
        set_entries(new, entries)
        return
    kept: list[Json] = []
    own_fields: FieldSet = {}
    for entry in entries:
        if is_of(entry, writer, "Update", kind.api_version):
            own_fields = field_sets.difference(entry["fieldsV1"], removed)
            if not changed and own_fields:
                kept.append(entry if own_fields == entry["fieldsV1"] else {**entry, "fieldsV1": own_fields})
            continue
        remaining = field_sets.difference(field_sets.difference(entry["fieldsV1"], changed), removed)
        if remaining:
            kept.append(entry if remaining == entry["fieldsV1"] else {**entry, "fieldsV1": remaining})
    if changed:
        kept.append(make_entry(writer, "Update", kind.api_version, field_sets.union(own_fields, changed)))
    set_entries(new, _capped(kept))


def _entries(stored: list[Json], sent: list[Json]) -> list[Json]:
    """The entries to start from. A client may send its own, as kubectl does when it moves to server-side apply."""
    # A patch that does not name them leaves the stored ones, which need no check.
    if sent is stored or not sent or not all(_is_entry(entry) for entry in sent):
        return stored
    return sent


def _is_entry(entry: Json) -> bool:
    """Whether an entry that a client sent can be read."""
    texts = (entry.get(key, "") for key in ("manager", "apiVersion", "time", "subresource"))
    return (
        all(isinstance(text, str) for text in texts)
        and bool(entry.get("manager") and entry.get("apiVersion"))
        and entry.get("operation") in ("Apply", "Update")
        and field_sets.is_field_set(entry.get("fieldsV1"))
    )


def _unmarked(changed: FieldSet) -> FieldSet:
    """Drop the mark that a list exists, for lists that Kubernetes writes even when they are empty."""
    unmarked: FieldSet = {}
    for key, value in changed.items():
        if key in _ALWAYS_THERE:
            unmarked[key] = {name: item for name, item in value.items() if name != "."}
        else:
            unmarked[key] = _unmarked(value) if key in _PATHS_TO_LISTS else value
    return unmarked


def make_entry(writer: Writer, operation: str, version: str, owned: FieldSet) -> Json:
    """One manager's entry."""
    entry: Json = {
        "manager": writer.manager,
        "operation": operation,
        "apiVersion": version,
        "time": writer.now,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
    if writer.subresource:
        entry["subresource"] = writer.subresource
    if writer.subresource == "scale":
        # Kubernetes drops the time between the scale and the object.
        del entry["time"]
    return entry


def is_of(entry: Json, writer: Writer, operation: str, version: str) -> bool:
    """Whether an entry is the one that this writer updates."""
    return (
        entry.get("manager") == writer.manager
        and entry.get("operation") == operation
        and entry.get("apiVersion") == version
        and entry.get("subresource", "") == writer.subresource
    )


def set_entries(document: Json, entries: list[Json]) -> None:
    """Put the entries into an object, or leave the field out."""
    if entries:
        document["metadata"]["managedFields"] = sorted(entries, key=_sort_key) if len(entries) > 1 else entries
    else:
        document["metadata"].pop("managedFields", None)


def _sort_key(entry: Json) -> tuple[str, ...]:
    """The order of entries: by operation (Apply first), then time, then manager."""
    get = entry.get
    return get("operation", ""), get("time", ""), get("manager", ""), get("apiVersion", ""), get("subresource", "")


def _capped(entries: list[Json]) -> list[Json]:
    """Keep ten updaters; merge the older ones into one entry, `ancient-changes`."""
    updaters = [entry for entry in entries if entry["operation"] == "Update"]
    if len(updaters) <= MAX_UPDATERS:
        return entries
    oldest = sorted(updaters, key=lambda entry: str(entry.get("time", "")))[: len(updaters) - MAX_UPDATERS + 1]
    owned: FieldSet = {}
    for entry in oldest:
        owned = field_sets.union(owned, entry["fieldsV1"])
    last = oldest[-1]
    merged = make_entry(Writer("ancient-changes", "", last.get("time", "")), "Update", last["apiVersion"], owned)
    return [entry for entry in entries if entry not in oldest] + [merged]

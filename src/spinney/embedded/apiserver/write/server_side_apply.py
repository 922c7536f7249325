"""Server-side apply: merge a manager's configuration, and make the manager the owner of its fields."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from spinney.api.meta import Json, without_nulls
from spinney.embedded.apiserver.calls import Call, flag
from spinney.embedded.apiserver.errors import Refusal, bad_request, conflict, invalid_options, not_found, required
from spinney.embedded.apiserver.http.bodies import UnreadableBody, parse
from spinney.embedded.apiserver.read.get_list import object_response
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.misfit import type_name
from spinney.embedded.apiserver.schema.shapes import Shape
from spinney.embedded.apiserver.write import apply_checks, field_sets
from spinney.embedded.apiserver.write.creation import create_from
from spinney.embedded.apiserver.write.field_sets import FieldSet, item_key
from spinney.embedded.apiserver.write.managed_fields import Writer, is_of, make_entry, owned_part, set_entries, shape_of
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.embedded.apiserver.write.updates import modify
from spinney.kube.client.transport import Response


async def apply(pipeline: Pipeline, call: Call) -> Response:
    """Merge the body into the object, or create it."""
    config = config_of(call)
    writer = Writer(call.query["fieldManager"], call.subresource, pipeline.core.timestamp())
    if pipeline.core.store.get(call.kind.table, call.key) is None:
        if call.subresource:
            raise not_found(call.kind, call.name)
        if config["metadata"].get("uid"):
            uid = config["metadata"]["uid"]
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(call.kind, call.name, why)
        config["metadata"].pop("resourceVersion", None)
        return await _create(pipeline, call, config, writer)
    force = flag(call.query, "force")

    def change(live: Json) -> Json:
        return merged_object(call, live, config, writer, force=force)

    item = await modify(pipeline, call, change, keep_entries)
    return object_response(pipeline.core, call, item)


def keep_entries(old: Json, new: Json) -> None:
    """Keep the entries that the merge wrote."""


async def _create(pipeline: Pipeline, call: Call, config: Json, writer: Writer) -> Response:
    owned = owned_set(call, config)

    def record(document: Json) -> None:
        set_entries(document, [make_entry(writer, "Apply", call.kind.api_version, owned)] if owned else [])

    item = await create_from(pipeline, call, config, record)
    return object_response(pipeline.core, call, item, 201)


def config_of(call: Call) -> Json:
    """The configuration in the body of an apply."""
    if not call.query.get("fieldManager"):
        raise invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])
    try:
        config = parse(call.request.body, "application/yaml") if call.request.body.strip() else {}
    except UnreadableBody as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    config = {} if config is None else config
    if not isinstance(config, dict):
        raise bad_request(f"error decoding YAML: expected an object, got {type_name(config)}")
    if config.get("kind") != call.kind.kind or config.get("apiVersion") != call.kind.api_version:
        raise bad_request(f"the configuration must be a {call.kind.kind} of {call.kind.api_version}")
    metadata = config.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise bad_request(f"error decoding YAML: metadata: expected an object, got {type_name(metadata)}")
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name") not in (None, "", call.name):
        name = metadata["name"]
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    apply_checks.check(config, call.kind, shape_of(call.kind))
    custom = call.kind.custom
    # A schema may allow nulls; otherwise they count as absent.
    config = cast(Json, without_nulls(config) if custom is None else custom.without_nulls(call.kind.version, config))
    config["metadata"] = {**metadata, "name": call.name}
    if call.kind.namespaced:
        config["metadata"].setdefault("namespace", call.namespace)
    return config


def owned_set(call: Call, config: Json) -> FieldSet:
    """The fields that a configuration claims, without those that this endpoint ignores."""
    part = owned_part(config)
    if call.subresource == "status":
        part = {"status": part.get("status") or {}}
    elif "status" in call.kind.subresources:
        part.pop("status", None)
    if not part.get("metadata"):
        part.pop("metadata", None)
    return _claimed(part, shape_of(call.kind))


def _claimed(value: Any, shape: Shape) -> FieldSet:
    fields: FieldSet = {}
    if isinstance(value, dict) and value and not shape.atomic:
        for key, item in value.items():
            below = _claimed(item, shape.child(key))
            # A key of a map is owned itself; a field of a struct only through its members.
            fields["f:" + key] = {".": {}, **below} if below and key not in shape.properties else below
    elif isinstance(value, list) and value and not shape.atomic and shape.type == "array":
        for item in value:
            below = _claimed(item, shape.items)
            fields[item_key(item, shape)] = {".": {}, **below} if below else {}
    return fields


def merged_object(call: Call, live: Json, config: Json, writer: Writer, *, force: bool) -> Json:
    """The live object with the configuration merged in, given-up fields removed, and its owners updated."""
    kind, shape = call.kind, shape_of(call.kind)
    entries = live["metadata"].get("managedFields") or [_untracked_entry(kind, live, writer)]
    claimed = owned_set(call, config)
    if call.subresource != "status" and "status" in kind.subresources:
        config = {key: value for key, value in config.items() if key != "status"}
    own_entry = next((entry for entry in entries if is_of(entry, writer, "Apply", kind.api_version)), None)
    others = [entry for entry in entries if entry is not own_entry]
    merged = merge(live, config, shape)
    if own_entry is not None:
        owned = claimed
        for entry in others:
            owned = field_sets.union(owned, entry["fieldsV1"])
        merged = _prune(merged, own_entry["fieldsV1"], owned, shape)
    changes = field_sets.compare(owned_part(live), owned_part(merged), shape)
    disputed = field_sets.difference(changes.changed, _last_applied(call, live, writer))
    _check_conflicts(others, disputed, force=force)
    merged = {**merged, "metadata": dict(merged["metadata"])}
    is_same = not changes.changed and not changes.removed
    if own_entry is not None and own_entry["fieldsV1"] == claimed and is_same:
        set_entries(merged, entries)
        return merged
    new_entry = make_entry(writer, "Apply", kind.api_version, claimed)
    if is_same:
        # A write that changes only the owners keeps the entry's time.
        new_entry.pop("time", None)
        new_entry |= {"time": own_entry["time"]} if own_entry is not None and "time" in own_entry else {}
    remaining = _without_changes(others, changes)
    set_entries(merged, [*remaining, new_entry] if claimed else remaining)
    return merged


def _untracked_entry(kind: Kind, live: Json, writer: Writer) -> Json:
    """An entry for everything that was written before anybody applied the object."""
    owned = field_sets.compare({"metadata": {}}, owned_part(live), shape_of(kind)).changed
    return make_entry(Writer("before-first-apply", "", writer.now), "Update", kind.api_version, owned)


def _without_changes(entries: list[Json], changes: field_sets.Changes) -> list[Json]:
    """The entries of other managers, without the fields that this write took from them."""
    remaining: list[Json] = []
    for entry in entries:
        fields = field_sets.difference(field_sets.difference(entry["fieldsV1"], changes.changed), changes.removed)
        if fields:
            remaining.append({**entry, "fieldsV1": fields} if fields != entry["fieldsV1"] else entry)
    return remaining


def _last_applied(call: Call, live: Json, writer: Writer) -> FieldSet:
    """Fields that kubectl applied on the client side before: taking these over is no conflict."""
    text = (live["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/last-applied-configuration")
    if writer.manager != "kubectl" or not text:
        return {}
    try:
        document = msgspec.json.decode(text)
        applied = {**document, "metadata": document.get("metadata") or {}}
        changes = field_sets.compare(owned_part(applied), owned_part(live), shape_of(call.kind))
        # Fields that others changed since then are theirs.
        return field_sets.difference(field_sets.difference(owned_set(call, applied), changes.changed), changes.removed)
    except (msgspec.DecodeError, TypeError, AttributeError, RecursionError):
        return {}


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """The live value with a configuration merged in; atomic values are replaced whole."""
    if isinstance(live, dict) and isinstance(config, dict) and not shape.atomic:
        result = dict(live)
        for key, value in config.items():
            result[key] = merge(live[key], value, shape.child(key)) if key in live else value
        return result
    if isinstance(live, list) and isinstance(config, list) and shape.type == "array" and not shape.atomic:
        return _merge_lists(live, config, shape)
    return config


def _merge_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Elements in the configuration's order; others stay before the next element that it names."""
    live_keys = [item_key(item, shape) for item in live]
    config_by_key = {item_key(item, shape): item for item in config}
    live_by_key = dict(zip(live_keys, live, strict=True))
    result: list[Any] = []
    position = 0
    done: set[str] = set()
    for name, item in config_by_key.items():
        while position < len(live) and (live_keys[position] not in config_by_key or live_keys[position] in done):
            if live_keys[position] not in config_by_key:
                result.append(live[position])
            position += 1
        result.append(merge(live_by_key[name], item, shape.items) if name in live_by_key else item)
        done.add(name)
    result += [live[at] for at in range(position, len(live)) if live_keys[at] not in config_by_key]
    return result


def _prune(value: Any, last: FieldSet, kept: FieldSet, shape: Shape) -> Any:
    """The value without the fields that the manager owned last time and nobody owns now."""
    if isinstance(value, dict):
        result = dict(value)
        for key, node in last.items():
            name = key[2:]
            if key == "." or name not in result:
                continue
            below = kept.get(key)
            if below is None and (not node or "." in node):
                del result[name]
                continue
            if node:
                rest = _prune(result[name], node, below or {}, shape.child(name))
                if rest in ({}, []) and result[name] and below is None:
                    del result[name]
                else:
                    result[name] = rest
        return result
    if isinstance(value, list):
        left = []
        for item in value:
            key = item_key(item, shape)
            node = last.get(key)
            if node is None:
                left.append(item)
            elif key in kept:
                left.append(_prune(item, node, kept[key], shape.items) if node else item)
        return left
    return value


def _check_conflicts(others: list[Json], changed: FieldSet, *, force: bool) -> None:
    conflicts: list[tuple[str, str]] = []
    for entry in others:
        for path in field_sets.paths(field_sets.intersection(entry["fieldsV1"], changed)):
            conflicts.append((_described(entry), path))
    if not conflicts or force:
        return
    conflicts.sort()
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        message = f"conflict with {conflicts[0][0]}: {conflicts[0][1]}"
    else:
        lines: list[str] = []
        for manager in dict.fromkeys(manager for manager, _ in conflicts):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {path}" for name, path in conflicts if name == manager]
        message = "\n".join(lines)
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    raise Refusal(409, "Conflict", f"Apply failed with {count}: {message}", {"causes": causes})


def _described(entry: Json) -> str:
    description = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        description += f' with subresource "{entry["subresource"]}"'
    return f"{description} using {entry['apiVersion']}" if entry["operation"] == "Update" else description

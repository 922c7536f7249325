"""Server-side apply: a manager says what it wants, and owns what it said."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from spinney.api.meta import Json, without_nulls
from spinney.embedded.apiserver.calls import Call, flag
from spinney.embedded.apiserver.errors import Refusal, bad_request, conflict, invalid_options, not_found, required
from spinney.embedded.apiserver.http.bodies import UnreadableBody, parse
from spinney.embedded.apiserver.read.get_list import answer
from spinney.embedded.apiserver.schema.misfit import type_name
from spinney.embedded.apiserver.schema.shapes import Shape
from spinney.embedded.apiserver.write import apply_checks, field_sets
from spinney.embedded.apiserver.write.creation import create_from
from spinney.embedded.apiserver.write.field_sets import FieldSet, item_key
from spinney.embedded.apiserver.write.managed_fields import Writer, is_of, make_entry, owned_part, set_entries, shape_of
from spinney.embedded.apiserver.write.pipeline import Pipeline
from spinney.embedded.apiserver.write.type_meta import told_type
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
    return answer(pipeline.core, call, item)


def keep_entries(old: Json, new: Json) -> None:
    """The merge has already said who owns what."""


async def _create(pipeline: Pipeline, call: Call, config: Json, writer: Writer) -> Response:
    owned = owned_set(call, config)

    def record(document: Json) -> None:
        set_entries(document, [make_entry(writer, "Apply", call.kind.api_version, owned)] if owned else [])

    item = await create_from(pipeline, call, config, record)
    return answer(pipeline.core, call, item, 201)


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
        raise bad_request(f"invalid object type: {told_type(config)}")
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
    # A schema may allow nulls; elsewhere they say nothing.
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
    found: FieldSet = {}
    if isinstance(value, dict) and value and not shape.atomic:
        for key, item in value.items():
            below = _claimed(item, shape.child(key))
            # A key of a map is owned itself; a field of a struct only through what is in it.
            found["f:" + key] = {".": {}, **below} if below and key not in shape.properties else below
    elif isinstance(value, list) and value and not shape.atomic and shape.type == "array":
        for item in value:
            below = _claimed(item, shape.items)
            found[item_key(item, shape)] = {".": {}, **below} if below else {}
    return found


def merged_object(call: Call, live: Json, config: Json, writer: Writer, *, force: bool) -> Json:
    """The live object with the configuration merged in, what was given up pruned, and the owners brought up to date."""
    kind = call.kind
    shape = shape_of(kind)
    entries: list[Json] = live["metadata"].get("managedFields") or []
    if not entries:
        owned = field_sets.compare({"metadata": {}}, owned_part(live), shape).changed
        entries = [make_entry(Writer("before-first-apply", "", writer.now), "Update", kind.api_version, owned)]
    claimed = owned_set(call, config)
    if call.subresource != "status" and "status" in kind.subresources:
        config = {key: value for key, value in config.items() if key != "status"}
    mine = next((entry for entry in entries if is_of(entry, writer, "Apply", kind.api_version)), None)
    others = [entry for entry in entries if entry is not mine]
    merged = merge(live, config, shape)
    if mine is not None:
        kept: FieldSet = claimed
        for entry in others:
            kept = field_sets.union(kept, entry["fieldsV1"])
        merged = _prune(merged, mine["fieldsV1"], kept, shape)
    changes = field_sets.compare(owned_part(live), owned_part(merged), shape)
    disputed = field_sets.difference(changes.changed, _last_applied(call, live, writer))
    _check_conflicts(others, disputed, force=force)
    left: list[Json] = []
    for entry in others:
        rest = field_sets.difference(field_sets.difference(entry["fieldsV1"], changes.changed), changes.removed)
        if rest:
            left.append({**entry, "fieldsV1": rest} if rest != entry["fieldsV1"] else entry)
    unchanged = mine is not None and mine["fieldsV1"] == claimed and not changes.changed and not changes.removed
    merged = {**merged, "metadata": dict(merged["metadata"])}
    own = mine if unchanged and mine is not None else make_entry(writer, "Apply", kind.api_version, claimed)
    if not changes.changed and not changes.removed and not unchanged:
        # Whoever changes nothing but who owns what does so at no time of its own.
        own = {key: value for key, value in own.items() if key != "time"}
        own |= {"time": mine["time"]} if mine is not None and "time" in mine else {}
    if unchanged:
        set_entries(merged, live["metadata"].get("managedFields") or entries)
    else:
        set_entries(merged, [*left, own] if claimed else left)
    return merged


def _last_applied(call: Call, live: Json, writer: Writer) -> FieldSet:
    """What kubectl applied before it knew server-side apply, which is no conflict for itself."""
    text = (live["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/last-applied-configuration")
    if writer.manager != "kubectl" or not text:
        return {}
    try:
        document = msgspec.json.decode(text)
        applied = {**document, "metadata": document.get("metadata") or {}}
        changes = field_sets.compare(owned_part(applied), owned_part(live), shape_of(call.kind))
        # What somebody has changed since is theirs.
        return field_sets.difference(field_sets.difference(owned_set(call, applied), changes.changed), changes.removed)
    except (msgspec.DecodeError, TypeError, AttributeError):
        return {}


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """The live value with a configuration merged in, by the shape's idea of what is one thing and what is many."""
    if isinstance(live, dict) and isinstance(config, dict) and not shape.atomic:
        result = dict(live)
        for key, value in config.items():
            result[key] = merge(live[key], value, shape.child(key)) if key in live else value
        return result
    if isinstance(live, list) and isinstance(config, list) and shape.type == "array" and not shape.atomic:
        return _merge_lists(live, config, shape)
    return config


def _merge_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Elements in the configuration's order; others keep their place before the next that it names."""
    names = [item_key(item, shape) for item in live]
    wanted = {item_key(item, shape): item for item in config}
    known = dict(zip(names, live, strict=True))
    result: list[Any] = []
    position = 0
    done: set[str] = set()
    for name, item in wanted.items():
        while position < len(live) and (names[position] not in wanted or names[position] in done):
            if names[position] not in wanted:
                result.append(live[position])
            position += 1
        result.append(merge(known[name], item, shape.items) if name in known else item)
        done.add(name)
    result += [live[at] for at in range(position, len(live)) if names[at] not in wanted]
    return result


def _prune(value: Any, last: FieldSet, kept: FieldSet, shape: Shape) -> Any:
    """The value without what the manager owned last time and nobody owns now."""
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
    found: list[tuple[str, str]] = []
    for entry in others:
        for path in field_sets.paths(field_sets.intersection(entry["fieldsV1"], changed)):
            found.append((_described(entry), path))
    if not found or force:
        return
    found.sort()
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for who, path in found
    ]
    if len(found) == 1:
        told = f"conflict with {found[0][0]}: {found[0][1]}"
    else:
        lines: list[str] = []
        for who in dict.fromkeys(who for who, _ in found):
            lines.append(f"conflicts with {who}:")
            lines += [f"- {path}" for name, path in found if name == who]
        told = "\n".join(lines)
    count = f"{len(found)} conflict{'s' if len(found) > 1 else ''}"
    raise Refusal(409, "Conflict", f"Apply failed with {count}: {told}", {"causes": causes})


def _described(entry: Json) -> str:
    told = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        told += f' with subresource "{entry["subresource"]}"'
    return f"{told} using {entry['apiVersion']}" if entry["operation"] == "Update" else told

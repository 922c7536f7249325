"""The defaults of every grouping rule: name, labels, queue, priority, topology."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import structlog

from spinney.api import labels
from spinney.api.duration import seconds
from spinney.api.meta import Json, Struct
from spinney.api.preemption import PREEMPTIBILITIES
from spinney.services.podgrouper.context import Context, KindDefaults, annotations_of, labels_of
from spinney.services.podgrouper.grouping import Grouping, Topology

_log = structlog.get_logger("spinney.podgrouper")

DEFAULT_PRIORITY = "train"
INFERENCE_PRIORITY = "inference"
BUILD_PRIORITY = "build"
# Starts with a letter, so that it is no number.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./-]*(?<![.-])")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_LONGEST_NAME = 253


async def default_grouping(context: Context) -> Grouping:
    """One group per top owner with a minimum of one pod; all owners may set priority and preemptibility."""
    return group_under(context, context.top, sources=context.chain)


def group_under(
    context: Context, owner: Json, priority: str = DEFAULT_PRIORITY, sources: Sequence[Json] = ()
) -> Grouping:
    """One group for all pods below an owner, with the owner's labels.

    Priority, preemptibility and durations come from the owner or from `sources`, nearest first, then from the pod.
    """
    meta = owner["metadata"]
    sources = sources or (owner,)
    return Grouping(
        name=group_name(meta["name"], meta["uid"]),
        namespace=context.pod.namespace,
        owner=owner_reference(owner),
        labels=_labels(context, owner),
        annotations=_annotations(context, owner),
        queue=_queue(context, owner),
        priority_class=_priority_class(context, sources, priority),
        preemptibility=_preemptibility(context, sources),
        preemption_delay=_duration(context, sources, labels.PREEMPTION_DELAY),
        staleness_grace=_duration(context, sources, labels.STALENESS_GRACE_PERIOD),
        topology=topology_from(annotations_of(owner)),
    )


def group_name(name: str, uid: str) -> str:
    """The name of an object's group; a long name is cut, since the UID makes it unique."""
    return f"pg-{name[: _LONGEST_NAME - len(uid) - 4]}-{uid}"


def group_per_pod(context: Context, priority: str) -> Grouping:
    """One group per pod, with its owner's labels and settings."""
    pod = context.pod
    grouping = group_under(context, context.top, priority)
    itself = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "uid": pod.uid, "namespace": pod.namespace},
    }
    return replace(grouping, name=group_name(pod.name, pod.uid), owner=owner_reference(itself))


def owner_reference(owner: Json) -> Json:
    """An owner reference without `controller`, which is the workload's own controller's."""
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}


def top_owner_metadata(owner: Json) -> str:
    """The annotation that names a group's workload."""
    group, _, version = owner["apiVersion"].rpartition("/")
    fields = {
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "group": group,
        "version": version,
        "kind": owner["kind"],
    }
    # Written by hand: a YAML writer would take longer than the rest of grouping a pod.
    return "".join(f"{key}: {_scalar(value)}\n" for key, value in fields.items())


def _scalar(text: str) -> str:
    """A string in YAML: plain where it cannot be read as another type."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else f"'{text}'"


def topology_from(annotations: dict[str, str]) -> Topology:
    """The topology constraint of three annotations."""
    return Topology(
        annotations.get(labels.TOPOLOGY, ""),
        annotations.get(labels.TOPOLOGY_REQUIRED, ""),
        annotations.get(labels.TOPOLOGY_PREFERRED, ""),
    )


def _labels(context: Context, owner: Json) -> dict[str, str]:
    merged = labels_of(owner)
    if user := context.pod.metadata.labels.get(labels.USER):
        merged.setdefault(labels.USER, user)
    pool = context.settings.node_pool_label
    if pool not in merged and pool in context.pod.metadata.labels:
        merged[pool] = context.pod.metadata.labels[pool]
    return merged


def _annotations(context: Context, owner: Json) -> dict[str, str]:
    merged = annotations_of(owner)
    # kubectl's copy of the owner's manifest does not describe the group, and may be large.
    merged.pop(labels.LAST_APPLIED_CONFIGURATION, None)
    if user := context.pod.metadata.annotations.get(labels.USER):
        merged.setdefault(labels.USER, user)
    merged[labels.TOP_OWNER] = top_owner_metadata(owner)
    return merged


def _queue(context: Context, owner: Json) -> str:
    key = context.settings.queue_label
    on_owner, on_pod = labels_of(owner), context.pod.metadata.labels
    first, second = (on_pod, on_owner) if context.settings.pods_name_queues else (on_owner, on_pod)
    if queue := first.get(key) or second.get(key):
        return queue
    project = on_owner.get(labels.PROJECT) or on_pod.get(labels.PROJECT)
    if not project:
        return labels.DEFAULT_QUEUE
    pool = on_pod.get(context.settings.node_pool_label)
    return f"{project}-{pool}" if pool else project


def read_defaults(text: str) -> dict[str, KindDefaults]:
    """The `types` of a defaults ConfigMap: a JSON list of kinds with their priority and preemptibility."""
    try:
        entries = msgspec.json.decode(text or "[]", type=list[_TypeDefaults])
    except msgspec.DecodeError as error:
        _log.warning("defaults.unreadable", error=str(error))
        return {}
    return {
        f"{entry.type_name}.{entry.group}" if entry.group else entry.type_name: KindDefaults(
            priority_class=entry.priority_name, preemptibility=entry.preemptibility
        )
        for entry in entries
    }


class _TypeDefaults(Struct, frozen=True):
    type_name: str = ""
    group: str = ""
    priority_name: str = ""
    preemptibility: str = ""


def kind_defaults(context: Context, owner: Json) -> KindDefaults:
    """The defaults of the owner's kind."""
    group = owner["apiVersion"].rpartition("/")[0]
    table = context.settings.kind_defaults
    return table.get(f"{owner['kind']}.{group}") or table.get(owner["kind"]) or KindDefaults()


def _priority_class(context: Context, sources: Sequence[Json], default: str) -> str:
    """The first existing class of: the nearest source, the pod, the other sources, their kinds."""
    on_pod = (context.pod.metadata.labels.get(labels.PRIORITY_CLASS, ""), context.pod.spec.priority_class_name)
    nearest, *others = (labels_of(source).get(labels.PRIORITY_CLASS, "") for source in sources)
    by_kind = (kind_defaults(context, source).priority_class for source in sources)
    for name in (nearest, *on_pod, *others, *by_kind):
        if name and context.lookup.priority_class_exists(name):
            return name
    return default


def _preemptibility(context: Context, sources: Sequence[Json]) -> str:
    values = [labels_of(source).get(labels.PREEMPTIBILITY, "") for source in sources]
    values.append(context.pod.metadata.labels.get(labels.PREEMPTIBILITY, ""))
    values += [kind_defaults(context, source).preemptibility.lower() for source in sources]
    return next((value for value in values if value in PREEMPTIBILITIES), "")


def _duration(context: Context, sources: Sequence[Json], annotation: str) -> str:
    texts = [annotations_of(source).get(annotation, "") for source in sources]
    texts.append(context.pod.metadata.annotations.get(annotation, ""))
    for text in texts:
        if text and _is_duration(text, negative=annotation == labels.STALENESS_GRACE_PERIOD):
            return text
    return ""


def _is_duration(text: str, *, negative: bool) -> bool:
    try:
        return seconds(text) >= 0 or negative
    except ValueError:
        return False

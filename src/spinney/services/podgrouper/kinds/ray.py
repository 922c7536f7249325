"""Ray: a subgroup for the head and for each worker group."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

from spinney.api import labels
from spinney.api.meta import Json
from spinney.services.podgrouper.context import Context, annotations_of, dig, labels_of
from spinney.services.podgrouper.defaults import group_under, topology_from
from spinney.services.podgrouper.grouping import Grouping, GroupingError, SubGroup, Topology

HEAD_GROUP = "headgroup"


def ray(*cluster_name_paths: tuple[str, ...]) -> Callable[[Context], Awaitable[Grouping]]:
    """The rule for a kind whose status names its RayCluster at one of the paths; none for a RayCluster."""

    async def rule(context: Context) -> Grouping:
        cluster = await _cluster(context, cluster_name_paths) if cluster_name_paths else context.top
        subgroups = _subgroups(cluster)
        grouping = replace(
            group_under(context, context.top), min_member=sum(group.min_member or 0 for group in subgroups)
        )
        if name := labels_of(context.top).get(labels.RAY_PRIORITY_CLASS_NAME):
            grouping = replace(grouping, priority_class=name)
        # A flat group of an older release stays flat: its pods have no subgroup label.
        if context.lookup.group_has_subgroups(grouping.namespace, grouping.name) is False:
            return grouping
        own = _as_name(context.pod.metadata.labels.get(labels.RAY_GROUP, ""))
        names = {group.name for group in subgroups}
        return replace(grouping, subgroups=subgroups, pod_subgroup=own if own in names else "")

    return rule


async def _cluster(context: Context, paths: tuple[tuple[str, ...], ...]) -> Json:
    top = context.top
    name = next((value for path in paths if (value := dig(top, *path))), None)
    if name is None:
        raise GroupingError(
            f"{top['kind']} {top['metadata']['name']}: its status names no RayCluster yet; is the Ray operator running?"
        )
    cluster = await context.lookup.get(top["apiVersion"], "RayCluster", context.pod.namespace, name)
    if cluster is None:
        raise GroupingError(f"RayCluster {name} of {top['kind']} {top['metadata']['name']} is not there")
    return cluster


def _subgroups(cluster: Json) -> tuple[SubGroup, ...]:
    head = SubGroup(
        HEAD_GROUP, min_member=1, topology=_topology(dig(cluster, "spec", "headGroupSpec") or {}, "headGroupSpec")
    )
    workers = [_worker_group(spec, index) for index, spec in enumerate(dig(cluster, "spec", "workerGroupSpecs") or [])]
    return (head, *(group for group in workers if group is not None))


def _worker_group(spec: Json, index: int) -> SubGroup | None:
    name = _as_name(spec.get("groupName") or "") or f"worker-group-{index}"
    replicas, least = int(spec.get("replicas") or 0), int(spec.get("minReplicas") or 0)
    if spec.get("suspended") or spec.get("suspend") or replicas == least == 0:
        return None
    if least > replicas:
        raise GroupingError(f"worker group {name}: minReplicas {least} is more than replicas {replicas}")
    hosts = int(spec.get("numOfHosts") or 1)
    return SubGroup(name, min_member=(least or replicas) * hosts, topology=_topology(spec, name))


def _as_name(text: str) -> str:
    """A Ray group's name as a valid subgroup name."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:63]


def _topology(spec: Json, where: str) -> Topology:
    topology = topology_from(annotations_of(spec.get("template") or {}))
    if not (topology.required or topology.preferred):
        return Topology()
    if not topology.name:
        raise GroupingError(
            f"{where}: a topology placement is asked for; annotation {labels.TOPOLOGY} must name the topology"
        )
    return topology

"""Jobs of the Kubeflow training operator: the minimum is the scheduling policy's, else all replicas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from spinney.api import labels
from spinney.api.meta import Json
from spinney.services.podgrouper.context import Context, dig
from spinney.services.podgrouper.defaults import BUILD_PRIORITY, group_under
from spinney.services.podgrouper.grouping import Grouping, GroupingError, SubGroup
from spinney.services.podgrouper.kinds.segments import pytorch_workers

_TERMINAL = ("Succeeded", "Failed")


def replicated(field: str, *mandatory: str) -> Callable[[Context], Awaitable[Grouping]]:
    """The rule for a kind with a map of roles in its spec."""

    async def rule(context: Context) -> Grouping:
        minimum = _policy_minimum(context.top)
        if minimum is None:
            minimum = sum(role_replicas(context.top, field, *mandatory).values())
        return replace(group_under(context, context.top), min_member=minimum)

    return rule


async def mpi_job(context: Context) -> Grouping:
    """One group; a launcher that waits for ready workers does not count before it exists."""
    replicas = role_replicas(context.top, "mpiReplicaSpecs", "Launcher", "Worker")
    minimum = _policy_minimum(context.top)
    if minimum is None:
        minimum = sum(replicas.values())
    late = dig(context.top, "spec", "launcherCreationPolicy") == "WaitForWorkersReady"
    if late and not _launcher_exists(context):
        minimum = max(minimum - replicas["Launcher"], 0)
    return replace(group_under(context, context.top), min_member=minimum)


async def pytorch_job(context: Context) -> Grouping:
    """Master and workers are subgroups; workers may be split into segments."""
    replicas = role_replicas(context.top, "pytorchReplicaSpecs")
    minimum = _policy_minimum(context.top)
    if minimum is None:
        minimum = dig(context.top, "spec", "elasticPolicy", "minReplicas")
    if minimum is None:
        minimum = sum(replicas.values())
    grouping = replace(group_under(context, context.top), min_member=minimum)
    role = context.pod.metadata.labels.get(labels.TRAINING_REPLICA_TYPE, "").lower()
    subgroups: list[SubGroup] = []
    masters = replicas.get("Master", 0)
    if masters:
        subgroups.append(SubGroup("master", min_member=masters))
    if "Worker" not in replicas:
        return replace(grouping, subgroups=tuple(subgroups), pod_subgroup=role if role == "master" else "")
    least_workers = max(minimum - masters, 0)
    segmented = pytorch_workers(context, replicas["Worker"], least_workers)
    if segmented is not None:
        leaf = segmented.leaf if role == "worker" else role
        return replace(grouping, subgroups=(*subgroups, *segmented.subgroups), pod_subgroup=leaf)
    subgroups.append(SubGroup("worker", min_member=least_workers))
    names = {group.name for group in subgroups}
    return replace(grouping, subgroups=tuple(subgroups), pod_subgroup=role if role in names else "")


async def notebook(context: Context) -> Grouping:
    """Notebooks are interactive: build priority."""
    return group_under(context, context.top, BUILD_PRIORITY)


def role_replicas(owner: Json, field: str, *mandatory: str) -> dict[str, int]:
    """The replicas of each role."""
    specs = dig(owner, "spec", field) or {}
    missing = [role for role in mandatory if role not in specs]
    if missing or not specs:
        wanted = ", ".join(missing) or "at least one role"
        raise GroupingError(f"{owner['kind']} {owner['metadata']['name']}: spec.{field} lacks {wanted}")
    replicas = {role: int(dig(spec, "replicas") or 0) for role, spec in specs.items()}
    for role, count in replicas.items():
        if count == 0:
            raise GroupingError(
                f"{owner['kind']} {owner['metadata']['name']}: spec.{field}.{role} asks for no replicas; "
                "at least 1 is needed"
            )
    return replicas


def _policy_minimum(owner: Json) -> int | None:
    minimum = dig(owner, "spec", "runPolicy", "schedulingPolicy", "minAvailable")
    return int(minimum) if minimum is not None else None


def _launcher_exists(context: Context) -> bool:
    selector = {
        labels.TRAINING_JOB_NAME: context.top["metadata"]["name"],
        labels.TRAINING_JOB_ROLE: "launcher",
    }
    launchers = context.lookup.pods(context.pod.namespace, selector)
    return any(pod.metadata.deletion_timestamp is None and pod.status.phase not in _TERMINAL for pod in launchers)

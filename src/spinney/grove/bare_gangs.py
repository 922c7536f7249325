"""The controller that writes the status of PodGangs without a set."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Key
from spinney.api.owners import controller_of
from spinney.api.podgang import PodGang
from spinney.grove.executor import Executor
from spinney.grove.model.changes import PatchStatus, RecordEvent
from spinney.grove.model.domains import requires_topology
from spinney.grove.model.gang_members import Member
from spinney.grove.model.topology import levels_of
from spinney.grove.status import gangs, problems
from spinney.grove.world import BY_GANG, World
from spinney.kube.caches.cache import Change
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After


def is_bare(gang: PodGang) -> bool:
    """Whether a gang belongs to no set."""
    owner = controller_of(gang.metadata)
    return labels.PART_OF not in gang.metadata.labels and (owner is None or owner.kind != PodCliqueSet.resource.kind)


def gang_keys(change: Change[PodGang]) -> Iterable[Key]:
    """The gang, if it belongs to no set."""
    return ((change.object.namespace, change.object.name),) if is_bare(change.object) else ()


def pod_keys(change: Change[Pod]) -> Iterable[Key]:
    """The gang that a pod names."""
    return ((change.object.namespace, change.object.metadata.labels.get(labels.PODGANG, "")),)


class BareGangs:
    """Writes phase, conditions and placementScore, computed from the pods that the gang references."""

    def __init__(self, world: World, executor: Executor, clock: Clock) -> None:
        self._world = world
        self._executor = executor
        self._clock = clock

    async def reconcile(self, key: Key) -> After | None:
        """Write the status where it differs."""
        namespace, name = key
        gang = self._world.gangs.get(key)
        if gang is None or not is_bare(gang) or gang.metadata.deletion_timestamp is not None:
            return None
        pods = {pod.name: pod for pod in self._world.foreign_pods.by(BY_GANG, f"{namespace}/{name}")}
        members = [
            Member(
                group.name,
                group.min_replicas,
                len(group.pod_references),
                [pods[reference.name] for reference in group.pod_references if reference.name in pods],
            )
            for group in gang.spec.podgroups
        ]
        levels = levels_of(self._world.bindings.get(gang.metadata.annotations.get(labels.TOPOLOGY_NAME, "")))
        watched = levels.keys or requires_topology(gang)
        nodes = {node.name: node for node in self._world.nodes} if watched else {}
        conditions = gangs.conditions(gang, members, True, False, nodes=nodes)
        score = gangs.gang_score(gang, members, levels, nodes)
        patch = gangs.status_patch(gang, gangs.gang_status(gang, members, conditions, score, self._clock.now()))
        if patch:
            await self._executor.apply([PatchStatus(gang, patch, guarded=True)])
        warnings = [RecordEvent(gang, "Warning", *warning) for warning in problems.news(gang, conditions)]
        await self._executor.apply(warnings)
        return None

"""Plans what goes: surplus and outdated pods, parts that the layout lacks, removed replicas and deleted sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from spinney.api import labels, pod_state, reasons
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.nvidia import ComputeDomain
from spinney.api.owners import controlled_by, controller_of
from spinney.api.podgang import PodGang
from spinney.grove.model import updates
from spinney.grove.model.changes import Change, Delete, RecordEvent, RemoveFinalizer, Step
from spinney.grove.model.view import Leftovers, View
from spinney.grove.replica.facts import Facts

_FINALIZERS = {
    PodClique.resource.kind: labels.CLIQUE_FINALIZER,
    PodCliqueScalingGroup.resource.kind: labels.SCALING_GROUP_FINALIZER,
    ComputeDomain.resource.kind: labels.COMPUTE_DOMAIN_FINALIZER,
}
# The deletion order of pods by phase.
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
# How many replicas of a deleted set are removed together.
_REPLICAS_AT_ONCE = 100


def plan_excess(view: View) -> Iterator[Step]:
    """Release what is terminating, and delete what the layout has no place for: gangs first."""
    released = [RemoveFinalizer(item, _FINALIZERS[item.resource.kind]) for item in view.terminating]
    gangs = [Delete(item) for item in view.excess if isinstance(item, PodGang)]
    yield Step((*released, *gangs))
    yield from _with_pods(view, [item for item in view.excess if not isinstance(item, PodGang)])


def plan_surplus_pods(view: View, facts: Facts) -> Iterator[Change]:
    """Scale cliques in, and delete pods that failed although they always restart, or wait for another backend.

    Of several pods with one ordinal, one stays: two operators that acted as leader may have created them.
    """
    referenced = _referenced(view)
    for clique in view.layout.cliques:
        stored = view.cliques.get(clique.name)
        if stored is None:
            continue
        revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
        useless: list[Pod] = []
        useful: list[Pod] = []
        for pod in view.active_pods(clique):
            other = _waits_for_other_backend(pod, stored.spec.pod_spec, facts.choice.backend.name, facts.other_gates)
            (useless if other or _is_ended(pod) else useful).append(pod)
        yield from _delete_all(useless)
        yield from _delete_all(_surplus(useful, stored.spec.replicas, revision, referenced))


def _referenced(view: View) -> set[str]:
    """The names of the pods that the replica's gangs reference."""
    groups = (group for gang in view.gangs.values() for group in gang.spec.podgroups)
    return {reference.name for group in groups for reference in group.pod_references}


def _is_ended(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and pod.spec.restart_policy == "Always"


def _waits_for_other_backend(pod: Pod, template: Json, backend: str, other_gates: frozenset[str]) -> bool:
    """Whether a pod without a node waits for a scheduler that no longer places its set; nothing is lost with it.

    A pod with a node stays: its scheduler has done its work. A pod's backend is known by its label, or without one by
    its gate. Gates in the user's own template say nothing; nor does schedulerName, which other webhooks may change.
    """
    if pod_state.is_scheduled(pod) or pod_state.is_finished(pod):
        return False
    if labels.SCHEDULER_BACKEND in pod.metadata.labels:
        return pod.metadata.labels[labels.SCHEDULER_BACKEND] != backend
    own = {gate.get("name") for gate in template.get("schedulingGates") or ()}
    return not other_gates.isdisjoint({gate.name for gate in pod.spec.scheduling_gates} - own)


def _surplus(pods: Iterable[Pod], wanted: int, revision: str, referenced: Collection[str]) -> list[Pod]:
    """The pods that go on scale-in, and those whose ordinal another pod has.

    Not referenced by a gang before referenced, unassigned before assigned, Pending before Unknown before Running, not
    ready before ready, outdated before current, newest first; among equals the highest ordinal.
    """
    candidates = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    candidates.sort(key=lambda pod: (pod.name in referenced, *_deletion_order(pod, revision)))
    surplus = max(0, len(candidates) - wanted)
    taken: set[int] = set()
    twins: list[Pod] = []
    for pod in reversed(candidates[surplus:]):
        ordinal = pod_state.index(pod)
        if ordinal in taken:
            twins.append(pod)
        elif ordinal >= 0:
            taken.add(ordinal)
    return candidates[:surplus] + twins


def _deletion_order(pod: Pod, revision: str) -> tuple[bool, int, bool, bool, float, int, str]:
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        pod_state.is_ready(pod),
        pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == revision,
        -(created.timestamp() if created else 0.0),
        -pod_state.index(pod),
        pod.name,
    )


def plan_outdated(view: View) -> Iterator[Step]:
    """One step of a rolling update: delete some pods, or replicas of a scaling group, to make room for the new."""
    standalone = [clique for clique in view.layout.cliques if not clique.group]
    pods = [pod for clique in standalone for pod in updates.pods_to_replace(view, clique)]
    yield Step(tuple(_delete_all(pods)))
    members: list[str] = []
    for group in view.layout.groups:
        replaced = set(updates.replicas_to_replace(view, group))
        members += [clique.name for clique in view.layout.members(group) if clique.group_index in replaced]
    yield from delete_cliques(view, members)


def delete_cliques(view: View, cliques: Iterable[str]) -> Iterator[Step]:
    """Delete cliques with all their pods; they come back new."""
    yield from _with_pods(view, [view.cliques[name] for name in cliques if name in view.cliques])


def _with_pods(view: View, owners: list[PodClique | PodCliqueScalingGroup]) -> Iterator[Step]:
    """Owners go first: one that outlived its pods, because we crashed in between, would get new ones."""
    yield Step(tuple(_delete_all(owners)))
    yield Step(tuple(_delete_all(pod for owner in owners for pod in view.pods.get(owner.uid, ()))))


def plan_removed_replica(pcs: PodCliqueSet, index: int, leftovers: Leftovers) -> Iterator[Step]:
    """Delete a replica beyond the set's replicas: its pods first, and when they go everything else."""
    pods = [pod for pod in leftovers.pods if not pod_state.is_terminating(pod)]
    if pods:
        # Their deletion wakes this replica again; where many are removed, the pods of all go before the rest of each.
        yield Step(tuple(_delete_all(pods)))
    else:
        if leftovers.gangs:
            message = f"replica {index} was removed"
            yield Step((RecordEvent(pcs, "Normal", reasons.SET_REPLICA_DELETE_SUCCESSFUL, message),))
        yield Step(tuple(_delete_all(leftovers.besides_pods)))
    yield Step(tuple(_delete_all((*leftovers.claims, *leftovers.domains))))


def plan_orphaned_replica(leftovers: Leftovers) -> Iterator[Step]:
    """Release what is terminating of a set that is deleted, and delete what that owns."""
    terminating = [
        item for item in (*leftovers.cliques, *leftovers.groups) if item.metadata.deletion_timestamp is not None
    ]
    # By owner first: each of 20,000 cliques is not to be compared with every pod of the replica.
    by_owner: dict[str, list[Object]] = defaultdict(list)
    for item in (*leftovers.cliques, *leftovers.pods):
        if (owner := controller_of(item.metadata)) is not None:
            by_owner[owner.uid].append(item)
    yield Step(tuple(change for each in terminating for change in _delete_owned(each, by_owner[each.uid])))
    yield Step(tuple(_remove_finalizers((*terminating, *leftovers.domains))))


def plan_deleted_set(pcs: PodCliqueSet, replicas: Iterable[Leftovers], domains: Iterable[Object]) -> Iterator[Step]:
    """Delete what a deleted set owns, then release it; what is missed the garbage collector takes."""
    remaining = iter(replicas)
    while batch := list(islice(remaining, _REPLICAS_AT_ONCE)):
        yield Step(tuple(_delete_owned(pcs, (item for leftovers in batch for item in leftovers.besides_pods))))
    yield Step(tuple(_remove_finalizers(domains)))
    yield Step((RemoveFinalizer(pcs, labels.SET_FINALIZER),))


def _delete_owned(owner: Object, items: Iterable[Object]) -> Iterator[Change]:
    """Delete what a deleted owner owns, as the garbage collector would, but sooner.

    Only what nobody wrote since: an orphaning deletion takes the owner references off, and then nothing may go.
    """
    if labels.ORPHAN_FINALIZER in owner.metadata.finalizers:
        return
    yield from (Delete(item, unchanged=True) for item in items if controlled_by(item.metadata, owner))


def _delete_all(items: Iterable[Object]) -> Iterator[Change]:
    return (Delete(item, _FINALIZERS.get(item.resource.kind, "")) for item in items)


def _remove_finalizers(items: Iterable[Object]) -> Iterator[Change]:
    return (RemoveFinalizer(item, _FINALIZERS[item.resource.kind]) for item in items)

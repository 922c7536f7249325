"""PodGangs as they should be stored: members, minimums, topology, priority and the names of their pods.

A gang is written before its pods, with their names already in it. So it is complete from its first write, its backend
starts at once, and its generation does not change while pods appear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from spinney.api import labels, pod_state
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.api.podgang import PodGang
from spinney.backends.admission import gang_annotations
from spinney.backends.registry import Choice
from spinney.grove.model import names
from spinney.grove.model.gang_members import references
from spinney.grove.model.layout import Clique, Gang, Layout
from spinney.grove.model.metadata import managed
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.topology import Levels
from spinney.grove.model.view import View
from spinney.kube.desired import Drift, Wanted

# Annotations that describe how the set was written, not what it is.
_NOT_MIRRORED = ("grove.io/", "kubectl.kubernetes.io/")
# Labels and annotations of a set that change what becomes of its gangs: they go from these with the set's.
_SETTINGS = (labels.QUEUE, labels.PREEMPTIBILITY, labels.PREEMPTION_DELAY, labels.STALENESS_GRACE_PERIOD)
# Optional members of a gang's spec: they go where they are not wanted any more.
_ABSENT = dict.fromkeys(
    ("topologyConstraint", "topologyConstraintGroupConfigs", "priorityClassName", "reuseReservationRef")
)


def wanted_gang(view: View, gang: Gang, choice: Choice, pod_names: PodNames, seen: AbstractSet[str]) -> Wanted:
    """The gang as it should be stored; `seen` are the names of the replica's pods.

    Of two operators that choose names for the same pods, the guarded patch makes one look again.
    """
    stored = view.gangs.get(gang.name)
    pods = {clique.name: _pod_names(view, clique, stored, pod_names, seen) for clique in gang.cliques}
    # While a replica is updated, the gang may take the nodes that its own old pods leave.
    replaces = gang.name if view.updating else ""
    metadata = _metadata(view.layout, gang, choice, view.levels)
    orphaned = stored is not None and not stored.metadata.owner_references
    if stored is not None and not orphaned:
        del metadata["ownerReferences"]
    spec = {**_ABSENT, **_spec(view.layout, gang, pods, view.levels, replaces)}
    body = {"metadata": metadata, "spec": spec}
    return Wanted(PodGang.resource, body, Drift.PATCH_NAMED, adopt=orphaned, guarded=True)


def _pod_names(
    view: View, clique: Clique, stored: PodGang | None, pod_names: PodNames, seen: AbstractSet[str]
) -> list[str]:
    """A clique's pods by name; a replacement takes the position of its predecessor in the stored gang.

    Its names stay while their pods exist or are still to come. So two operators that act as leader, of which one sees
    pods late, wait for the same pods. Pods that it does not name fill what is left, and then new names do.
    """
    active = {pod.name: pod for pod in view.active_pods(clique)}
    referenced = references(stored).get(clique.name, ()) if stored is not None else ()
    to_come = pod_names.to_come((view.pcs.namespace, clique.name), referenced, seen)
    missing = max(0, view.wanted(clique) - sum(name in active for name in referenced))
    kept = {*active, *to_come[:missing]}
    others = sorted((pod for pod in active.values() if pod.name not in referenced), key=_least_to_lose)
    free = missing - len(to_come[:missing])
    fillers = [pod.name for pod in others][:free]
    fillers += [pod_names.new(clique.name) for _ in range(free - len(fillers))]
    chosen: list[str] = []
    for name in referenced:
        if name in kept:
            chosen.append(name)
        elif fillers:
            chosen.append(fillers.pop(0))
    return chosen + fillers


def _least_to_lose(pod: Pod) -> tuple[bool, bool, int, str]:
    return not pod_state.is_scheduled(pod), not pod_state.is_ready(pod), pod_state.index(pod), pod.name


def _spec(
    layout: Layout, gang: Gang, references: Mapping[str, Sequence[str]], levels: Levels, replaces: str = ""
) -> Json:
    """The `spec` of a gang; `references` are pod names by clique, `replaces` the gang whose nodes it may reuse."""
    namespace = layout.pcs.namespace
    spec: Json = {
        "podgroups": [
            _with_constraint(
                {
                    "name": clique.name,
                    "minReplicas": clique.min_available,
                    "podReferences": [
                        {"namespace": namespace, "name": name} for name in references.get(clique.name, ())
                    ],
                },
                levels.constraint(clique.template.topology_constraint),
            )
            for clique in gang.cliques
        ]
    }
    _with_constraint(spec, _gang_constraint(layout, gang, levels))
    configs = _group_configs(layout, gang, levels)
    if configs:
        spec["topologyConstraintGroupConfigs"] = configs
    priority = _priority_class(layout)
    if priority:
        spec["priorityClassName"] = priority
    if replaces:
        spec["reuseReservationRef"] = {"namespace": namespace, "name": replaces}
    return spec


def _metadata(layout: Layout, gang: Gang, choice: Choice, levels: Levels) -> Json:
    """Labels, annotations and owner of a gang; the user's labels and annotations of the set are copied."""
    pcs = layout.pcs
    wanted: Json = {
        **dict.fromkeys(_SETTINGS),
        **_mirrored(pcs.metadata.labels),
        **managed(pcs.name, gang.name, labels.GANG),
        labels.SET_REPLICA_INDEX: str(layout.index),
        labels.SCHEDULER_BACKEND: choice.backend.name,
        labels.SCHEDULER_NAME: choice.scheduler_name,
    }
    if gang.base:
        wanted[labels.BASE_PODGANG] = gang.base
    annotations = {
        **dict.fromkeys(_SETTINGS),
        **_mirrored(pcs.metadata.annotations),
        labels.TOPOLOGY_NAME: levels.name or None,
    }
    specs = {clique.name: clique.template.spec.pod_spec for clique in gang.cliques}
    annotations.update(gang_annotations(choice.backend, pcs, specs))
    return {
        "name": gang.name,
        "namespace": pcs.namespace,
        "labels": wanted,
        "annotations": annotations,
        "ownerReferences": [controller_reference(pcs)],
    }


def _priority_class(layout: Layout) -> str:
    """The template's priority class, else that of the first clique that names one."""
    template = layout.pcs.spec.template
    if template.priority_class_name:
        return template.priority_class_name
    return next(iter(clique_priorities(layout)), "")


def clique_priorities(layout: Layout) -> list[str]:
    """The different priority classes that clique pod specs name, in order."""
    named = (str(clique.spec.pod_spec.get("priorityClassName") or "") for clique in layout.pcs.spec.template.cliques)
    return list(dict.fromkeys(name for name in named if name))


def _gang_constraint(layout: Layout, gang: Gang, levels: Levels) -> Json | None:
    own = gang.group.config.topology_constraint if gang.group else None
    return levels.constraint(own) or levels.constraint(layout.pcs.spec.template.topology_constraint)


def _group_configs(layout: Layout, gang: Gang, levels: Levels) -> list[Json]:
    if gang.base:
        return []
    members: dict[tuple[str, int], list[str]] = defaultdict(list)
    for clique in gang.cliques:
        members[clique.group, clique.group_index].append(clique.name)
    configs = []
    for group in layout.groups:
        constraint = levels.constraint(group.config.topology_constraint)
        if constraint is None:
            continue
        for replica in range(group.in_base):
            name = names.group_replica(group.name, replica)
            config: Json = {"name": name, "podGroupNames": members[group.name, replica]}
            configs.append(_with_constraint(config, constraint))
    return configs


def _with_constraint(owner: Json, constraint: Json | None) -> Json:
    if constraint is not None:
        owner["topologyConstraint"] = constraint
    return owner


def _mirrored(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in metadata.items() if not key.startswith(_NOT_MIRRORED)}

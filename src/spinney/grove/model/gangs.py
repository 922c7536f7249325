"""PodGangs as they should be: members, minimums, topology and priority, in plain data ready to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.grove.model import names
from spinney.grove.model.layout import Gang, Layout
from spinney.grove.model.metadata import managed
from spinney.grove.model.topology import Levels

# Annotations that describe how the set was written, not what it is.
_NOT_MIRRORED = ("grove.io/", "kubectl.kubernetes.io/")


def gang_spec(
    layout: Layout, gang: Gang, references: Mapping[str, Sequence[str]], levels: Levels, replaces: str = ""
) -> Json:
    """The `spec` of a gang; `references` are pod names by clique, `replaces` the gang whose place it may take."""
    namespace = layout.pcs.namespace
    spec: Json = {
        "podgroups": [
            _with_constraint(
                {
                    "name": clique.name,
                    "minReplicas": clique.min_available,
                    "podReferences": [
                        {"namespace": namespace, "name": name} for name in sorted(references.get(clique.name, ()))
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
    priority = priority_class(layout)
    if priority:
        spec["priorityClassName"] = priority
    if replaces:
        spec["reuseReservationRef"] = {"namespace": namespace, "name": replaces}
    return spec


def gang_metadata(layout: Layout, gang: Gang, backend: str, scheduler: str, levels: Levels) -> Json:
    """Labels, annotations and owner of a gang; what users put on the set goes with it."""
    pcs = layout.pcs
    wanted = {
        **_mirrored(pcs.metadata.labels),
        **managed(pcs.name, gang.name, labels.GANG),
        labels.SET_REPLICA_INDEX: str(layout.index),
        labels.SCHEDULER_BACKEND: backend,
        labels.SCHEDULER_NAME: scheduler,
    }
    if gang.base:
        wanted[labels.BASE_PODGANG] = gang.base
    annotations = _mirrored(pcs.metadata.annotations)
    if levels.name:
        annotations[labels.TOPOLOGY_NAME] = levels.name
    return {
        "name": gang.name,
        "namespace": pcs.namespace,
        "labels": wanted,
        "annotations": annotations,
        "ownerReferences": [controller_reference(pcs)],
    }


def priority_class(layout: Layout) -> str:
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
    configs = []
    for group in layout.groups:
        constraint = levels.constraint(group.config.topology_constraint)
        if constraint is None:
            continue
        for replica in range(group.in_base):
            members = [c.name for c in gang.cliques if (c.group, c.group_index) == (group.name, replica)]
            config = {"name": names.group_replica(group.name, replica), "podGroupNames": members}
            configs.append(_with_constraint(config, constraint))
    return configs


def _with_constraint(owner: Json, constraint: Json | None) -> Json:
    if constraint is not None:
        owner["topologyConstraint"] = constraint
    return owner


def _mirrored(found: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in found.items() if not key.startswith(_NOT_MIRRORED)}

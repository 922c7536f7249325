"""Scaling inside a clique: which ordinals are free, which pods go first, and the autoscalers that decide how many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import AutoScalingConfig, PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_reference
from spinney.grove.model import pod_state
from spinney.grove.model.layout import Clique, Layout
from spinney.grove.model.metadata import managed

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def free_indices(pods: Iterable[Pod], count: int) -> list[int]:
    """The lowest ordinals that no pod has."""
    taken = {pod_state.index(pod) for pod in pods}
    free: list[int] = []
    candidate = 0
    while len(free) < count:
        if candidate not in taken:
            free.append(candidate)
        candidate += 1
    return free


def surplus(pods: Iterable[Pod], wanted: int, revision: str) -> list[Pod]:
    """The pods that go on scale-in.

    Unassigned before assigned, Pending before Unknown before Running, not ready before ready, outdated before current,
    newest first; among equals the highest ordinal.
    """
    candidates = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    candidates.sort(key=lambda pod: _deletion_order(pod, revision))
    return candidates[: max(0, len(candidates) - wanted)]


def _deletion_order(pod: Pod, revision: str) -> tuple[bool, int, bool, bool, float, int]:
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        pod_state.is_ready(pod),
        pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) == revision,
        -(created.timestamp() if created else 0.0),
        -pod_state.index(pod),
    )


def autoscalers(
    layout: Layout, groups: dict[str, PodCliqueScalingGroup], cliques: dict[str, PodClique]
) -> Iterator[Json]:
    """The HorizontalPodAutoscalers of one set replica: for cliques that stand alone, and for scaling groups."""
    pcs = layout.pcs
    for clique in layout.cliques:
        config = clique.template.spec.auto_scaling_config
        if config is not None and not clique.group and clique.name in cliques:
            yield _autoscaler(pcs, layout.index, cliques[clique.name], config, _default_low(clique))
    for group in layout.groups:
        scaling = group.config.scale_config
        if scaling is not None and group.name in groups:
            yield _autoscaler(pcs, layout.index, groups[group.name], scaling, group.config.replicas)


def _default_low(clique: Clique) -> int:
    return clique.template.spec.replicas


def _autoscaler(pcs: PodCliqueSet, index: int, target: Object, config: AutoScalingConfig, low: int) -> Json:
    spec: Json = {
        "scaleTargetRef": {
            "apiVersion": target.resource.api_version,
            "kind": target.resource.kind,
            "name": target.name,
        },
        "minReplicas": config.min_replicas if config.min_replicas is not None else low,
        "maxReplicas": config.max_replicas,
    }
    if config.metrics:
        spec["metrics"] = list(config.metrics)
    return {
        "metadata": {
            "name": target.name,
            "namespace": pcs.namespace,
            "labels": {**managed(pcs.name, target.name, labels.SET_HPA), labels.SET_REPLICA_INDEX: str(index)},
            "ownerReferences": [controller_reference(pcs)],
        },
        "spec": spec,
    }

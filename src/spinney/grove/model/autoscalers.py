"""HorizontalPodAutoscalers of cliques and scaling groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spinney.api import labels
from spinney.api.grove import AutoScalingConfig, PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Object
from spinney.api.owners import controller_reference
from spinney.grove.model.layout import Layout
from spinney.grove.model.metadata import managed


def autoscalers(
    layout: Layout, groups: Mapping[str, PodCliqueScalingGroup], cliques: Mapping[str, PodClique]
) -> Iterator[Json]:
    """The HorizontalPodAutoscalers of one set replica: for standalone cliques and for scaling groups."""
    pcs = layout.pcs
    for clique in layout.cliques:
        config = clique.template.spec.auto_scaling_config
        if config is not None and not clique.group and clique.name in cliques:
            yield _autoscaler(pcs, layout.index, cliques[clique.name], config, clique.template.spec.replicas)
    for group in layout.groups:
        scaling = group.config.scale_config
        if scaling is not None and group.name in groups:
            yield _autoscaler(pcs, layout.index, groups[group.name], scaling, group.config.replicas)


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

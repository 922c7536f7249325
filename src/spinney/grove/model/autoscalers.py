"""HorizontalPodAutoscalers of cliques and scaling groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spinney.api import labels
from spinney.api.grove import AutoScalingConfig, PodClique, PodCliqueScalingGroup
from spinney.api.meta import Json, Object
from spinney.grove.model.layout import Layout
from spinney.grove.model.metadata import replica_metadata


def autoscalers(
    layout: Layout, groups: Mapping[str, PodCliqueScalingGroup], cliques: Mapping[str, PodClique]
) -> Iterator[Json]:
    """The HorizontalPodAutoscalers of one set replica: for standalone cliques and for scaling groups."""
    for clique in layout.cliques:
        config = clique.template.spec.auto_scaling_config
        if config is not None and not clique.group and clique.name in cliques:
            yield _autoscaler(layout, cliques[clique.name], config, clique.template.spec.replicas)
    for group in layout.groups:
        scaling = group.config.scale_config
        if scaling is not None and group.name in groups:
            yield _autoscaler(layout, groups[group.name], scaling, group.config.replicas)


def _autoscaler(layout: Layout, target: Object, config: AutoScalingConfig, low: int) -> Json:
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
        "metadata": replica_metadata(layout, target.name, labels.SET_HPA),
        "spec": spec,
    }

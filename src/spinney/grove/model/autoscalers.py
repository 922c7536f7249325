"""HorizontalPodAutoscalers of cliques and scaling groups."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import labels
from spinney.api.grove import AutoScalingConfig
from spinney.api.meta import Json, Object
from spinney.grove.model.layout import Layout
from spinney.grove.model.metadata import replica_metadata
from spinney.grove.model.view import View


def autoscalers(view: View) -> Iterator[Json]:
    """The HorizontalPodAutoscalers of one set replica: for standalone cliques and for scaling groups."""
    for clique in view.layout.cliques:
        config = clique.template.spec.auto_scaling_config
        if config is not None and not clique.group and clique.name in view.cliques:
            yield _autoscaler(view.layout, view.cliques[clique.name], config, clique.template.spec.replicas)
    for group in view.layout.groups:
        scaling = group.config.scale_config
        if scaling is not None and group.name in view.groups:
            yield _autoscaler(view.layout, view.groups[group.name], scaling, group.config.replicas)


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

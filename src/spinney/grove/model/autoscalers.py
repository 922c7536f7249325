"""HorizontalPodAutoscalers of cliques and scaling groups."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import labels
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.grove import AutoScalingConfig
from spinney.api.meta import Json, Object
from spinney.grove.model.metadata import name_of, replica_metadata
from spinney.grove.model.view import View
from spinney.kube.desired import Drift, Wanted


def wanted_autoscalers(view: View) -> Iterator[Wanted]:
    """The HorizontalPodAutoscalers of one set replica: for standalone cliques and for scaling groups."""
    for clique in view.layout.cliques:
        config = clique.template.spec.auto_scaling_config
        if config is not None and not clique.group and clique.name in view.cliques:
            yield _wanted(view, view.cliques[clique.name], config, clique.template.spec.replicas)
    for group in view.layout.groups:
        scaling = group.config.scale_config
        if scaling is not None and group.name in view.groups:
            yield _wanted(view, view.groups[group.name], scaling, group.config.replicas)


def _wanted(view: View, target: Object, config: AutoScalingConfig, low: int) -> Wanted:
    stored = view.autoscalers.get(target.name)
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
    metadata = name_of(stored) if stored is not None else replica_metadata(view.layout, target.name, labels.SET_HPA)
    return Wanted(HorizontalPodAutoscaler.resource, {"metadata": metadata, "spec": spec}, Drift.PATCH_NAMED)

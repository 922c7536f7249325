"""HorizontalPodAutoscalers of cliques and scaling groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from spinney.api import labels
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.grove import AutoScalingConfig
from spinney.api.meta import Json, Object
from spinney.api.quantity import QuantityError, canonical
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
        spec["metrics"] = [_as_stored(metric) for metric in config.metrics]
    metadata = name_of(stored) if stored is not None else replica_metadata(view.layout, target.name, labels.SET_HPA)
    return Wanted(HorizontalPodAutoscaler.resource, {"metadata": metadata, "spec": spec}, Drift.PATCH_NAMED)


def _as_stored(metric: Json) -> Json:
    """A metric with its quantities in the API server's form: others would look like a change at each reconcile."""
    return {
        key: {**source, "target": _canonical(source["target"])}
        if isinstance(source, dict) and isinstance(source.get("target"), dict)
        else source
        for key, source in metric.items()
    }


def _canonical(target: Json) -> Json:
    quantities = {}
    for key in ("value", "averageValue"):
        if isinstance(target.get(key), str | int | float):
            # What is no quantity is refused by the API server, with the field's path.
            with suppress(QuantityError):
                quantities[key] = canonical(target[key])
    return {**target, **quantities}

"""Defaults of a PodCliqueSet: those of upstream's mutating webhook, and limits for extended resources."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from spinney.api.meta import Json
from spinney.grove.model.startup_order import ANY_ORDER

TERMINATION_DELAY = "4h0m0s"
GRACE_SECONDS = 30


def with_defaults(pcs: Json, namespace: str = "default") -> Json:
    """A copy of the set with every default written out; fields of a wrong type are left for validation."""
    filled = deepcopy(pcs)
    metadata = _map(filled, "metadata")
    if not metadata.get("namespace"):
        metadata["namespace"] = namespace or "default"
    spec = _map(filled, "spec")
    _absent(spec, "replicas", 0)
    template = _map(spec, "template")
    _absent(template, "cliqueStartupType", ANY_ORDER)
    _absent(template, "terminationDelay", TERMINATION_DELAY)
    _absent(template, "headlessServiceConfig", {"publishNotReadyAddresses": True})
    for clique in _maps(template.get("cliques")):
        _default_clique(clique)
    for group in _maps(template.get("podCliqueScalingGroups")):
        _default_group(group)
    return filled


def _default_clique(clique: Json) -> None:
    spec = _map(clique, "spec")
    _absent(spec, "roleName", clique.get("name"))
    if not spec.get("replicas"):
        spec["replicas"] = 1
    # Upstream takes the value before 0 becomes 1, and then refuses its own default.
    _absent(spec, "minAvailable", spec["replicas"])
    scaling = spec.get("autoScalingConfig")
    if isinstance(scaling, dict):
        _absent(scaling, "minReplicas", spec["replicas"])
    pod_spec = _map(spec, "podSpec")
    if not pod_spec.get("restartPolicy"):
        pod_spec["restartPolicy"] = "Always"
    _absent(pod_spec, "terminationGracePeriodSeconds", GRACE_SECONDS)
    for kind in ("initContainers", "containers"):
        for container in _maps(pod_spec.get(kind)):
            _limit_extended_resources(container)


def _limit_extended_resources(container: Json) -> None:
    """Limit extended resources, such as GPUs, to what is requested: Kubernetes refuses pods without equal limits."""
    resources = container.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    if not isinstance(resources, dict) or not isinstance(requests, dict):
        return
    # Names of Kubernetes' own resources have no domain, or one of its domains.
    extended = {name: amount for name, amount in requests.items() if "/" in name and "kubernetes.io/" not in name}
    if extended and isinstance(resources.get("limits") or {}, dict):
        resources["limits"] = {**extended, **(resources.get("limits") or {})}


def _default_group(group: Json) -> None:
    _absent(group, "replicas", 1)
    _absent(group, "minAvailable", 1)
    scaling = group.get("scaleConfig")
    if isinstance(scaling, dict):
        _absent(scaling, "minReplicas", group["replicas"])


def _map(parent: Json, key: str) -> Json:
    value = parent.get(key)
    if value is None:
        value = parent[key] = {}
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _absent(parent: Json, key: str, value: Any) -> None:
    if parent.get(key) is None and value is not None:
        parent[key] = value

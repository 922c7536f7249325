"""NUMA zones in objects: those a node reports, those a pod has, and those a BindRequest predicts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import BindRequest, NumaPlacement
from spinney.api.meta import Json
from spinney.api.noderesourcetopology import NodeResourceTopology, Zone
from spinney.api.quantity import milli
from spinney.scheduler.intake.cluster_objects import amounts
from spinney.scheduler.state.specs import Numa, NumaZone, ZoneShares

_POLICY, _SCOPE = "topologyManagerPolicy", "topologyManagerScope"
_CONTAINER, _POD = "container", "pod"
# What agents wrote before there were attributes: policy and scope in one word.
_OLD_POLICIES = {
    "SingleNUMANode": "single-numa-node",
    "Restricted": "restricted",
    "BestEffort": "best-effort",
}


def numa_of(report: NodeResourceTopology) -> Numa | None:
    """A node's NUMA zones and how its kubelet aligns pods to them; None where nothing is reported."""
    zones = tuple(_zone(zone) for zone in report.zones if zone.type == "Node")
    if not zones:
        return None
    attributes = {attribute.name: attribute.value for attribute in report.attributes}
    if attributes.get(_POLICY):
        return Numa(attributes[_POLICY], _POD if attributes.get(_SCOPE) == _POD else _CONTAINER, zones)
    old = report.topology_policies[0] if report.topology_policies else ""
    name = old.removesuffix("PodLevel").removesuffix("ContainerLevel")
    return Numa(_OLD_POLICIES.get(name, "none"), _POD if old.endswith("PodLevel") else _CONTAINER, zones)


def _zone(zone: Zone) -> NumaZone:
    return NumaZone(
        zone.name,
        amounts({resource.name: milli(resource.allocatable) for resource in zone.resources}),
        amounts({resource.name: milli(resource.available) for resource in zone.resources}),
    )


def zones_of_pod(pod: Pod, request: BindRequest | None) -> ZoneShares:
    """The zones of a pod: as observed on the node, else as decided, else as predicted when it was bound."""
    decided = request.spec.predicted_numa_zones if request is not None else ()
    notes = pod.metadata.annotations
    placements = _noted(notes.get(labels.NUMA_OBSERVED)) or decided or _noted(notes.get(labels.NUMA_PREDICTED))
    return tuple(
        (
            placement.zone,
            tuple(sorted(amounts({name: milli(value) for name, value in placement.amount.items()}).items())),
        )
        for placement in placements
    )


def _noted(text: str | None) -> tuple[NumaPlacement, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[NumaPlacement, ...]) if text else ()
    except msgspec.DecodeError:
        return ()


def containers_of(pod: Pod) -> tuple[tuple[tuple[str, float], ...], ...]:
    """The requests of each container, sidecars included."""
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    return tuple(
        tuple(sorted(amounts({name: milli(value) for name, value in container.resources.requests.items()}).items()))
        for container in (*sidecars, *pod.spec.containers)
    )


def predicted(zones: ZoneShares) -> list[Json]:
    """The predicted zones as a BindRequest has them."""
    return [{"zone": zone, "amount": _quantities(dict(shares))} for zone, shares in zones]


def _quantities(shares: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{amount:.0f}m" if name == "cpu" else f"{amount:.0f}" for name, amount in shares.items()}

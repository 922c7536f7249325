"""NUMA zones on the wire: what a node reports, what a pod was given, and what a decision predicts."""

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


def numa_of(found: NodeResourceTopology) -> Numa | None:
    """A node's NUMA zones and how its kubelet aligns pods to them; None where nothing is reported."""
    zones = tuple(_zone(zone) for zone in found.zones if zone.type == "Node")
    if not zones:
        return None
    known = {attribute.name: attribute.value for attribute in found.attributes}
    if known.get(_POLICY):
        return Numa(known[_POLICY], _POD if known.get(_SCOPE) == _POD else _CONTAINER, zones)
    old = found.topology_policies[0] if found.topology_policies else ""
    name = old.removesuffix("PodLevel").removesuffix("ContainerLevel")
    return Numa(_OLD_POLICIES.get(name, "none"), _POD if old.endswith("PodLevel") else _CONTAINER, zones)


def _zone(zone: Zone) -> NumaZone:
    return NumaZone(
        zone.name,
        amounts({found.name: milli(found.allocatable) for found in zone.resources}),
        amounts({found.name: milli(found.available) for found in zone.resources}),
    )


def given_to(pod: Pod, request: BindRequest | None) -> ZoneShares:
    """The zones that a pod has: as seen on the node, else as decided, else as predicted when it was bound."""
    decided = request.spec.predicted_numa_zones if request is not None else ()
    notes = pod.metadata.annotations
    found = _noted(notes.get(labels.NUMA_OBSERVED)) or decided or _noted(notes.get(labels.NUMA_PREDICTED))
    return tuple(
        (one.zone, tuple(sorted(amounts({name: milli(value) for name, value in one.amount.items()}).items())))
        for one in found
    )


def _noted(text: str | None) -> tuple[NumaPlacement, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[NumaPlacement, ...]) if text else ()
    except msgspec.DecodeError:
        return ()


def containers_of(pod: Pod) -> tuple[tuple[tuple[str, float], ...], ...]:
    """What each container that runs with the others asks for."""
    sidecars = (found for found in pod.spec.init_containers if found.restart_policy == "Always")
    return tuple(
        tuple(sorted(amounts({name: milli(value) for name, value in found.resources.requests.items()}).items()))
        for found in (*sidecars, *pod.spec.containers)
    )


def predicted(zones: ZoneShares) -> list[Json]:
    """What a bind request says about zones."""
    return [{"zone": zone, "amount": _quantities(dict(shares))} for zone, shares in zones]


def _quantities(shares: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{amount:.0f}m" if name == "cpu" else f"{amount:.0f}" for name, amount in shares.items()}

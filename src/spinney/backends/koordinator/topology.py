"""Koordinator's topology: layers of the ClusterNetworkTopology `default`, and what a gang asks of them."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api import labels
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.backends.capabilities import Feature, Loss
from spinney.backends.required_features import packed_whole

_NODE_LAYER = "NodeTopologyLayer"
_STRATEGIES = (("MustGather", Feature.GANG_REQUIRED, "required"), ("PreferGather", Feature.GANG_PREFERRED, "preferred"))


def layers_of(topologies: Sequence[Json]) -> dict[str, str]:
    """Label key → layer of the ClusterNetworkTopology `default`, broadest first."""
    spec = next((each.get("spec") or {} for each in topologies if each["metadata"]["name"] == "default"), {})
    entries: list[Json] = list(spec.get("networkTopologySpec") or ())
    parents = {str(entry["topologyLayer"]): str(entry.get("parentTopologyLayer") or "") for entry in entries}

    def depth(layer: str) -> int:
        seen: set[str] = set()
        while layer in parents and layer not in seen:
            seen.add(layer)
            layer = parents[layer]
        return len(seen)

    entries.sort(key=lambda entry: depth(str(entry["topologyLayer"])))
    return {str(key): str(entry["topologyLayer"]) for entry in entries for key in entry.get("labelKey") or ()}


def gathering(gang: PodGang, topologies: Sequence[Json] | None, switched_off: str) -> tuple[list[Json], list[Loss]]:
    """The gather strategy of the whole gang, and what of it the cluster lacks; a strategy it lacks would block.

    Without a look at the cluster, layers have their conventional names. `switched_off` is why there is no topology at
    all, if there is none.
    """
    strategy: list[Json] = []
    lost: list[Loss] = []
    for key, (word, feature, strength) in zip(packed_whole(gang), _STRATEGIES, strict=True):
        if not key:
            continue
        missing = switched_off or _missing_layer(key, topologies)
        if missing:
            lost.append(Loss(feature, f"spec.topologyConstraint.packConstraint.{strength}", key, missing))
        else:
            strategy.append({"layer": _layer(key, topologies), "strategy": word})
    return strategy, lost


def binding_drift(binding: ClusterTopologyBinding, topologies: Sequence[Json]) -> str:
    """Whether the layers of the ClusterNetworkTopology name every level's key, in the same order."""
    layers = layers_of(topologies)
    if not layers:
        return "there is no ClusterNetworkTopology named default, or it has no layers"
    keys = [level.key for level in binding.spec.levels if level.key != labels.HOSTNAME]
    missing = [key for key in keys if key not in layers]
    if missing:
        return f"no layer of ClusterNetworkTopology default has the label key {', '.join(missing)}"
    order = [key for key in layers if key in keys]
    return "" if order == keys else f"ClusterNetworkTopology default orders the levels {order}, the binding {keys}"


def _missing_layer(key: str, topologies: Sequence[Json] | None) -> str:
    if topologies is None:
        return ""
    layers = layers_of(topologies)
    if not layers:
        return "there is no ClusterNetworkTopology named default with layers: create one whose labelKey lists name it"
    if key == labels.HOSTNAME or key in layers:
        return ""
    return f"no layer of ClusterNetworkTopology default has the label key {key} (it has {', '.join(layers)}): add one"


def _layer(key: str, topologies: Sequence[Json] | None) -> str:
    if key == labels.HOSTNAME:
        return _NODE_LAYER
    if topologies is None:
        # The convention: `example.com/block` → `BlockLayer`.
        return f"{key.rpartition('/')[2].title().replace('-', '')}Layer"
    return layers_of(topologies)[key]

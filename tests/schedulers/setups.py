"""What topology needs of a cluster beyond a scheduler that knows it: how a cluster lacks it, and how it gets it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from spinney.api.apps import Deployment
from spinney.api.core import ConfigMap
from spinney.api.koordinator import CLUSTER_NETWORK_TOPOLOGY
from spinney.api.meta import Resource
from spinney.api.volcano import HyperNode
from spinney.testing.schedulers.launches import NAMESPACES, Setup
from tests.schedulers import topology
from tests.schedulers.place import Place
from tests.schedulers.stage import Stage

Step = Callable[[Place], Awaitable[None]]


@dataclass(frozen=True)
class Lack:
    """Something that is missing after `remove` and there again after `restore`; `words` are what a user reads."""

    words: str
    # What `spinney backends` prints.
    listed: str
    remove: Step
    restore: Step


async def as_shipped(place: Place) -> None:
    """Restart the scheduler as its project ships it."""
    await place.stage.stop_scheduler()
    await place.stage.start_scheduler(Setup.AS_SHIPPED)


async def with_topology(place: Place) -> None:
    """Restart the scheduler with topology switched on."""
    await place.stage.stop_scheduler()
    await place.stage.start_scheduler()


async def _no_hyper_nodes(place: Place) -> None:
    for node in (await place.client.list(HyperNode)).items:
        await place.client.delete(HyperNode, node.name)


async def _only_hosts(place: Place) -> None:
    await _no_hyper_nodes(place)
    await topology.follow(place.stage, place.node_names, (topology.HOST,))


async def _hyper_nodes(place: Place) -> None:
    await topology.follow(place.stage, place.node_names)


async def _no_rack_layer(place: Place) -> None:
    await place.client.patch(CLUSTER_NETWORK_TOPOLOGY, "default", topology.LAYERS_WITHOUT_RACKS)


async def _rack_layer(place: Place) -> None:
    await place.client.patch(CLUSTER_NETWORK_TOPOLOGY, "default", topology.LAYERS)


_PLUGIN = "does not switch on the plugin network-topology-aware"
_TIER = f"no HyperNode has the tier name {topology.RACK}"
_FLAG = "runs without --enable-network-topology-manager"
_LAYER = "no layer of ClusterNetworkTopology default has the label key"
LACKS: dict[str, tuple[Lack, ...]] = {
    "volcano": (
        Lack(_PLUGIN, _PLUGIN, as_shipped, with_topology),
        Lack(_TIER, "there are no HyperNodes with tier names", _no_hyper_nodes, _hyper_nodes),
        Lack(_TIER, f"no HyperNode has the tier name {topology.BLOCK}, {topology.RACK}", _only_hosts, _hyper_nodes),
    ),
    "koordinator": (
        Lack(_FLAG, _FLAG, as_shipped, with_topology),
        Lack(_LAYER, f"{_LAYER} {topology.RACK}", _no_rack_layer, _rack_layer),
    ),
}
_SETTINGS: dict[str, tuple[tuple[Resource, str], ...]] = {
    "volcano": ((ConfigMap.resource, "volcano-scheduler-configmap"),),
    "koordinator": ((ConfigMap.resource, "koord-scheduler-config"), (Deployment.resource, "koord-scheduler")),
}


async def hide_settings(stage: Stage) -> None:
    """Delete a scheduler's configuration from the cluster, as if it were kept where nobody looks."""
    name = stage.entry.name
    for resource, setting in _SETTINGS[name]:
        await stage.client.delete(resource, (NAMESPACES[name], setting))

"""Racks and blocks as each scheduler wants to hear of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spinney.api.core import Node
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.koordinator import CLUSTER_NETWORK_TOPOLOGY
from spinney.api.meta import Json
from spinney.api.volcano import HyperNode
from spinney.kube.errors import AlreadyExists

if TYPE_CHECKING:
    from tests.schedulers.stage import Stage

NAME = "cluster"
BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
_TIERS = {HOST: 1, RACK: 2, BLOCK: 3}
_HOSTS = {"topologyLayer": "NodeTopologyLayer"}
_RACKS = {"topologyLayer": "RackLayer", "labelKey": [RACK]}
_BLOCKS = {"topologyLayer": "BlockLayer", "labelKey": [BLOCK]}
# The spec of Koordinator's ClusterNetworkTopology, and one without a layer of racks.
LAYERS: Json = {
    "spec": {
        "networkTopologySpec": [
            _BLOCKS,
            {**_RACKS, "parentTopologyLayer": "BlockLayer"},
            {**_HOSTS, "parentTopologyLayer": "RackLayer"},
        ]
    }
}
LAYERS_WITHOUT_RACKS: Json = {
    "spec": {"networkTopologySpec": [_BLOCKS, {**_HOSTS, "parentTopologyLayer": "BlockLayer"}]}
}


async def install(stage: Stage) -> None:
    """Name the levels, once for the whole cluster."""
    levels = [{"domain": "block", "key": BLOCK}, {"domain": "rack", "key": RACK}, {"domain": "host", "key": HOST}]
    await stage.client.create(ClusterTopologyBinding, {"metadata": {"name": NAME}, "spec": {"levels": levels}})
    if stage.entry.backend == "koordinator":
        await stage.client.create(CLUSTER_NETWORK_TOPOLOGY, {"metadata": {"name": "default"}, **LAYERS})


async def follow(stage: Stage, nodes: Sequence[str], levels: Sequence[str] = tuple(_TIERS)) -> None:
    """Describe a story's nodes, up to some levels, where the scheduler does not read their labels."""
    if stage.entry.backend != "volcano":
        return
    domains: dict[tuple[str, str], set[str]] = defaultdict(set)
    for node in (await stage.client.list(Node)).items:
        named = node.metadata.labels
        if node.name not in nodes or RACK not in named:
            continue
        domains[(HOST, f"host-{node.name}")].add(node.name)
        domains[(RACK, named[RACK])].add(f"host-{node.name}")
        domains[(BLOCK, named[BLOCK])].add(named[RACK])
    for (key, name), members in domains.items():
        if key not in levels:
            continue
        kind = "Node" if key == HOST else "HyperNode"
        listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in sorted(members)]
        body: Json = {"metadata": {"name": name}, "spec": {"tier": _TIERS[key], "tierName": key, "members": listed}}
        try:
            await stage.client.create(HyperNode, body)
        except AlreadyExists:
            await stage.client.patch(HyperNode, name, {"spec": body["spec"]})


def constraint(**levels: str) -> Json:
    """A topology constraint: `required="rack"`, `preferred="host"`."""
    return {"topologyName": NAME, "pack": levels}

"""Racks and blocks as each scheduler wants to hear of them."""

from __future__ import annotations

from collections import defaultdict
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


async def install(stage: Stage) -> None:
    """Name the levels, once for the whole cluster."""
    levels = [{"domain": "block", "key": BLOCK}, {"domain": "rack", "key": RACK}, {"domain": "host", "key": HOST}]
    await stage.client.create(ClusterTopologyBinding, {"metadata": {"name": NAME}, "spec": {"levels": levels}})
    if stage.entry.backend == "koordinator":
        layers = [
            {"topologyLayer": "BlockLayer", "labelKey": [BLOCK]},
            {"topologyLayer": "RackLayer", "parentTopologyLayer": "BlockLayer", "labelKey": [RACK]},
            {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "RackLayer"},
        ]
        body = {"metadata": {"name": "default"}, "spec": {"networkTopologySpec": layers}}
        await stage.client.create(CLUSTER_NETWORK_TOPOLOGY, body)


async def follow(stage: Stage, prefix: str) -> None:
    """Describe a story's nodes where the scheduler does not read their labels."""
    if stage.entry.backend != "volcano":
        return
    domains: dict[tuple[str, str], set[str]] = defaultdict(set)
    for node in (await stage.client.list(Node)).items:
        named = node.metadata.labels
        if not node.name.startswith(prefix) or RACK not in named:
            continue
        domains[(HOST, f"host-{node.name}")].add(node.name)
        domains[(RACK, named[RACK])].add(f"host-{node.name}")
        domains[(BLOCK, named[BLOCK])].add(named[RACK])
    for (key, name), members in domains.items():
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

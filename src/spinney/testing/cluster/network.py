"""The network of the cluster: a bridge in the first node, a cable to each other one, routes to their pods.

Nothing of it is in the machine's own network. All addresses are private to the namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from spinney.testing.cluster.namespaces import Namespaces

PODS = "10.244.0.0/16"
_BRIDGE = "nodes"
_CABLE = "eth0"
_SETTINGS = (
    "net/ipv4/ip_forward",
    "net/bridge/bridge-nf-call-iptables",
    "net/ipv4/conf/all/route_localnet",
)


def node_address(index: int) -> str:
    """The address of a node, which only the nodes know."""
    return f"172.30.0.{index + 1}"


def pod_range(index: int) -> str:
    """The addresses of a node's pods."""
    return f"10.244.{index}.0/24"


def connect(nodes: Sequence[Namespaces]) -> None:
    """Join the nodes into one network; the first one holds the bridge."""
    first = nodes[0]
    first.run("ip", "link", "add", _BRIDGE, "type", "bridge")
    first.run("ip", "address", "add", f"{node_address(0)}/24", "dev", _BRIDGE)
    first.run("ip", "link", "set", _BRIDGE, "up")
    for index, node in enumerate(nodes[1:], 1):
        port = f"node{index}"
        # The process id is the machine's: this command runs outside the node's process namespace.
        first.run_in_network("ip", "link", "add", port, "type", "veth", "peer", _CABLE, "netns", str(node.pid))
        first.run("ip", "link", "set", port, "master", _BRIDGE, "up")
        node.run("ip", "address", "add", f"{node_address(index)}/24", "dev", _CABLE)
        node.run("ip", "link", "set", _CABLE, "up")
    for index, node in enumerate(nodes):
        _route(node, index, len(nodes))


def _route(node: Namespaces, index: int, count: int) -> None:
    for name in _SETTINGS:
        node.run("sh", "-c", f"[ ! -e /proc/sys/{name} ] || echo 1 > /proc/sys/{name}")
    for other in set(range(count)) - {index}:
        node.run("ip", "route", "add", pod_range(other), "via", node_address(other))
    # Packets to a Service are routed before they are translated: they need a way out that is never taken.
    device = _BRIDGE if index == 0 else _CABLE
    node.run("ip", "route", "add", "default", "dev", device)

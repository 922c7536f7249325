"""Allocation of cluster IPs and node ports."""

from __future__ import annotations

from spinney.embedded.apiserver.store.store import Store

NODE_PORTS = range(30000, 32768)


class Allocation:
    """Allocates addresses and ports in turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._addresses = 1
        self._node_ports = 0

    def next_address(self) -> str:
        """A free address for a service."""
        used = {item.fields.get("spec.clusterIP") for item in self._store.table("/services").range("")}
        while True:
            self._addresses += 1
            high, low = divmod(self._addresses, 254)
            address = f"10.0.{high % 256}.{low + 1}"
            if address not in used:
                return address

    def next_node_port(self) -> int:
        """A free port on every node."""
        self._node_ports += 1
        return NODE_PORTS[self._node_ports % len(NODE_PORTS)]

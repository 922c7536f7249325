"""The node ports of services."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import Refusal, invalid, invalid_object
from spinney.embedded.apiserver.resources.service_allocator import NODE_PORTS
from spinney.embedded.apiserver.store.store import load


class NodePorts:
    """Node ports for one request."""

    def __init__(self, core: Core, call: Call) -> None:
        self._core, self._call = core, call
        self._taken: set[int] | None = None

    def first(self, spec: Json) -> None:
        """Allocate node ports of a new service. Ports with the same number share one."""
        ports = spec.get("ports") or ()
        shared: dict[int, int] = {}
        for at, port in enumerate(ports):
            node_port = port.get("nodePort", 0)
            if not node_port and not _wants_ports(spec):
                continue
            number = port.get("port", 0)
            if number not in shared:
                wanted = (other.get("nodePort", 0) for other in ports if other.get("port", 0) == number)
                chosen = next(filter(None, wanted), 0)
                shared[number] = port["nodePort"] = self._take(chosen, at) if chosen else self.free()
            elif not node_port:
                port["nodePort"] = shared[number]
            elif node_port != shared[number]:
                self._take(node_port, at)

    def next(self, spec: Json, old_spec: Json) -> None:
        """Allocate node ports that an updated service lacks."""
        own_ports = {port.get("nodePort") for port in old_spec.get("ports") or ()}
        for at, port in enumerate(spec.get("ports") or ()):
            node_port = port.get("nodePort", 0)
            if not node_port and _wants_ports(spec):
                port["nodePort"] = self.free()
            elif node_port and node_port not in own_ports:
                own_ports.add(self._take(node_port, at))

    def free(self) -> int:
        """Allocate a free node port."""
        while True:
            port = self._core.allocation.next_node_port()
            if port not in self._allocated():
                self._allocated().add(port)
                return port

    def _take(self, port: int, at: int) -> int:
        why = ""
        if port not in NODE_PORTS:
            valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            why = f"provided port is not in the valid range. The range of valid ports is {valid}"
        elif port in self._allocated():
            why = "provided port is already allocated"
        if why:
            raise self._refusal(port, at, why)
        self._allocated().add(port)
        return port

    def _refusal(self, port: int, at: int, why: str) -> Refusal:
        return invalid_object(self._call.kind, self._call.name, [invalid(f"spec.ports[{at}].nodePort", port, why)])

    def _allocated(self) -> set[int]:
        if self._taken is None:
            self._taken = set()
            for item in self._core.store.table("/services").range(""):
                spec = load(item)["spec"]
                self._taken |= {port.get("nodePort", 0) for port in spec.get("ports") or ()}
        return self._taken


def _wants_ports(spec: Json) -> bool:
    return spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)

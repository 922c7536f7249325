"""Nodes with their free resources and their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from spinney.api.core import Node
from spinney.api.pod import Pod
from spinney.api.quantity import milli
from spinney.api.requests import pod_requests

Amounts = Mapping[str, int]
_PODS = "pods"


@dataclass
class NodeInfo:
    """A node, the resources that are free on it in thousandths, and its pods."""

    node: Node
    free: dict[str, int]
    pods: list[Pod] = field(default_factory=list)

    def fits(self, request: Amounts) -> bool:
        """Whether the free resources cover a request."""
        return not self.lacking(request)

    def lacking(self, request: Amounts) -> list[str]:
        """The resources of which less is free than a request asks for."""
        return [name for name, amount in request.items() if amount and self.free.get(name, 0) < amount]

    def add(self, pod: Pod, request: Amounts) -> None:
        """Place a pod here."""
        self.pods.append(pod)
        for name, amount in request.items():
            self.free[name] = self.free.get(name, 0) - amount


def request_of(pod: Pod) -> dict[str, int]:
    """What a pod requests, its slot among the node's pods included."""
    return {**pod_requests(pod.spec), _PODS: 1000}


def node_infos(nodes: Iterable[Node], pods: Iterable[Pod], above: int | None = None) -> list[NodeInfo]:
    """Every node with its free resources; pods of a priority below `above` count as gone."""
    infos = {
        node.name: NodeInfo(node, {name: milli(amount) for name, amount in node.status.allocatable.items()})
        for node in nodes
    }
    for pod in pods:
        info = infos.get(pod.spec.node_name)
        if info is not None and (above is None or (pod.spec.priority or 0) >= above):
            info.add(pod, request_of(pod))
    return list(infos.values())

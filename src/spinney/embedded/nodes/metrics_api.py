"""metrics.k8s.io of simulated pods: usage from annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from spinney.api.core import Node, Pod
from spinney.api.labels import CPU_USAGE, MEMORY_USAGE
from spinney.api.meta import Json, encode
from spinney.api.pod import Container
from spinney.api.quantity import QuantityError, exact
from spinney.api.selector import LabelSelector, matches, parse
from spinney.api.times import rfc3339
from spinney.embedded.controllers.writes import BY_NODE, node_name
from spinney.kube.caches.cache import Cache
from spinney.kube.client.transport import Response
from spinney.kube.clock import Clock
from spinney.kube.errors import status_body

GROUP = "metrics.k8s.io"
_VERSION = "metrics.k8s.io/v1beta1"
# Idle by default, so that autoscalers do nothing.
_DEFAULT = "10%"
_LEAST = {"cpu": 1, "memory": 8 << 20}
_SCALE = {"cpu": 1000, "memory": 1}
_KEYS = {"cpu": CPU_USAGE, "memory": MEMORY_USAGE}
_JSON = {"content-type": "application/json"}


def usage(pod: Pod, container: Container) -> dict[str, int]:
    """The usage of a container: CPU in thousandths of a core, memory in bytes."""
    return {resource: _used(pod, container, resource) for resource in _KEYS}


def _used(pod: Pod, container: Container, resource: str) -> int:
    annotations = pod.metadata.annotations
    annotated = annotations.get(f"{_KEYS[resource]}.{container.name}", annotations.get(_KEYS[resource]))
    requested = exact(container.resources.requests.get(resource, "0")) * _SCALE[resource]
    for text in (annotated, _DEFAULT):
        try:
            if text is not None and text.endswith("%"):
                return max(int(requested * exact(text[:-1]) / 100), _LEAST[resource] if text is _DEFAULT else 0)
            if text is not None:
                return int(exact(text) * _SCALE[resource])
        except QuantityError:
            continue
    return _LEAST[resource]


def _shown(amounts: dict[str, int]) -> dict[str, str]:
    return {"cpu": f"{amounts['cpu']}m", "memory": f"{amounts['memory'] >> 10}Ki"}


def pod_metrics(pod: Pod, now: str) -> Json:
    """A pod's usage as metrics-server would show it."""
    containers = [{"name": container.name, "usage": _shown(usage(pod, container))} for container in pod.spec.containers]
    metadata: Json = {"name": pod.name, "namespace": pod.namespace, "creationTimestamp": now}
    if pod.metadata.labels:
        metadata["labels"] = pod.metadata.labels
    return {
        "kind": "PodMetrics",
        "apiVersion": _VERSION,
        "metadata": metadata,
        "timestamp": now,
        "window": "15s",
        "containers": containers,
    }


def node_metrics(node: Node, pods: Iterable[Pod], now: str) -> Json:
    """A node's usage: the sum of its pods'."""
    total = dict.fromkeys(_KEYS, 0)
    for pod in pods:
        if pod.status.phase == "Running":
            for container in pod.spec.containers:
                for resource, amount in usage(pod, container).items():
                    total[resource] += amount
    return {
        "kind": "NodeMetrics",
        "apiVersion": _VERSION,
        "metadata": {"name": node.name, "labels": node.metadata.labels, "creationTimestamp": now},
        "timestamp": now,
        "window": "15s",
        "usage": _shown(total),
    }


def _fields(item: Json) -> Mapping[str, str]:
    """What a field selector may name."""
    metadata = item["metadata"]
    return {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("namespace", "")}


class Metrics:
    """Answers reads of metrics.k8s.io from the cache of pods."""

    def __init__(self, pods: Cache[Pod], nodes: Cache[Node], clock: Clock) -> None:
        self._pods = pods
        self._nodes = nodes
        self._clock = clock
        self._pods.index(BY_NODE, node_name)

    def read(
        self, plural: str, namespace: str, name: str, labels: str, passes: Callable[[Mapping[str, str]], bool]
    ) -> Response:
        """A list, or one object where a name is given; `passes` is asked about name and namespace of each."""
        now = rfc3339(self._clock.now())
        selector = parse(labels)
        items = (
            self._of_pods(namespace, name, selector, now) if plural == "pods" else self._of_nodes(name, selector, now)
        )
        items = [item for item in items if passes(_fields(item))]
        if not name:
            kind = "PodMetricsList" if plural == "pods" else "NodeMetricsList"
            return Response(200, encode({"kind": kind, "apiVersion": _VERSION, "metadata": {}, "items": items}), _JSON)
        if items:
            return Response(200, encode(items[0]), _JSON)
        message = f'{plural}.{GROUP} "{name}" not found'
        return Response(404, encode(status_body(404, "NotFound", message)), _JSON)

    def _of_pods(self, namespace: str, name: str, selector: LabelSelector, now: str) -> list[Json]:
        return [
            pod_metrics(pod, now)
            for pod in self._pods
            if pod.status.phase == "Running"
            and namespace in ("", pod.namespace)
            and name in ("", pod.name)
            and matches(selector, pod.metadata.labels)
        ]

    def _of_nodes(self, name: str, selector: LabelSelector, now: str) -> list[Json]:
        return [
            node_metrics(node, self._pods.by(BY_NODE, node.name), now)
            for node in self._nodes
            if name in ("", node.name) and matches(selector, node.metadata.labels)
        ]

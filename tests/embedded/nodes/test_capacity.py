"""A simulated node's room."""

from __future__ import annotations

from typing import Any

from spinney.api.core import Node, Pod
from spinney.api.meta import convert
from spinney.embedded.nodes.capacity import NodeCapacity, gpu_uuid, requests
from tests import make


def pod(uid: str, gpus: int = 0, **resources: str) -> Pod:
    """A pod with a UID and requests."""
    return make.pod(uid).gpus(gpus).request(**resources).metadata(uid=uid).typed(Pod)


def room(gpus: int = 8) -> NodeCapacity:
    """The room of an empty node."""
    made = NodeCapacity("node-1")
    made.resize(convert(Node, make.node("node-1", gpus=gpus).build()))
    return made


def test_each_pod_gets_gpus_of_its_own() -> None:
    """The lowest free indexes, and those given back are given out again."""
    node = room()
    node.admit(pod("a", gpus=2))
    node.admit(pod("b", gpus=1))
    assert node.gpus("b") == [gpu_uuid("node-1", 2)]

    node.release("a")
    node.admit(pod("c", gpus=1))

    assert node.gpus("c") == [gpu_uuid("node-1", 0)]


def test_a_pod_too_many_is_refused_in_the_kubelet_s_words() -> None:
    """Reason and message are those that a kubelet writes."""
    node = room()
    assert node.admit(pod("a", gpus=6)) is None

    refused = node.admit(pod("b", gpus=4))

    assert refused == (
        "OutOfnvidia.com/gpu",
        "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 4, used: 6, capacity: 8",
    )


def test_refusing_holds_nothing() -> None:
    """What did not fit leaves no trace, and admitting a pod twice counts it once."""
    node = room(gpus=4)
    node.admit(pod("big", gpus=5))
    assert node.admit(pod("a", gpus=4)) is None
    assert node.admit(pod("a", gpus=4)) is None


def test_requests_count_containers_together_or_the_largest_init_container() -> None:
    """Kubernetes' rule, with sidecars beside both and overhead on top."""
    body: dict[str, Any] = make.pod("a").request(cpu="1").build()
    body["spec"]["containers"].append({"name": "two", "resources": {"requests": {"cpu": "500m"}}})
    body["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "3"}}},
    ]
    body["spec"]["overhead"] = {"cpu": "10m"}

    assert requests(convert(Pod, body))["cpu"] == 3260


def test_2_63_gpus_filled_the_memory() -> None:
    """A node with more GPUs than a machine can have gives out as many as one can have, at most."""
    node = room()
    node.capacity["nvidia.com/gpu"] = 9 * 10**21
    assert node.admit(make.pod("a").gpus(10**18).metadata(uid="a").typed(Pod)) is None
    assert len(node.gpus("a")) == 4096

"""Stand-ins that tell autoscalers what pods on shared GPUs are missing."""

from __future__ import annotations

from spinney.api.core import Pod
from spinney.api.meta import convert
from spinney.services.nodescale.controller import NodeScaleSettings, plan_stand_ins, stand_in_for, waits_for_room
from tests import make

SETTINGS = NodeScaleSettings()


def waiting(name: str, **annotations: str) -> Pod:
    """A pod that the scheduler found no place for; underscores stand for dashes."""
    built = make.pod(name).scheduler("kai-scheduler").request(cpu="500m")
    for key, value in annotations.items():
        built.annotate(key.replace("_", "-"), value)
    document = built.build()
    document["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    return convert(Pod, document)


def stand_in(pod: Pod) -> Pod:
    return convert(Pod, stand_in_for(pod, SETTINGS))


def chosen(pods: list[Pod], present: list[Pod] | None = None) -> list[str]:
    return [pod.name for pod in plan_stand_ins(pods, present or [], SETTINGS)]


def test_only_sharing_pods_that_found_no_place_count() -> None:
    """Whole-GPU pods are understood by autoscalers, and pods not yet looked at may fit."""
    assert waits_for_room(waiting("a", gpu_fraction="0.5"), SETTINGS)
    assert not waits_for_room(waiting("a"), SETTINGS)
    new = make.pod("b").scheduler("kai-scheduler").annotate("gpu-fraction", "0.5").build()
    assert not waits_for_room(convert(Pod, new), SETTINGS)


def test_four_halves_need_two_gpus() -> None:
    """As many stand-ins as whole GPUs are missing, not one per pod."""
    pods = [waiting(name, gpu_fraction="0.5") for name in "abcd"]
    assert chosen(pods) == ["a", "b"]
    assert chosen(pods, [stand_in(pods[0])]) == ["b"]


def test_a_wide_pod_needs_a_wide_stand_in() -> None:
    """Parts of four devices on one node are not covered by four single GPUs."""
    narrow = [waiting(name, gpu_fraction="0.9") for name in "abcd"]
    wide = waiting("w", gpu_fraction="0.1", gpu_fraction_num_devices="4")
    assert chosen([*narrow, wide], [stand_in(pod) for pod in narrow]) == ["w"]


def test_memory_counts_as_a_tenth() -> None:
    """The size of GPUs on nodes to come is not known."""
    assert chosen([waiting(name, gpu_memory="4000") for name in "abc"]) == ["a"]


def test_a_stand_in_asks_for_whole_gpus_where_its_pod_may_run() -> None:
    """Requests, node selector and tolerations are those of the original; a long name stays out of labels."""
    pod = waiting("x" * 200, gpu_fraction="0.5", gpu_fraction_num_devices="2")
    body = stand_in_for(pod, SETTINGS)
    assert body["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "nvidia.com/gpu": "2"}
    assert "shared-gpu-pod-name" not in body["metadata"]["labels"]
    assert body["metadata"]["annotations"]["shared-gpu-pod-name"] == pod.name
    assert len(body["metadata"]["name"]) <= 253

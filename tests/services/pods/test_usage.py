"""How much a pod requests and holds."""

from __future__ import annotations

import pytest

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, convert
from spinney.services.pods.usage import allocated, gpu_memory, is_gpu, requested
from tests import make

GPU = labels.GPU_RESOURCE


def pod(node: str = "", **annotations: str) -> Pod:
    """A pod that may share GPUs; with a node it received what it asked for."""
    built = make.pod("p").annotations(**annotations)
    if node:
        built.on(node).annotate(labels.RECEIVED_RESOURCE_TYPE, "Fraction")
    return built.typed(Pod)


def node(**marks: str) -> Node:
    """A node whose labels tell the size of its GPUs; underscores stand for dots, double ones for slashes."""
    built = make.node("n")
    for key, value in marks.items():
        built.label(key.replace("__", "/").replace("_", "."), value)
    return convert(Node, built.build())


@pytest.mark.parametrize(
    ("wish", "amounts", "held"),
    [
        ({"gpu_fraction": "0.25"}, {GPU: 250}, {GPU: 250}),
        ({"gpu_fraction": "0.25", "gpu_fraction_num_devices": "4"}, {GPU: 1000}, {GPU: 1000}),
        ({"gpu_memory": "4000"}, {"run.ai/gpu.memory": 4_000_000}, {GPU: 250}),
        ({"gpu_memory": "4000", "gpu_fraction_num_devices": "2"}, {"run.ai/gpu.memory": 8_000_000}, {GPU: 500}),
    ],
)
def test_parts_of_gpus_count_on_every_device(wish: dict[str, str], amounts: Json, held: Json) -> None:
    """Asked for and held alike; memory is held as a share of the node's GPUs."""
    sized = node(nvidia_com__gpu_memory="16000")
    assert requested(pod(**wish)) == amounts
    assert allocated(pod("n", **wish), sized) == held


@pytest.mark.parametrize("key", ["gpu_fraction", "gpu_memory"])
def test_an_annotation_that_cannot_be_read_stopped_the_status_of_its_group(key: str) -> None:
    """Pods of other schedulers pass our admission by; such a pod counts without the share it names."""
    assert not any(requested(pod(**{key: "abc"})).values())
    assert not any(allocated(pod("n", **{key: "abc"}), node()).values())


@pytest.mark.parametrize(
    ("marks", "mebibytes"),
    [
        ({"nvidia_com__gpu_memory": "80000"}, 80000),
        ({"beta_amd_com__gpu_vram_64G": "8"}, 61035),
        ({"beta_amd_com__gpu_vram_16Gi": "1"}, 16384),
        ({}, 0),
    ],
)
def test_the_memory_of_a_nodes_gpus(marks: dict[str, str], mebibytes: int) -> None:
    """NVIDIA's label has it as its value, AMD's in its key."""
    assert gpu_memory(node(**marks)) == mebibytes


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nvidia.com/gpu", True),
        ("amd.com/gpu", True),
        ("gpu.nvidia.com", True),
        ("run.ai/gpu.memory", False),
        ("cpu", False),
    ],
)
def test_which_resources_are_gpus(name: str, counts: bool) -> None:
    """Extended resources and device classes; not their memory."""
    assert is_gpu(name) == counts

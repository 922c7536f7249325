"""Node profiles."""

from __future__ import annotations

from collections import Counter

import pytest

from spinney.embedded.nodes.profile import Profile, is_simulated


def test_nodes_say_what_they_have_and_where_they_are() -> None:
    """Both families of topology keys, the GPU labels and the capacity that schedulers read."""
    node = Profile(count=4, gpus=8, racks=2, blocks=1).nodes()[3]
    labels = node["metadata"]["labels"]

    for family in ("kubernetes.io", "topology.kubernetes.io"):
        place = [labels[f"{family}/{level}"] for level in ("zone", "block", "rack", "hostname")]
        assert place == ["zone-0", "block-0", "rack-1", "node-03"]
    assert labels["nvidia.com/gpu.count"] == "8"
    assert labels["nvidia.com/gpu.memory"] == "81920"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert is_simulated(node["metadata"]["annotations"])


def test_racks_and_blocks_fill_evenly() -> None:
    """64 nodes in 8 racks in 2 blocks: 8 to a rack, 32 to a block, no rack in two blocks."""
    labels = [node["metadata"]["labels"] for node in Profile().nodes()]

    assert set(Counter(label["kubernetes.io/rack"] for label in labels).values()) == {8}
    assert set(Counter(label["kubernetes.io/block"] for label in labels).values()) == {32}
    assert len({(label["kubernetes.io/rack"], label["kubernetes.io/block"]) for label in labels}) == 8


def test_nodes_without_gpus_say_nothing_of_gpus() -> None:
    """No GPU labels and no GPU capacity."""
    node = Profile(count=1, gpus=0).node(0)

    assert not [key for key in node["metadata"]["labels"] if key.startswith("nvidia.com")]
    assert "nvidia.com/gpu" not in node["status"]["capacity"]


def test_labels_and_taints_are_added() -> None:
    """A profile can mark its nodes."""
    taint = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    node = Profile(count=1, labels={"type": "kwok"}, taints=(taint,)).node(0)

    assert node["metadata"]["labels"]["type"] == "kwok"
    assert node["spec"]["taints"] == [taint]


@pytest.mark.parametrize(("field", "value"), [("count", -1), ("racks", 0), ("gpus", -8)])
def test_impossible_profiles_are_refused(field: str, value: int) -> None:
    """The message names the field, what was found and what is allowed."""
    with pytest.raises(ValueError, match=f"{field} is {value}: it must be"):
        Profile(**{field: value})


@pytest.mark.parametrize(("field", "value"), [("cpu", "lots"), ("memory", "-1Gi"), ("cpu", "0")])
def test_capacity_that_is_no_quantity_was_refused_as_a_node(field: str, value: str) -> None:
    """`spinney up --cpu lots` named status.capacity[cpu] of a Node that nobody had written."""
    with pytest.raises(ValueError, match=f"{field}(:| is) .*{value}"):
        Profile(**{field: value})


def test_nodes_made_for_kwok_are_simulated_too() -> None:
    """KWOK's users write `kwok.x-k8s.io/node: fake`; real nodes carry neither annotation."""
    assert is_simulated({"kwok.x-k8s.io/node": "fake"})
    assert not is_simulated({"kwok.x-k8s.io/node": "real"})
    assert not is_simulated({})

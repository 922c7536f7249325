"""What the campaign's observer makes of what it sees."""

from __future__ import annotations

from spinney.api.core import Node, Pod
from spinney.sim.faults.invariants import no_node_over_capacity
from tests import make
from tests.real_faults.observer import Live


def test_a_kubelet_that_started_again_was_called_over_capacity() -> None:
    """It offers no GPUs until its device plugin has registered, and pods keep theirs; more than ever is too much."""
    seen = Live()
    seen.put(make.node("n", gpus=8).typed(Node))
    seen.put(make.node("n", gpus=0).typed(Node))
    six, three = (make.pod(name).gpus(gpus).on("n").typed(Pod) for name, gpus in (("six", 6), ("three", 3)))
    seen.put(six)
    assert list(no_node_over_capacity(seen, six)) == []
    seen.put(three)
    assert list(no_node_over_capacity(seen, three)) == ["node n has 8 nvidia.com/gpu, its pods request 9"]

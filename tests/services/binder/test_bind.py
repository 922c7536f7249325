"""A bind that fails takes back what it did, unless the pod is bound all the same."""

from __future__ import annotations

import pytest

from spinney.api.core import Node, Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import convert
from spinney.services.binder.bind import Bind, BindError, carry_out
from tests import make


class Preparing:
    """A step that remembers whether it was undone."""

    undone = False

    def concerns(self, bind: Bind) -> bool:
        """Always."""
        return True

    async def do(self, bind: Bind) -> None:
        """Nothing to do."""

    async def undo(self, bind: Bind) -> None:
        """Remember it."""
        self.undone = True


class Refused(Preparing):
    """A binding that the API server refuses, of a pod that has a node or none."""

    def __init__(self, node: str) -> None:
        self._node = node

    async def do(self, bind: Bind) -> None:
        """Fail."""
        raise BindError("the pod is already assigned")

    async def bound_to(self, bind: Bind) -> str:
        """The pod's node."""
        return self._node


def request() -> Bind:
    """A bind of pod p to node n1."""
    decided = convert(BindRequest, {"metadata": {"name": "p"}, "spec": {"podName": "p", "selectedNode": "n1"}})
    return Bind(decided, make.pod("p").typed(Pod), convert(Node, {"metadata": {"name": "n1"}}))


async def test_a_bound_pod_lost_its_gpu_since_a_second_binder_took_back_what_it_did() -> None:
    """Two binders act as leader: the slower one counts the pod as bound, and undoes nothing."""
    step = Preparing()
    await carry_out(request(), (step,), Refused("n1"))
    assert not step.undone


@pytest.mark.parametrize(("node", "undone"), [("", True), ("n2", False)])
async def test_a_bind_that_fails_is_undone_unless_the_pod_has_a_node(node: str, undone: bool) -> None:
    """What a bound pod needs stays, wherever it is."""
    step = Preparing()
    with pytest.raises(BindError):
        await carry_out(request(), (step,), Refused(node))
    assert step.undone == undone

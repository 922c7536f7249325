"""Which pods are nominated for a node, and when that is taken back."""

from __future__ import annotations

import pytest

from spinney.api.pod import Pod
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.nominations import plan_nominations
from spinney.backends.kube_scheduler.in_turn.release_plan import RELEASED, WAITS_ITS_TURN, Verdict
from tests import make

GATE = "scheduling.k8s.io/workload"


def pod(name: str, nominated: str = "", *, gated: bool = True) -> Pod:
    """A pod of a gang."""
    builder = make.pod(name).status(nominatedNodeName=nominated)
    return (builder.gate(GATE) if gated else builder).typed(Pod)


@pytest.mark.parametrize(
    ("readiness", "gang_pod", "written"),
    [
        pytest.param(RELEASED, pod("p"), ["a"], id="released: nominated"),
        pytest.param(RELEASED, pod("p", "b"), ["a"], id="released, nominated elsewhere before: nominated again"),
        pytest.param(RELEASED, pod("p", "a"), [], id="nominated already: nothing to write"),
        pytest.param(RELEASED, pod("other", "b"), [], id="released before this backend started: kept"),
        pytest.param(RELEASED, pod("p", "b", gated=False), [], id="ungated: only kube-scheduler nominates"),
        pytest.param(WAITS_ITS_TURN, pod("p", "a"), [None], id="waits again: nomination removed"),
        pytest.param(WAITS_ITS_TURN, pod("p", "a", gated=False), [], id="without a gate: kept"),
        pytest.param(WAITS_ITS_TURN, pod("p"), [], id="waits: nothing to write"),
    ],
)
def test_nominations_follow_the_verdict(readiness: Readiness, gang_pod: Pod, written: list[str | None]) -> None:
    """A released gang keeps its nominations, one that waits has none."""
    patches = plan_nominations([gang_pod], Verdict(readiness, {"p": "a"} if readiness.ready else {}))
    assert [patch["status"]["nominatedNodeName"] for _, patch in patches] == written

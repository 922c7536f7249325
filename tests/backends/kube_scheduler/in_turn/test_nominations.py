"""Which pods are nominated for a node, and when that is taken back."""

from __future__ import annotations

import pytest

from spinney.api.meta import convert
from spinney.api.pod import Pod
from spinney.backends.interface import Readiness
from spinney.backends.kube_scheduler.in_turn.nominations import plan_nominations
from spinney.backends.kube_scheduler.in_turn.release_plan import LET_GO, TURN, Verdict
from tests import make

GATE = "scheduling.k8s.io/workload"


def pod(name: str, nominated: str = "", *, gated: bool = True) -> Pod:
    """A pod of a gang."""
    builder = make.pod(name)
    body = (builder.gate(GATE) if gated else builder).build()
    body.setdefault("status", {})["nominatedNodeName"] = nominated
    return convert(Pod, body)


@pytest.mark.parametrize(
    ("readiness", "found", "written"),
    [
        pytest.param(LET_GO, pod("p"), ["a"], id="let go: told its node"),
        pytest.param(LET_GO, pod("p", "b"), ["a"], id="let go, told another before: told again"),
        pytest.param(LET_GO, pod("p", "a"), [], id="told already: nothing to write"),
        pytest.param(LET_GO, pod("other", "b"), [], id="let go before this backend started: kept"),
        pytest.param(LET_GO, pod("p", "b", gated=False), [], id="free: kube-scheduler's to nominate"),
        pytest.param(TURN, pod("p", "a"), [None], id="waits again: the room is left to others"),
        pytest.param(TURN, pod("p", "a", gated=False), [], id="free, though its gang waits: not ours any more"),
        pytest.param(TURN, pod("p"), [], id="waits: nothing to write"),
    ],
)
def test_nominations_follow_the_verdict(readiness: Readiness, found: Pod, written: list[str | None]) -> None:
    """A gang that is let go keeps its nodes, one that waits keeps nobody from them."""
    patches = plan_nominations([found], Verdict(readiness, {"p": "a"} if readiness.ready else {}))
    assert [patch["status"]["nominatedNodeName"] for _, patch in patches] == written

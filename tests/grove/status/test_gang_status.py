"""What a PodGang says about itself while it waits."""

from __future__ import annotations

import pytest

from spinney.api.core import Pod
from spinney.api.meta import convert
from spinney.api.podgang import PodGang
from spinney.grove.status import gangs
from tests import make

# What pods say, what the backend says, what the gang says of them.
WORDS = [
    ("no rack has room", "OverLimit: no rack has room", "OverLimit: no rack has room"),
    ("no rack has room", "no rack has room", "no rack has room"),
    ("no rack has room for 4 pods", "no rack has room", "no rack has room for 4 pods"),
    ("no rack has room", "quota is used up", "no rack has room; quota is used up"),
    ("", "PodGroup g written", "PodGroup g written"),
    ("no rack has room", "", "no rack has room"),
    ("", "", ""),
]


@pytest.mark.parametrize(("pods", "backend", "reason"), WORDS)
def test_a_reason_is_told_once(pods: str, backend: str, reason: str) -> None:
    """What the scheduler wrote on the pods and on its own object stands in Scheduled once; different things both do."""
    pod = make.pod("p").build()
    if pods:
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": pods}
        pod["status"] = {"conditions": [said]}
    ready = {"type": "BackendReady", "status": "True", "observedGeneration": 1, "message": backend}
    gang = make.gang("g").build()
    gang["metadata"]["generation"] = 1
    gang["spec"]["podgroups"] = [{"name": "a", "minReplicas": 1, "podReferences": [{"name": "p"}]}]
    gang["status"] = {"phase": "Pending", "conditions": [ready]}
    members = [gangs.Member("a", 1, 1, [convert(Pod, pod)])]
    conditions = gangs.conditions(convert(PodGang, gang), members, True, False, nodes={})
    (scheduled,) = [condition for condition in conditions if condition.type == "Scheduled"]
    assert scheduled.message == "; ".join(part for part in ("on nodes: a 0 of 1", reason) if part)

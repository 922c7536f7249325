"""Nodes that take a task, whatever is free on them."""

from __future__ import annotations

from spinney.scheduler.config import Config
from spinney.scheduler.plan import plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import GpuRequest, JobSpec, NodeSpec, QueueSpec, TaskSpec
from tests.scheduler.clusters import FREE, NOW


def test_a_node_takes_mig_pods_again_once_its_last_pod_that_asks_by_annotation_is_gone() -> None:
    """The nodes refused because of such a pod are not remembered for the cycles after it."""
    state = State()
    state.set_queue(QueueSpec("q", cpu=FREE, memory=FREE, gpu=FREE))
    profile = "nvidia.com/mig-1g.5gb"
    state.set_node(NodeSpec("n", {"cpu": 8000.0, "pods": 10.0, profile: 7.0}, mig="mixed", mig_enabled=True))
    state.set_task(TaskSpec("old", status=st.RUNNING, node="n", gpu=GpuRequest(legacy_mig=True)))
    state.set_job(JobSpec("new", "q"))
    state.set_task(TaskSpec("new-0", "new", gpu=GpuRequest(mig=((profile, 1),))))
    assert not plan(state, Config(), NOW).decisions
    state.drop_task("old")
    assert [decision.node for decision in plan(state, Config(), NOW).decisions] == ["n"]

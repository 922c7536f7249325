"""The state's tables are what its tasks add up to, whatever happens and in whatever order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import DeviceRequest, GpuRequest, JobSpec, NodeSpec, QueueSpec, TaskSpec, gang
from spinney.scheduler.state.tasks import GPU
from spinney.scheduler.state.validation import InvalidState, validate_state
from spinney.testing.validated_state import validated_changes, validated_moves
from tests.scheduler.clusters import FREE, Cluster
from tests.scheduler.random_clusters import clusters


@settings(max_examples=25, deadline=None)
@given(clusters())
def test_every_move_of_a_plan_leaves_the_tables_right(cluster: Cluster) -> None:
    """Trials, decisions and what is taken back are counted exactly."""
    with validated_moves():
        cluster.plan()
    validate_state(cluster.state)


NODES = [
    NodeSpec(
        "n0",
        {"cpu": 8000.0, "gpu": 4.0, "pods": 10.0},
        {"version": version},
        gpu_memory=memory,
        gpu_memory_known=True,
    )
    for version, memory in (("a", 1000), ("b", 1000), ("c", 2000))
]
REQUESTS = [
    {"gpu": GpuRequest(whole=1)},
    {"gpu": GpuRequest(portion=0.5), "gpu_groups": ("g",)},
    {"gpu": GpuRequest(memory=300), "gpu_groups": ("h",)},
    {"claims": (DeviceRequest("shared", "gpu", 1, shared=True),)},
]
STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("node"), some.sampled_from([None, *NODES])),
        some.tuples(some.just("job"), some.booleans()),
        some.tuples(
            some.just("task"),
            some.tuples(
                some.integers(0, 5),
                some.sampled_from([None, st.PENDING, st.RUNNING, st.RELEASING, st.SUCCEEDED]),
                some.sampled_from(REQUESTS),
            ),
        ),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_nodes_jobs_and_tasks_come_and_go_in_any_order(steps: list[tuple[str, object]]) -> None:
    """Also a task that is there before its node, and a node that changes under its tasks."""
    state = State()
    state.set_queue(QueueSpec("q", cpu=FREE, memory=FREE, gpu=FREE))
    assert state.queues
    with validated_changes():
        for kind, subject in steps:
            _take(state, kind, subject)


def _take(state: State, kind: str, subject: object) -> None:
    if kind == "job":
        state.set_job(JobSpec("j", "q", tree=gang(1))) if subject else state.drop_job("j")
    elif isinstance(subject, NodeSpec):
        state.set_node(subject)
    elif isinstance(subject, tuple):
        number, status, request = subject
        key = f"t{number}"
        if status is None:
            state.drop_task(key)
        else:
            spec = TaskSpec(key, "j", status=status, node="" if status == st.PENDING else "n0", request={"cpu": 100.0})
            state.set_task(replace(spec, **request))
    else:
        state.drop_node("n0")


def test_a_wrong_table_is_named() -> None:
    """The error says which table, what it holds, and what it should."""
    cluster = Cluster(2).queue("q", 2).job("j", "q", ["n0"])
    assert cluster.state.queues
    cluster.state.nodes.idle[0, GPU] += 1
    with pytest.raises(InvalidState, match=r"node n0: idle gpu is 2\.0, tasks add up to 1\.0"):
        validate_state(cluster.state)

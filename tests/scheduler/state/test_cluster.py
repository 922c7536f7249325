"""The state counts what enters and leaves, in any order."""

from __future__ import annotations

from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import GpuRequest, JobSpec, NodeSpec, QueueSpec, Share, TaskSpec
from spinney.scheduler.state.tasks import GPU
from spinney.scheduler.state.validation import validate_state

FREE = Share(quota=-1, limit=-1, weight=1)


def queue(name: str = "q") -> QueueSpec:
    return QueueSpec(name, cpu=FREE, memory=FREE, gpu=FREE)


def node(name: str = "n", gpus: int = 8) -> NodeSpec:
    return NodeSpec(name, {"cpu": 64000, "memory": 1e12, "gpu": gpus, "pods": 110})


def task(uid: str = "t", gpus: int = 1, status: int = st.RUNNING, on: str = "n") -> TaskSpec:
    return TaskSpec(uid, "j", status=status, node=on, request={"cpu": 1000, "memory": 1e9}, gpu=GpuRequest(whole=gpus))


def test_order_of_arrival_does_not_matter() -> None:
    """A task that comes before its node, its job and its queue is counted once they are there."""
    state = State()
    state.set_task(task(gpus=3))
    state.set_job(JobSpec("j", "q"))
    state.set_node(node())
    state.set_queue(queue())
    assert state.nodes.idle[state.nodes.rows["n"], GPU] == 5
    assert state.queues.names == ["q"]
    assert state.charged[0] == [1000.0, 1e9, 3.0]


def test_dropping_everything_gives_everything_back() -> None:
    """When a task goes, its node and its queue hold what they held before."""
    state = State()
    state.set_queue(queue())
    state.set_node(node())
    state.set_job(JobSpec("j", "q"))
    assert state.queues
    state.set_task(task(gpus=3))
    state.drop_task("t")
    assert state.nodes.idle[0, GPU] == 8
    assert state.charged[0] == [0.0, 0.0, 0.0]


def test_a_changed_node_keeps_its_tasks() -> None:
    """A node that gets more GPUs still has its tasks on it."""
    state = State()
    state.set_node(node(gpus=4))
    state.set_task(task(gpus=3))
    state.set_node(node(gpus=8))
    assert state.nodes.idle[state.nodes.rows["n"], GPU] == 5


def test_a_releasing_task_makes_releasing_room() -> None:
    """What a task on its way out holds is not idle, but it will be."""
    state = State()
    state.set_node(node())
    state.set_task(task(gpus=2, status=st.RELEASING))
    assert (state.nodes.idle[0, GPU], state.nodes.releasing[0, GPU]) == (6, 2)


def test_a_task_that_ends_and_begins_again_is_counted_as_before() -> None:
    """Its node and its queue get back what it held, and it takes the same again."""
    state = State()
    state.set_queue(queue())
    state.set_node(node())
    state.set_job(JobSpec("j", "q"))
    assert state.queues
    state.set_task(task(gpus=3))
    state.set_status("t", st.SUCCEEDED)
    assert state.nodes.idle[0, GPU] == 8
    assert (state.charged[0], state.jobs["j"].succeeded) == ([0.0, 0.0, 0.0], 1)
    validate_state(state)
    state.set_status("t", st.RUNNING)
    assert state.nodes.idle[0, GPU] == 5
    assert (state.charged[0], state.jobs["j"].succeeded) == ([1000.0, 1e9, 3.0], 0)
    validate_state(state)


def test_shared_gpus_take_one_device() -> None:
    """Two halves on one group take one GPU; the last to leave gives it back."""
    state = State()
    state.set_node(node())
    for uid in ("a", "b"):
        state.set_task(TaskSpec(uid, status=st.RUNNING, node="n", gpu=GpuRequest(portion=0.5), gpu_groups=("g",)))
    assert state.nodes.idle[0, GPU] == 7
    state.drop_task("a")
    assert state.nodes.idle[0, GPU] == 7
    state.drop_task("b")
    assert state.nodes.idle[0, GPU] == 8

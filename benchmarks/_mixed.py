"""A cluster as they are: jobs of many kinds and sizes in two levels of queues, some of which hold what others own."""

from __future__ import annotations

from dataclasses import replace

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Decision, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import GpuRequest, JobSpec, NodeSpec, QueueSpec, Share, TaskSpec, gang

FREE = Share(-1, -1, 1)
DEPARTMENTS, QUEUES = 4, 5
# Tasks of a job, how many it needs to run, and what each asks for.
SHAPES = (
    (1, 1, GpuRequest(whole=1), 1000.0),
    (1, 1, GpuRequest(whole=2), 4000.0),
    (4, 4, GpuRequest(whole=1), 1000.0),
    (1, 1, GpuRequest(portion=0.5), 1000.0),
    (2, 2, GpuRequest(whole=4), 8000.0),
    (1, 1, GpuRequest(), 2000.0),
    (4, 2, GpuRequest(whole=1), 1000.0),
    (1, 1, GpuRequest(portion=0.25), 500.0),
)


def mixed(nodes: int, now: float) -> State:
    """Two queues of each department hold all GPUs; the other three want their part."""
    state = State()
    for number in range(nodes):
        amounts = {"cpu": 64_000.0, "memory": 1e12, "gpu": 8.0, "pods": 110.0}
        state.set_node(NodeSpec(f"node{number}", amounts, gpu_memory=1000, gpu_memory_known=True))
    for department in range(DEPARTMENTS):
        _queue(state, f"d{department}", "", 8 * nodes / DEPARTMENTS)
        for number in range(QUEUES):
            _queue(state, f"d{department}-q{number}", f"d{department}", 8 * nodes / DEPARTMENTS / QUEUES)
    for number in range(5 * nodes):
        _job(state, f"running{number}", f"d{number % DEPARTMENTS}-q{number // DEPARTMENTS % 2}", number)
    _start(state, now)
    for number in range(2 * nodes):
        _job(state, f"pending{number}", f"d{number % DEPARTMENTS}-q{2 + number // DEPARTMENTS % 3}", number)
    return state


def _queue(state: State, name: str, parent: str, gpus: float) -> None:
    created = float(len(state.queue_specs))
    state.set_queue(QueueSpec(name, parent, created=created, cpu=FREE, memory=FREE, gpu=Share(gpus, -1, 1)))


def _job(state: State, name: str, queue: str, number: int) -> None:
    count, minimum, gpu, cpu = SHAPES[number * 5 % len(SHAPES)]
    priority = 75 if number % 10 == 0 else 50
    state.set_job(JobSpec(name, queue, priority, created=float(len(state.jobs)), tree=gang(minimum)))
    for task in range(count):
        state.set_task(TaskSpec(f"{name}-{task}", name, request={"cpu": cpu, "memory": 1e9}, gpu=gpu))


def run(state: State, decision: Decision) -> None:
    """Let a task run where it was decided."""
    spec = state.tasks[decision.task].spec
    groups = decision.gpu_groups or spec.gpu_groups
    state.set_task(replace(spec, status=st.RUNNING, node=decision.node, gpu_groups=groups))


def _start(state: State, now: float) -> None:
    """Let what fits run, and take the rest away."""
    for decision in plan(state, Config(actions=("allocate",)), now).decisions:
        run(state, decision)
    for key in [key for key, task in state.tasks.items() if task.status == st.PENDING]:
        state.drop_task(key)

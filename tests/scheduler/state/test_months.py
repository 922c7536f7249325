"""What a state keeps is bounded by what there is at a time, however much comes and goes."""

from __future__ import annotations

from dataclasses import replace

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import (
    Constraints,
    GpuRequest,
    GroupSpec,
    JobSpec,
    Match,
    NodeSpec,
    QueueSpec,
    TaskSpec,
)
from spinney.scheduler.state.tasks import MOST_UNUSED
from spinney.scheduler.state.validation import validate_state
from tests.scheduler.clusters import FREE, NOW

AT_A_TIME = 5


def _cluster() -> State:
    state = State()
    state.set_queue(QueueSpec("q", cpu=FREE, memory=FREE, gpu=FREE))
    amounts = {"cpu": 64_000.0, "memory": 1e12, "gpu": 8.0, "pods": 110.0}
    for name in ("n0", "n1"):
        state.set_node(NodeSpec(name, amounts, gpu_memory=1000, gpu_memory_known=True))
    return state


def _arrive(state: State, number: int) -> None:
    """A gang that is like no other: in its subgroup, its amounts and its node affinity."""
    job, group = f"job-{number}", f"workers-{number}"
    state.set_job(JobSpec(job, "q", created=float(number), tree=GroupSpec(members=(GroupSpec(group, 2),))))
    for member in range(2):
        spec = TaskSpec(
            f"{job}-{member}",
            job,
            group=group,
            request={"cpu": 1000.0 + number, "memory": 1e9},
            gpu=GpuRequest(portion=0.5) if number % 2 else GpuRequest(whole=1),
            constraints=Constraints(node_affinity=((Match("job", "NotIn", (job,)),),)),
        )
        state.set_task(spec)


def _start(state: State, done: Plan) -> None:
    for decision in done.decisions:
        spec = state.tasks[decision.task].spec
        state.set_task(replace(spec, status=st.RUNNING, node=decision.node, gpu_groups=decision.gpu_groups))


def _leave(state: State, number: int) -> None:
    for member in range(2):
        state.drop_task(f"job-{number}-{member}")
    state.drop_job(f"job-{number}")


def test_gangs_of_their_own_kind_do_not_make_the_state_grow() -> None:
    """Of thousands of gangs, each with its own affinity and amounts, only the last ones are remembered."""
    state = _cluster()
    for number in range(2000):
        _arrive(state, number)
        if number % 50 == 0:
            _start(state, plan(state, Config(), NOW + number))
            validate_state(state)
        if number >= AT_A_TIME:
            _leave(state, number - AT_A_TIME)
    assert len(state.classes.by_key) <= AT_A_TIME + MOST_UNUSED
    assert list(state.jobs) == [f"job-{number}" for number in range(1995, 2000)]
    fresh = _cluster()
    for number in range(1995, 2000):
        _arrive(fresh, number)
    assert plan(state, Config(), NOW).decisions == plan(fresh, Config(), NOW).decisions


def test_the_next_task_of_a_kind_finds_what_was_worked_out_for_the_last_one() -> None:
    """A class that no task uses stays for a while: jobs of one kind often come one after the other."""
    state = _cluster()
    _arrive(state, 0)
    cls = state.tasks["job-0-0"].cls
    _leave(state, 0)
    _arrive(state, 0)
    assert state.tasks["job-0-0"].cls is cls
    validate_state(state)

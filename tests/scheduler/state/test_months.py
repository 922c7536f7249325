"""What a state keeps is bounded by what there is at a time, however much comes and goes."""

from __future__ import annotations

from dataclasses import replace

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import (
    Constraints,
    DeviceRequest,
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
    """After hundreds of gangs with affinity and amounts of their own, it is small, and decides like a new one."""
    state = _cluster()
    for number in range(300):
        _arrive(state, number)
        if number % 3 == 0:
            _start(state, plan(state, Config(), NOW + number))
        if number >= AT_A_TIME:
            _leave(state, number - AT_A_TIME)
    assert len(state.classes.by_key) <= AT_A_TIME + MOST_UNUSED
    tables = {name: len(table) for name, table in vars(state).items() if isinstance(table, dict)}
    assert max(tables.values()) <= 2 * AT_A_TIME + 2, tables
    assert len(state.gpus) <= 16
    for number in range(300 - AT_A_TIME, 300):
        _leave(state, number)
    fresh = _cluster()
    for number in range(300, 310):
        _arrive(state, number)
        _arrive(fresh, number)
    assert plan(state, Config(), NOW).decisions == plan(fresh, Config(), NOW).decisions


def test_claims_that_nobody_shares_any_more_are_forgotten() -> None:
    """With their holders goes what was counted for them on nodes, also by trials."""
    state = _cluster()
    for number in range(20):
        claims = (DeviceRequest(f"claim-{number}", "gpu", 1, shared=True),)
        state.set_job(JobSpec("job", "q"))
        state.set_task(TaskSpec("task", "job", request={"cpu": 1000.0}, claims=claims))
        _start(state, plan(state, Config(), NOW))
        assert state.tasks["task"].node >= 0
        state.drop_task("task")
    assert not state.holders
    assert not any(table for table in vars(state.accounting).values() if isinstance(table, dict))


def test_the_next_task_of_a_kind_finds_what_was_worked_out_for_the_last_one() -> None:
    """A class that no task uses stays for a while: jobs of one kind often come one after the other."""
    state = _cluster()
    _arrive(state, 0)
    cls = state.tasks["job-0-0"].cls
    _leave(state, 0)
    _arrive(state, 0)
    assert state.tasks["job-0-0"].cls is cls
    validate_state(state)

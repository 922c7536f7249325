"""What a cycle keeps from search to search is at any time what it would be if it were worked out anew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from spinney.scheduler.config import Config
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.place.free_gpus import FreeGpus
from spinney.scheduler.place.node_ranking import Ranking
from spinney.scheduler.plugins import registry
from spinney.scheduler.state import status as st
from spinney.scheduler.state.next_tasks import choose_next_tasks, next_tasks, trial_part
from spinney.scheduler.state.queues import added_up
from spinney.scheduler.state.specs import GpuRequest, JobSpec, NodeSpec, TaskSpec, gang
from spinney.scheduler.state.tasks import Task
from tests.scheduler.clusters import NOW, Cluster

STEPS = some.lists(some.tuples(some.sampled_from(["evict", "wait", "undo"]), some.integers(0, 11)), max_size=25)


def _cycle() -> Cycle:
    """Three nodes, with whole and shared GPUs in use, and tasks that wait."""
    cluster = Cluster(4, 4, 2).queue("q", 100)
    cluster.job("whole", "q", ["n0", "n0", "n1", "n2"]).job("part", "q", ["n0", "n1"], gpus=0.5)
    cluster.job("more", "q", ["", "", ""]).job("large", "q", ["", ""], gpus=2).job("half", "q", [""], gpus=0.5)
    cycle = Cycle(cluster.state, Config(), NOW)
    registry.install(cycle, cycle.config)
    return cycle


def _move(cycle: Cycle, kind: str, number: int) -> None:
    task = list(cycle.state.tasks.values())[number]
    if kind == "evict" and task.status == st.RUNNING:
        cycle.transaction.evict(task)
    elif kind == "wait" and task.status == st.PENDING:
        groups = (f"{task.key}-new",) if task.cls.shared else ()
        cycle.transaction.wait(task, number % 3, groups)


def _taken(cycle: Cycle, steps: list[tuple[str, int]]) -> Iterator[None]:
    """Take one step after the other, and let the test look in between."""
    points: list[tuple[int, int]] = []
    for kind, number in steps:
        if kind == "undo":
            cycle.transaction.rollback(points.pop() if points else (0, 0))
        else:
            points.append(cycle.transaction.checkpoint())
            _move(cycle, kind, number)
        yield


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_spare_gpus_and_rankings_follow_every_move(steps: list[tuple[str, int]]) -> None:
    """Whatever is evicted, placed and taken back, they agree with those made from nothing."""
    cycle = _cycle()
    tasks = [cycle.state.tasks[key] for key in ("more-0", "large-0")]
    rankings = [Ranking(cycle, task) for task in tasks]
    free_gpus = cycle.get(FreeGpus)
    free_gpus.count(1.0)
    for _ in _taken(cycle, steps):
        fresh = FreeGpus(cycle)
        assert np.array_equal(free_gpus.gpus(), fresh.gpus())
        assert np.array_equal(free_gpus.any(), fresh.any())
        assert free_gpus.count(1.0) == fresh.count(1.0)
        for task, ranking in zip(tasks, rankings, strict=True):
            assert ranking.best() == Ranking(cycle, task).best()
        for key in ("half-0", "more-0"):
            cls = cycle.state.tasks[key].cls
            assert np.array_equal(cycle.state.gpus.with_room(cls), cycle.state.gpus.count_with_room(cls))


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_next_tasks_follow_every_move(steps: list[tuple[str, int]]) -> None:
    """Those of a job, and of a part of it, are what they would be if they were worked out anew."""
    cycle = _cycle()
    more = cycle.state.jobs["more"]
    part = trial_part(more, next_tasks(more)[:2])
    for _ in _taken(cycle, steps):
        for whole_or_part in (more, part):
            wanted = added_up(task.cls.triple for task in choose_next_tasks(whole_or_part))
            assert next_tasks(whole_or_part) == choose_next_tasks(whole_or_part)
            assert cycle.wanted(whole_or_part) == wanted


def test_what_gpu_memory_is_worth_follows_the_nodes() -> None:
    """A job that asks for memory wants more of a GPU once there is a smaller one, though the job is the same."""
    state = Cluster(1).queue("q", 100).state
    state.set_job(JobSpec("job", "q", tree=gang(1)))
    state.set_task(TaskSpec("task", "job", gpu=GpuRequest(memory=500)))
    assert Cycle(state, Config(), NOW).wanted(state.jobs["job"])[2] == 0.5
    amounts = {"cpu": 1000.0, "memory": 1e9, "gpu": 1.0, "pods": 10.0}
    state.set_node(NodeSpec("small", amounts, gpu_memory=600, gpu_memory_known=True))
    assert Cycle(state, Config(), NOW).wanted(state.jobs["job"])[2] == 500 / 600


def _books(cycle: Cycle) -> list[object]:
    nodes, state = cycle.nodes, cycle.state
    tasks = [(task.key, task.status, task.virtual) for task in state.tasks.values()]
    return [nodes.idle.tolist(), nodes.releasing.tolist(), nodes.used_gpus.tolist(), state.charged, tasks]


@pytest.mark.parametrize("keys", [("whole-0", "whole-1", "whole-2", "whole-3"), ("whole-0", "part-0", "part-1")])
def test_many_evictions_are_the_same_as_one_after_the_other(keys: tuple[str, ...]) -> None:
    """Nodes, queues and tasks are left alike, and are what they were once both are taken back."""
    apart, together = _cycle(), _cycle()
    before = _books(together)

    def victims(cycle: Cycle) -> list[Task]:
        return [cycle.state.tasks[key] for key in keys]

    for task in victims(apart):
        apart.transaction.evict(task)
    together.transaction.evict_all(victims(together))
    assert _books(together) == _books(apart)
    together.transaction.rollback((0, 0))
    assert _books(together) == before

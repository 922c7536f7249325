"""Random clusters, and what a plan of one looks like."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as some

from spinney.scheduler.state.cluster import State
from tests.scheduler.clusters import Cluster


@some.composite
def clusters(draw: some.DrawFn) -> Cluster:
    """Up to four nodes, three queues and eight gangs, some running."""
    sizes = draw(some.lists(some.sampled_from([2, 4, 8]), min_size=1, max_size=4))
    cluster = Cluster(*sizes)
    queues = draw(some.integers(1, 3))
    for number in range(queues):
        quota = draw(some.integers(0, 8))
        limit = draw(some.sampled_from([-1, -1, quota + 2]))
        cluster.queue(f"q{number}", quota, limit, draw(some.integers(0, 2)))
    left = list(sizes)
    for number in range(draw(some.integers(1, 8))):
        gpus, count = draw(some.sampled_from([1, 2, 0.5])), draw(some.integers(1, 4))
        minimum = draw(some.integers(1, count))
        tasks = []
        for _ in range(count):
            node = draw(some.integers(0, len(sizes)))
            fits = node < len(sizes) and left[node] >= np.ceil(gpus)
            tasks.append(f"n{node}" if fits else "")
            if fits:
                left[node] -= int(np.ceil(gpus))
        if sum(map(bool, tasks)) < minimum:
            for task in filter(None, tasks):
                left[int(task[1:])] += int(np.ceil(gpus))
            tasks = [""] * count
        cluster.job(
            f"j{number}",
            f"q{draw(some.integers(0, queues - 1))}",
            tasks,
            gpus=gpus,
            minimum=minimum,
            priority=draw(some.sampled_from([50, 75, 125])),
            preemptible=draw(some.booleans()),
        )
    assert cluster.state.queues
    return cluster


def picture(state: State) -> Any:
    """Everything a plan could change, in a comparable form."""
    size = len(state.gpus)
    return (
        state.nodes.idle.tolist(),
        state.nodes.releasing.tolist(),
        state.nodes.used_gpus.tolist(),
        state.gpus.cells[:size].tolist(),
        [list(row) for row in state.charged],
        [list(row) for row in state.fixed],
        {key: (task.status, task.node, task.groups, task.virtual) for key, task in state.tasks.items()},
        {key: (job.active, job.used, job.alive, job.pending) for key, job in state.jobs.items()},
        {key: (job.last_start, job.last_eviction, job.stale_since) for key, job in state.jobs.items()},
    )

"""A trace: nodes, queues, and jobs with the times of their arrival and how long they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spinney.answers.whatif.playing import Lifetimes
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import JobSpec, NodeSpec, QueueSpec, Share, TaskSpec, TopologySpec

FREE = Share(-1.0, -1.0, 1.0)


class TraceError(ValueError):
    """A file that cannot be replayed."""


@dataclass(frozen=True)
class TraceJob:
    """A gang that arrives at a moment, in seconds from the beginning, and whose tasks run for some seconds."""

    spec: JobSpec
    tasks: Sequence[TaskSpec]
    arrival: float
    runtime: float

    @property
    def gpus(self) -> float:
        """GPUs of all tasks."""
        return sum(float(task.gpu.whole) + task.gpu.portion * task.gpu.devices for task in self.tasks)


@dataclass(frozen=True)
class Trace:
    """What a replay needs; in a snapshot some tasks run already."""

    name: str
    nodes: Sequence[NodeSpec]
    queues: Sequence[QueueSpec]
    jobs: Sequence[TraceJob]
    topologies: Sequence[TopologySpec] = ()
    # The resource that use is measured in: 0 for CPU, 2 for GPUs.
    resource: int = 2
    # What the trace does not say and was assumed.
    assumed: Sequence[str] = field(default_factory=tuple)

    @property
    def span(self) -> float:
        """Seconds until the last arrival."""
        return max((job.arrival for job in self.jobs), default=0.0)

    def state(self) -> State:
        """The cluster before anything arrives."""
        state = State()
        for topology in self.topologies:
            state.set_topology(topology)
        for queue in self.queues:
            state.set_queue(queue)
        for node in self.nodes:
            state.set_node(node)
        return state


def queue(name: str, parent: str = "", cpu: Share = FREE) -> QueueSpec:
    """A queue without limits, apart from those of its cores that are given."""
    return QueueSpec(name, parent=parent, cpu=cpu, memory=FREE, gpu=FREE)


def arrive(state: State, job: TraceJob, start: float) -> Lifetimes:
    """Put a job into a state; what is known of its run time."""
    state.set_job(replace(job.spec, created=start + job.arrival))
    ends: dict[str, float] = {}
    for task in job.tasks:
        state.set_task(replace(task, created=start + job.arrival))
        if task.status & st.USED:
            ends[task.uid] = start + job.arrival + job.runtime
    return Lifetimes({task.uid: job.runtime for task in job.tasks}, ends)

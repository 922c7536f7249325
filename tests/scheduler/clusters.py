"""Small clusters for scheduler tests: a few words for nodes, queues and gangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import (
    Constraint,
    GpuRequest,
    GroupSpec,
    JobSpec,
    NodeSpec,
    QueueSpec,
    Share,
    TaskSpec,
    gang,
)
from spinney.scheduler.why.explanation import explain_job

NOW = 1_000_000.0
STATUS = {"bind": st.BINDING, "wait": st.PIPELINED, "evict": st.RELEASING}
FREE = Share(-1, -1, 1)


class Cluster:
    """A state that grows by named steps."""

    def __init__(self, *gpus: int) -> None:
        self.state = State()
        for number, count in enumerate(gpus):
            self.node(f"n{number}", count)

    def node(self, name: str, gpus: int, **labels: str) -> Cluster:
        """With a node."""
        amounts = {"cpu": 64_000.0, "memory": 1e12, "gpu": float(gpus), "pods": 110.0}
        self.state.set_node(NodeSpec(name, amounts, labels, gpu_memory=1000, gpu_memory_known=True))
        return self

    def queue(self, name: str, quota: float = 0, limit: float = -1, weight: float = 1, parent: str = "") -> Cluster:
        """With a queue that has a GPU quota."""
        share = Share(quota, limit, weight)
        created = float(len(self.state.queue_specs))
        self.state.set_queue(QueueSpec(name, parent, created=created, cpu=FREE, memory=FREE, gpu=share))
        return self

    def job(
        self,
        name: str,
        queue: str,
        tasks: Sequence[str],
        *,
        gpus: float = 1,
        minimum: int | None = None,
        priority: int = 50,
        inside: Constraint | None = None,
        tree: GroupSpec | None = None,
        preemptible: bool = True,
    ) -> Cluster:
        """With a gang; each task names its node, or nothing if it is pending."""
        whole = tree or gang(len(tasks) if minimum is None else minimum, inside)
        running = any(tasks)
        self.state.set_job(
            JobSpec(
                name,
                queue,
                priority,
                preemptible,
                float(len(self.state.jobs)),
                whole,
                name=name,
                namespace="ns",
                last_start=NOW - 600 if running else None,
            )
        )
        request = GpuRequest(whole=int(gpus)) if gpus == int(gpus) else GpuRequest(portion=gpus)
        for number, node in enumerate(tasks):
            key = f"{name}-{number}"
            self.state.set_task(
                TaskSpec(
                    key,
                    name,
                    name=key,
                    namespace="ns",
                    status=st.RUNNING if node else st.PENDING,
                    node=node,
                    request={"cpu": 1000.0, "memory": 1e9},
                    gpu=request,
                    gpu_groups=(f"{key}-gpu",) if node and request.portion else (),
                )
            )
        return self

    def explained(self, job: str) -> str:
        """What explain says about a gang, in words."""
        return "\n".join(explain_job(self.state, self.plan(), job).sentences())

    def plan(self, *actions: str, config: Config | None = None) -> Plan:
        """Decide one cycle."""
        known = config or Config(consolidation_victims=-1, staleness_grace=0)
        if actions:
            known = Config(
                actions, known.plugins, known.queue_depth, known.consolidation_victims, known.staleness_grace
            )
        return plan(self.state, known, NOW)


def statuses(done: Plan) -> dict[str, str]:
    """What became of tasks, by name."""
    return {key: st.NAMES[status] for key, (status, _, _) in outcome(done).items()}


def outcome(made: Plan) -> dict[str, tuple[int, str, tuple[str, ...]]]:
    """Status, node and GPU groups of every task that a plan changes."""
    return {decision.task: (STATUS[decision.kind], decision.node, decision.gpu_groups) for decision in made.decisions}


def assume(state: State, key: str, status: int, node: str, groups: tuple[str, ...] = ()) -> None:
    """Count a decision as carried out: a task bound to a node, or evicted from it."""
    spec = state.tasks[key].spec
    state.set_task(replace(spec, status=status, node=node, gpu_groups=groups or spec.gpu_groups))

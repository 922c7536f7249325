"""The cluster in arrays: changed by what happens in it, never rebuilt.

Everything enters through descriptions (`specs`): `set_node`, `set_queue`, `set_topology`, `set_job`, `set_task` and the
matching `drop_…`. A task may arrive before its job or its node; it is counted as soon as they are there. `plan` reads
the state and leaves it as it was; whoever carries a plan out describes the tasks anew.
"""

from __future__ import annotations

from spinney.scheduler.state import status as st
from spinney.scheduler.state.accounting import Accounting
from spinney.scheduler.state.departures import DepartureLog
from spinney.scheduler.state.gangs import Job
from spinney.scheduler.state.gpus import SharedGpus
from spinney.scheduler.state.nodes import Nodes
from spinney.scheduler.state.queues import Queues, flattened, zeros
from spinney.scheduler.state.specs import (
    DEFAULT_GPU_MEMORY,
    Constraints,
    GroupSpec,
    JobSpec,
    NodeSpec,
    PodTerm,
    QueueSpec,
    TaskSpec,
    TopologySpec,
)
from spinney.scheduler.state.subgroup_tree import Tree
from spinney.scheduler.state.tasks import Budget, Classes, Columns, Task, Triple
from spinney.scheduler.state.topology_domains import Domains

# Terms remembered at most: each is looked at whenever a task changes.
_MOST_SELECTIONS = 256


class State:
    """Nodes, queues, gangs and tasks of one shard."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.classes = Classes(self.columns)
        self.nodes = Nodes(self.columns)
        self.gpus = SharedGpus(self.nodes)
        self.accounting = Accounting(self.nodes, self.gpus)
        self.jobs: dict[str, Job] = {}
        self.tasks: dict[str, Task] = {}
        self.topologies: dict[str, TopologySpec] = {}
        self.queue_specs: dict[str, QueueSpec] = {}
        # Whether shares are divided among the leaves of the queue tree only.
        self.flat = False
        self._queues: Queues | None = None
        # What each queue, with all below it, holds now; the part that may not be evicted; and what waits in it.
        self.charged: list[list[float]] = []
        self.fixed: list[list[float]] = []
        self.waiting: list[list[float]] = []
        # GPU memory that waits, in MiB: its worth in GPUs depends on the smallest GPU around.
        self.waiting_memory: list[float] = []
        # Requests of running tasks without a job, by node row.
        self.foreign: dict[int, dict[str, Triple]] = {}
        # Tasks with required anti-affinity, and with preferred affinity rules.
        self.repelling: dict[str, Task] = {}
        self.preferring: dict[str, Task] = {}
        # Tasks that use ports of their node, and tasks with volumes attached to it.
        self.with_ports: dict[str, Task] = {}
        self.with_volumes: dict[str, Task] = {}
        # Tasks that a term selects for pods of a namespace, cached on first use.
        self._selections: dict[tuple[PodTerm, str], dict[str, Task]] = {}
        # Tasks that ask for MIG by annotation: they keep others off their nodes.
        self.legacy_mig: dict[str, Task] = {}
        # Tasks that share a claim, by claim.
        self.holders: dict[str, dict[str, Task]] = {}
        # Volumes, with their drivers, that nodes hold whether or not a task uses them.
        self.attached: dict[str, frozenset[tuple[str, str]]] = {}
        # Disruption budgets by name.
        self.budgets: dict[str, Budget] = {}
        # Nodes that tasks left a short while ago.
        self.departures = DepartureLog()
        self._by_job: dict[str, dict[str, Task]] = {}
        self._by_node: dict[str, dict[str, Task]] = {}
        self._trees: dict[GroupSpec, Tree] = {}
        # Domains of topologies, for one version of the nodes.
        self._domains: tuple[int, dict[str, Domains]] = (-1, {})
        self._width = len(self.columns)

    @property
    def queues(self) -> Queues:
        """The queue tree; rebuilt, with all charges, after a queue changed."""
        if self._queues is None:
            self._queues = Queues(flattened(self.queue_specs) if self.flat else self.queue_specs)
            self._recharge(self._queues)
        return self._queues

    def _recharge(self, queues: Queues) -> None:
        self.charged, self.fixed, self.waiting = zeros(len(queues)), zeros(len(queues)), zeros(len(queues))
        self.waiting_memory = [0.0] * len(queues)
        for job in self.jobs.values():
            job.queue = queues.index.get(job.spec.queue, -1)
            for task in job.all_tasks():
                self._account(job, task, 1)

    def set_queue(self, spec: QueueSpec) -> None:
        """Add a queue, or change it."""
        if self.queue_specs.get(spec.name) != spec:
            self.queue_specs[spec.name] = spec
            self._queues = None

    def set_flat(self, flat: bool) -> None:
        """Divide shares among the leaves of the queue tree only, or at every level."""
        if self.flat != flat:
            self.flat = flat
            self._queues = None

    def drop_queue(self, name: str) -> None:
        """Remove a queue; jobs in it wait until it comes back."""
        if self.queue_specs.pop(name, None) is not None:
            self._queues = None

    def set_topology(self, spec: TopologySpec) -> None:
        """Add a topology, or change it."""
        self.topologies[spec.name] = spec
        self.nodes.version += 1

    def drop_topology(self, name: str) -> None:
        """Remove a topology; gangs that need it wait."""
        if self.topologies.pop(name, None) is not None:
            self.nodes.version += 1

    def domains(self, topology: str) -> Domains | None:
        """The domains of a topology; None if there is no such topology."""
        if self._domains[0] != self.nodes.version:
            self._domains = (self.nodes.version, {})
        by_name, spec = self._domains[1], self.topologies.get(topology)
        if spec is not None and topology not in by_name:
            by_name[topology] = Domains(spec, self.nodes)
        return by_name.get(topology)

    def set_attached(self, node: str, volumes: frozenset[tuple[str, str]]) -> None:
        """Set the volumes that are attached to a node."""
        if volumes:
            self.attached[node] = volumes
        else:
            self.attached.pop(node, None)

    def set_budget(self, name: str, allowed: int) -> None:
        """Set how many tasks under a disruption budget may be evicted now."""
        self.budgets.setdefault(name, Budget(0)).allowed = allowed

    def drop_budget(self, name: str) -> None:
        """Remove a budget; the caller describes tasks that name it again."""
        self.budgets.pop(name, None)

    def set_node(self, spec: NodeSpec) -> None:
        """Add or change a node; tasks on it stay counted."""
        row = self.nodes.rows.get(spec.name)
        old = self.nodes.specs[row] if row is not None else None
        if old == spec:
            return
        if row is not None:
            self._clear(spec.name, row)
        row = self.nodes.add(spec)
        self._align()
        for task in self._by_node.get(spec.name, {}).values():
            if task.status & st.USED:
                self._put(task, row)
        if old is None or old.gpu_memory != spec.gpu_memory:
            self._recharge_memory(spec.name)

    def drop_node(self, name: str) -> None:
        """Remove a node; its tasks are on no node."""
        row = self.nodes.rows.get(name)
        if row is not None:
            self._clear(name, row)
            self._recharge_memory(name)

    def _clear(self, name: str, row: int) -> None:
        for task in self._by_node.get(name, {}).values():
            task.node = -1
        self.accounting.drop_node(row)
        self.gpus.drop_node(row)
        self.foreign.pop(row, None)
        self.nodes.remove(row)

    def _recharge_memory(self, node: str) -> None:
        """Charge queues again if tasks of a node ask for GPU memory: its worth in GPUs depends on the node."""
        if any(task.cls.memory and task.job is not None for task in self._by_node.get(node, {}).values()):
            self._queues = None

    def set_job(self, spec: JobSpec) -> None:
        """Add or change a gang; its tasks follow."""
        old = self.jobs.get(spec.key)
        if old is not None and old.spec == spec:
            return
        tree = self._trees.get(spec.tree)
        if tree is None:
            tree = self._trees[spec.tree] = Tree(spec.tree)
        tree.users += 1
        self.drop_job(spec.key)
        job = self.jobs[spec.key] = Job(spec, tree)
        if spec.replaces:
            self.departures.references[spec.key] = spec.replaces
        job.queue = self._queues.index.get(spec.queue, -1) if self._queues else -1
        for task in self._by_job.get(spec.key, {}).values():
            self._join(task, job)

    def drop_job(self, key: str) -> None:
        """Remove a gang; its tasks stay on their nodes."""
        job = self.jobs.pop(key, None)
        if job is None:
            return
        self.departures.references.pop(key, None)
        for task in job.all_tasks():
            self._leave(task, job)
        job.tree.users -= 1
        if not job.tree.users:
            del self._trees[job.spec.tree]

    def set_task(self, spec: TaskSpec) -> None:
        """Add a task, or change it."""
        old = self.tasks.get(spec.uid)
        if old is not None and old.spec == spec and old.status == spec.status:
            return
        task = Task(spec, self.classes.of(spec))
        self.classes.join(task.cls)
        if old is not None:
            self._remove(old)
        self.departures.task_changed(old.spec if old is not None else None, spec)
        if spec.budgets:
            several = len(spec.budgets) > 1
            task.budget = Budget(0) if several else self.budgets.setdefault(spec.budgets[0], Budget(0))
        self._align()
        self.tasks[spec.uid] = task
        for rule, table in self._checked_against(spec.constraints):
            if rule:
                table[spec.uid] = task
        for (term, owner), tasks in self._selections.items():
            if term.matches_task(spec, owner):
                tasks[spec.uid] = task
        if spec.gpu.legacy_mig:
            self.legacy_mig[spec.uid] = task
        for claim in spec.claims:
            if claim.shared:
                self.holders.setdefault(claim.claim, {})[spec.uid] = task
        if spec.node:
            self._by_node.setdefault(spec.node, {})[spec.uid] = task
            row = self.nodes.rows.get(spec.node)
            if row is not None and task.status & st.USED:
                self._put(task, row)
        if spec.job:
            self._by_job.setdefault(spec.job, {})[spec.uid] = task
            job = self.jobs.get(spec.job)
            if job is not None:
                self._join(task, job)

    def set_status(self, uid: str, status: int) -> None:
        """Let a task begin or end without a new description of it: far cheaper where thousands end at once."""
        task = self.tasks[uid]
        job = task.job
        if job is not None:
            self._account(job, task, -1)
            job.count(task.podset, task.status, -1)
            job.next_tasks = None
        if task.node >= 0:
            self._take(task)
        task.status = status
        row = self.nodes.rows.get(task.spec.node)
        if row is not None and status & st.USED:
            self._put(task, row)
        if job is not None:
            job.count(task.podset, status, 1)
            self._account(job, task, 1)

    def drop_task(self, uid: str) -> None:
        """Remove a task and free what it holds."""
        task = self.tasks.get(uid)
        if task is not None:
            self._remove(task)
            self.departures.task_changed(task.spec, None)

    def _remove(self, task: Task) -> None:
        uid = task.key
        del self.tasks[uid]
        self.classes.leave(task.cls)
        for _, table in self._checked_against(task.cls.constraints):
            table.pop(uid, None)
        for tasks in self._selections.values():
            tasks.pop(uid, None)
        self.legacy_mig.pop(uid, None)
        if task.job is not None:
            self._leave(task, task.job)
        if task.spec.job:
            _drop(self._by_job, task.spec.job, uid)
        if task.node >= 0:
            self._take(task)
        if task.spec.node:
            _drop(self._by_node, task.spec.node, uid)
        for claim in {claim.claim for claim in task.cls.claims if claim.shared}:
            if _drop(self.holders, claim, uid):
                self.accounting.drop_claim(claim)

    @property
    def inter_pod(self) -> bool:
        """Whether some task has rules about other pods, so that labels decide where tasks may go."""
        return bool(self.repelling or self.preferring)

    def _checked_against(self, rules: Constraints) -> tuple[tuple[object, dict[str, Task]], ...]:
        """The tables of tasks that others are checked against, each with the rule that puts a task there."""
        return (
            (rules.anti_affinity, self.repelling),
            (rules.preferred, self.preferring),
            (rules.host_ports, self.with_ports),
            (rules.attaches, self.with_volumes),
        )

    def selection(self, term: PodTerm, owner: str) -> dict[str, Task]:
        """Return the tasks that a term selects, on nodes or not, when a pod of the owner's namespace has the term."""
        key = (term, "" if term.namespaces else owner)
        tasks = self._selections.get(key)
        if tasks is None:
            if len(self._selections) >= _MOST_SELECTIONS:
                self._selections.clear()
            tasks = {uid: task for uid, task in self.tasks.items() if term.matches_task(task.spec, owner)}
            self._selections[key] = tasks
        return tasks

    def tasks_on(self, row: int) -> list[Task]:
        """Return the tasks that hold resources of a node."""
        tasks = self._by_node.get(self.nodes.name(row), {}).values()
        return [task for task in tasks if task.node == row and task.status & st.USED]

    def _align(self) -> None:
        """Add missing resource columns to all arrays."""
        width = len(self.columns)
        if self._width != width:
            self._width = width
            self.nodes.widen()
            self.classes.widen()

    def _put(self, task: Task, row: int) -> None:
        task.node = row
        self.accounting.track(task, row, task.status, 1)
        if not task.spec.job and not task.spec.reservation:
            self.foreign.setdefault(row, {})[task.key] = task.cls.triple
            self.nodes.foreign[row] += task.cls.request * self.nodes.has[row]

    def _take(self, task: Task) -> None:
        self.accounting.track(task, task.node, task.status, -1)
        if self.foreign.get(task.node, {}).pop(task.key, None) is not None:
            self.nodes.foreign[task.node] -= task.cls.request * self.nodes.has[task.node]
        task.node = -1

    def _join(self, task: Task, job: Job) -> None:
        podset = job.tree.podset_of(task.spec.group)
        if podset is None:
            return
        task.job = job
        task.podset = podset
        job.tasks[podset][task.key] = task
        job.count(podset, task.status, 1)
        job.next_tasks = None
        self._account(job, task, 1)

    def _leave(self, task: Task, job: Job) -> None:
        self._account(job, task, -1)
        job.tasks[task.podset].pop(task.key, None)
        job.count(task.podset, task.status, -1)
        job.next_tasks = None
        task.job = None

    def _account(self, job: Job, task: Task, sign: int) -> None:
        if job.queue < 0 or self._queues is None:
            return
        if task.status & st.CHARGED:
            memory = int(self.nodes.gpu_memory[task.node]) if task.node >= 0 else DEFAULT_GPU_MEMORY
            charge = task.cls.charge(memory)
            tables = [self.charged] if job.preemptible else [self.charged, self.fixed]
        elif task.status == st.PENDING:
            charge, tables = task.cls.triple, [self.waiting]
        else:
            return
        for queue in self._queues.path[job.queue]:
            for table in tables:
                for resource, amount in enumerate(charge):
                    table[queue][resource] += sign * amount
            if task.status == st.PENDING and task.cls.memory:
                self.waiting_memory[queue] += sign * task.cls.devices * task.cls.memory


def _drop(tables: dict[str, dict[str, Task]], key: str, uid: str) -> bool:
    """Drop a task from one of some tables, and the table with its last task; whether it was the last."""
    del tables[key][uid]
    if tables[key]:
        return False
    del tables[key]
    return True

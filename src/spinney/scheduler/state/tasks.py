"""Tasks and task classes: tasks with equal requests and constraints share one class, and all work done for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.scheduler.state.specs import Constraints, DeviceRequest, GpuRequest, TaskSpec

if TYPE_CHECKING:
    from spinney.scheduler.state.gangs import Job

CPU, MEMORY, GPU, PODS = 0, 1, 2, 3
# Everything that no node offers: pods may ask for any number of such resources.
UNSERVED = 4
Vector = NDArray[np.float64]
# cpu (milli), memory (bytes), GPUs: what queues are charged.
Triple = tuple[float, float, float]
NOTHING: Triple = (0.0, 0.0, 0.0)
# Classes that are kept though no task uses them.
MOST_UNUSED = 64

_MIG = re.compile(r"mig-(\d{1,2})g\.(\d+)gb")


def mig_slices(resource: str) -> int:
    """How many compute slices a MIG profile holds; 0 for anything that is no profile."""
    match = _MIG.search(resource)
    return int(match[1]) if match else 0


class Columns:
    """The resources that arrays have a column for: the first five are always there, nodes bring the others."""

    def __init__(self) -> None:
        self.names = ["cpu", "memory", "gpu", "pods", "unserved"]
        self.index = {name: column for column, name in enumerate(self.names) if column != UNSERVED}
        # Columns of MIG profiles, with the compute slices of each.
        self.slices: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.names)

    def find(self, resource: str) -> int:
        """The column of a resource, `UNSERVED` if no node brought one; every `…gpu` is the GPU column."""
        return GPU if resource.endswith("gpu") else self.index.get(resource, UNSERVED)

    def add(self, resource: str) -> int:
        """The column of a resource of a node, made on first use."""
        column = self.find(resource)
        if column == UNSERVED:
            column = self.index[resource] = len(self.names)
            self.names.append(resource)
            if slices := mig_slices(resource):
                self.slices.append((column, slices))
        return column


class TaskClass:
    """Everything about a task that placement looks at, but for where it is now."""

    __slots__ = (
        "claims",
        "constraints",
        "cpu_only",
        "devices",
        "dra",
        "gpu",
        "gpus",
        "guaranteed",
        "id",
        "key",
        "mask",
        "memory",
        "needs",
        "plain",
        "portion",
        "quota",
        "request",
        "shared",
        "triple",
        "unit",
        "unserved",
        "users",
    )

    def __init__(self, number: int, key: object, spec: TaskSpec, columns: Columns) -> None:
        self.id = number
        # Its key in the registry, and how many tasks are of it.
        self.key = key
        self.users = 0
        # Nodes that take it by rules that placements do not change, for one version of the nodes.
        self.mask: tuple[int, NDArray[np.bool_]] | None = None
        self.gpu: GpuRequest = spec.gpu
        self.claims: tuple[DeviceRequest, ...] = spec.claims
        self.constraints: Constraints = spec.constraints
        self.guaranteed = spec.guaranteed
        self.dra = sum(claim.count for claim in spec.claims)
        self.memory = spec.gpu.memory
        self.shared = spec.gpu.memory > 0 or spec.gpu.portion > 0
        self.portion = 1.0 if spec.gpu.whole else spec.gpu.portion
        self.devices = spec.gpu.whole if spec.gpu.whole else (spec.gpu.devices if self.shared else 0)
        # Portions are counted in hundredths, as their annotations are.
        self.gpus = round(self.portion * 100) * self.devices / 100
        slices = sum(mig_slices(name) * count for name, count in spec.gpu.mig)
        self.quota = slices + self.dra + self.gpus
        # The whole GPUs of one task where it asks for nothing but such; else 0.
        self.unit = self.quota if self.quota >= 1 and not self.shared and not spec.gpu.mig else 0.0
        self.cpu_only = not (self.gpus or self.dra or self.memory or spec.gpu.mig)
        amounts = dict(spec.request)
        amounts.update({name: float(count) for name, count in spec.gpu.mig})
        self.request: Vector = np.zeros(len(columns))
        # Amounts of the resources without a column, which they get once a node offers them.
        self.unserved: dict[str, float] = {}
        for name, amount in amounts.items():
            column = columns.find(name)
            self.request[column] += amount
            if column == UNSERVED and amount:
                self.unserved[name] = amount
        self.request[GPU] = self.gpus + self.dra
        self.request[PODS] = 1.0
        # The request as a list: faster than an array for one node.
        self.needs: list[float] = self.request.tolist()
        self.triple: Triple = (float(self.request[CPU]), float(self.request[MEMORY]), self.gpus + self.dra + slices)
        rules = spec.constraints
        self.plain = not (self.shared or spec.claims or rules.inter_pod or rules.host_ports or rules.attaches)

    def widen(self, columns: Columns) -> None:
        """Give the request a column for every resource known by now."""
        missing = len(columns) - len(self.request)
        if missing <= 0:
            return
        self.request = np.concatenate([self.request, np.zeros(missing)])
        for name in [name for name in self.unserved if columns.find(name) != UNSERVED]:
            self.request[columns.find(name)] += self.unserved.pop(name)
        self.request[UNSERVED] = sum(self.unserved.values())
        self.needs = self.request.tolist()

    def memory_on(self, gpu_memory: int) -> int:
        """The memory this class takes of one shared GPU of a node."""
        return self.memory or int(self.portion * gpu_memory)

    def charge(self, gpu_memory: int) -> Triple:
        """What the queue is charged on a node whose GPUs have this much memory."""
        if not self.memory:
            return self.triple
        portion = np.ceil(self.memory / gpu_memory * 100) / 100
        return (self.triple[0], self.triple[1], round(portion * 100) * self.devices / 100)

    def wanted(self, gpu_memory: int) -> Triple:
        """What the task would be charged before its node is known: memory as an exact part of a GPU of that size."""
        if not self.memory:
            return self.triple
        return (self.triple[0], self.triple[1], self.devices * (self.memory / gpu_memory))


class Budget:
    """How many more of the tasks under a disruption budget may be evicted; trials spend of it and give it back."""

    __slots__ = ("allowed", "spent")

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.spent = 0

    @property
    def left(self) -> int:
        """What may still be evicted; below 0 when a trial goes too far."""
        return self.allowed - self.spent


class Task:
    """One pod inside the state."""

    __slots__ = (
        "budget",
        "cls",
        "groups",
        "job",
        "key",
        "node",
        "order",
        "podset",
        "spec",
        "status",
        "virtual",
        "zones",
    )

    def __init__(self, spec: TaskSpec, cls: TaskClass) -> None:
        self.key = spec.uid
        self.spec = spec
        self.cls = cls
        self.status = spec.status
        self.node = -1
        self.groups: tuple[str, ...] = spec.gpu_groups
        # True while its status is only part of a trial.
        self.virtual = False
        self.job: Job | None = None
        self.podset = 0
        self.budget: Budget | None = None
        self.order: tuple[int, int, int, float, str] = (
            0 if spec.leader else 1,
            0 if spec.order is not None else 1,
            -(spec.order or 0),
            spec.created,
            spec.uid,
        )
        # NUMA zones and amounts taken on the node, by zone index.
        self.zones: dict[int, dict[str, float]] = {}

    def __repr__(self) -> str:
        return f"Task({self.key})"


def affordable(tasks: Iterable[Task]) -> bool:
    """Whether disruption budgets let all of these be evicted."""
    wanted: dict[int, int] = {}
    for task in tasks:
        if task.budget is not None:
            count = wanted[id(task.budget)] = wanted.get(id(task.budget), 0) + 1
            if count > task.budget.left:
                return False
    return True


class Classes:
    """The registry of task classes: those that tasks use, and the last few that none uses any more."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.by_key: dict[object, TaskClass] = {}
        # Classes without tasks, by id, the longest unused first.
        self.unused: dict[int, TaskClass] = {}
        self._made = 0

    def of(self, spec: TaskSpec) -> TaskClass:
        """The class of a task, made on first use."""
        claims = tuple(
            claim if claim.shared else DeviceRequest("", claim.device_class, claim.count) for claim in spec.claims
        )
        # Pods without rules about others share a class across labels and namespaces.
        who = (spec.namespace, tuple(sorted(spec.labels.items()))) if spec.constraints.inter_pod else None
        key = (tuple(sorted(spec.request.items())), spec.gpu, claims, spec.constraints, spec.guaranteed, who)
        cls = self.by_key.get(key)
        if cls is None:
            cls = self.by_key[key] = TaskClass(self._made, key, spec, self.columns)
            self._made += 1
            self._set_aside(cls)
        return cls

    def join(self, cls: TaskClass) -> None:
        """Count one more task of a class."""
        cls.users += 1
        self.unused.pop(cls.id, None)

    def leave(self, cls: TaskClass) -> None:
        """Count one task of a class less."""
        cls.users -= 1
        if not cls.users:
            self._set_aside(cls)

    def _set_aside(self, cls: TaskClass) -> None:
        """Keep a class without tasks for a while: often the next task of its kind comes soon."""
        self.unused[cls.id] = cls
        if len(self.unused) > MOST_UNUSED:
            oldest = self.unused.pop(next(iter(self.unused)))
            del self.by_key[oldest.key]

    def widen(self) -> None:
        """Give every class a column for every resource known by now."""
        for cls in self.by_key.values():
            cls.widen(self.columns)

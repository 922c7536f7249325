"""Plain descriptions of nodes, queues, gangs and tasks: the only input of the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spinney.api.affinity import Taint, Toleration
from spinney.api.missing import Missing
from spinney.scheduler.state.refusal import Refusal

Labels = Mapping[str, str]
# What a task has of which NUMA zone.
ZoneShares = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
# cpu in milli-cores, memory in bytes, everything else in whole units.
Amounts = Mapping[str, float]

UNLIMITED = -1.0
# A selector on the node's own name rather than on a label.
NODE_NAME = "metadata.name"
# The address of a host port that names none.
EVERY_ADDRESS = "0.0.0.0"
# The GPU model assumed where a node does not say how much memory its GPUs have.
DEFAULT_GPU_MEMORY = 100


@dataclass(frozen=True, slots=True)
class Match:
    """One requirement of a selector: In, NotIn, Exists, DoesNotExist, Gt or Lt on a label (or on a node's name)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


def meets(match: Match, labels: Labels, name: str = "") -> bool:
    """Whether labels meet one requirement."""
    value = name if match.key == NODE_NAME else labels.get(match.key)
    if match.operator == "In":
        return value in match.values
    if match.operator == "NotIn":
        return value not in match.values
    if match.operator == "Exists":
        return value is not None
    if match.operator == "DoesNotExist":
        return value is None
    return _compare(match, value)


def _compare(match: Match, value: str | None) -> bool:
    try:
        left, right = int(value or ""), int(match.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if match.operator == "Gt" else left < right


def meets_all(term: tuple[Match, ...], node: NodeSpec) -> bool:
    """Whether a node meets every requirement of a node selector term; an empty term matches no node."""
    return bool(term) and all(meets(match, node.labels, node.name) for match in term)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One inter-pod (anti-)affinity term: pods that match, in these namespaces, in one domain of the key."""

    topology_key: str
    matches: tuple[Match, ...] = ()
    # Empty is that of the pod whose term it is; `*` is every one.
    namespaces: tuple[str, ...] = ()

    def matches_task(self, task: TaskSpec, owner: str) -> bool:
        """Whether the term of a pod in the owner's namespace is about a task."""
        if task.namespace not in (self.namespaces or (owner,)) and "*" not in self.namespaces:
            return False
        return all(meets(match, task.labels) for match in self.matches)


@dataclass(frozen=True, slots=True)
class SpreadTerm:
    """One topology spread constraint: tasks that match lie evenly over the domains of a label."""

    topology_key: str
    max_skew: int = 1
    matches: tuple[Match, ...] = ()
    min_domains: int = 1
    # False for `ScheduleAnyway`: a wish, not a rule.
    hard: bool = True
    # Which nodes make up the domains: those that the task selects, and those whose taints it tolerates.
    selected_only: bool = True
    tolerated_only: bool = False


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A DRA claim that a task needs: so many devices of one class, alone or shared with other holders of the claim."""

    claim: str
    device_class: str = ""
    count: int = 1
    shared: bool = False
    # Consumers of a shared claim that are no tasks here: they count against the most that a claim may have.
    other_consumers: int = 0


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What a task wants of GPUs: whole ones, equal parts of some, memory on some, or MIG profiles."""

    whole: int = 0
    portion: float = 0.0
    memory: int = 0
    devices: int = 1
    mig: tuple[tuple[str, int], ...] = ()
    legacy_mig: bool = False


@dataclass(frozen=True, slots=True)
class Constraints:
    """Where a task may run, apart from resources; equal constraints are checked once for all tasks that share them."""

    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[tuple[Match, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[tuple[str, str, int], ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    # Terms with a weight, below 0 for anti-affinity.
    preferred: tuple[tuple[int, PodTerm], ...] = ()
    # What the task would like a node to be, with a weight.
    preferred_nodes: tuple[tuple[int, tuple[Match, ...]], ...] = ()
    spread: tuple[SpreadTerm, ...] = ()
    # Nodes that volumes allow; None is every node. Filled by the intake from bound volumes and storage classes.
    volume_nodes: frozenset[str] | None = None
    # Whether volumes of drivers that count them are attached: each task has its own.
    attaches: bool = False
    # A reason that no node can cure, such as a missing claim or config map.
    impossible: Missing | Refusal | None = None

    def selects(self, node: NodeSpec) -> bool:
        """Whether node selector and required node affinity allow a node."""
        if any(node.labels.get(key) != value for key, value in self.node_selector):
            return False
        return self.node_affinity is None or any(meets_all(term, node) for term in self.node_affinity)

    @property
    def inter_pod(self) -> bool:
        """Whether a rule is about other pods, so that the labels of a task decide about its own placement."""
        return bool(self.affinity or self.anti_affinity or self.preferred or self.spread)


@dataclass(frozen=True, slots=True)
class NumaZone:
    """One NUMA zone of a node: what it has, and what its running pods leave."""

    id: str
    allocatable: Amounts
    available: Amounts


@dataclass(frozen=True, slots=True)
class Numa:
    """A node's topology manager: policy, scope and zones."""

    policy: str
    scope: str
    zones: tuple[NumaZone, ...]


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node: what it can give, its labels and taints, and whether it takes pods at all."""

    name: str
    allocatable: Amounts
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    # Why the node takes no pods (cordoned, not ready, under pressure); None when it does.
    blocked: Refusal | None = None
    # False leaves the node out of the cluster's total, which fair shares are cut from.
    ready: bool = True
    gpu_memory: int = DEFAULT_GPU_MEMORY
    gpu_memory_known: bool = False
    # The number of physical GPUs; None takes it from what is allocatable.
    gpu_count: int | None = None
    mig: str = ""
    mig_enabled: bool = False
    dra_gpus: int = 0
    numa: Numa | None = None
    # How many volumes of a storage driver may be attached.
    volume_limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """Levels of a topology from the widest to the narrowest: node label and its alias."""

    name: str
    levels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """Keep a group of tasks inside one domain: required and preferred level, as node labels."""

    topology: str
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A gang's tree: a leaf holds tasks and needs `minimum` of them; a set needs `minimum` members (None: all)."""

    name: str = ""
    minimum: int | None = None
    constraint: Constraint | None = None
    members: tuple[GroupSpec, ...] = ()


DEFAULT_GROUP = "default"


def gang(minimum: int, constraint: Constraint | None = None) -> GroupSpec:
    """The tree of a gang without subgroups."""
    return GroupSpec(members=(GroupSpec(name=DEFAULT_GROUP, minimum=minimum),), constraint=constraint)


# The tree of a job whose tasks need nothing of each other.
SINGLE = gang(1)


@dataclass(frozen=True, slots=True)
class Share:
    """What a queue is given of one resource: its quota, its limit, its weight beyond quota; -1 is unlimited."""

    quota: float = 0.0
    limit: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue: its place in the tree and its shares of cpu (milli), memory (bytes) and GPUs."""

    name: str
    parent: str = ""
    priority: int = 100
    created: float = 0.0
    cpu: Share = Share()
    memory: Share = Share()
    gpu: Share = Share()
    # Recent use of cpu, memory and GPUs, as parts of the cluster's capacity (time-based fair share).
    usage: tuple[float, float, float] = (0.0, 0.0, 0.0)
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A gang as the scheduler sees it (a PodGroup): queue, priority, tree and the times that rules look at."""

    key: str
    queue: str
    priority: int = 50
    preemptible: bool = True
    created: float = 0.0
    tree: GroupSpec = SINGLE
    name: str = ""
    namespace: str = ""
    uid: str = ""
    last_start: float | None = None
    last_eviction: float | None = None
    stale_since: float | None = None
    staleness_grace: float | None = None
    preemption_delay: float = 0.0
    # False for a priority class whose `preemptionPolicy` is Never: its gangs go first, but push nobody out.
    preempts: bool = True
    # Whether anybody has to go for it at all, by whatever right.
    evicts: bool = True
    # The gang, often itself, whose nodes it takes over while it is updated: `namespace/name`.
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A pod: its gang and subgroup, what it asks for, where it may go, and what it does now."""

    uid: str
    job: str = ""
    name: str = ""
    namespace: str = ""
    labels: Labels = field(default_factory=dict)
    group: str = ""
    status: int = 1
    node: str = ""
    request: Amounts = field(default_factory=dict)
    gpu: GpuRequest = GpuRequest()
    claims: tuple[DeviceRequest, ...] = ()
    constraints: Constraints = Constraints()
    gpu_groups: tuple[str, ...] = ()
    created: float = 0.0
    # `kai.scheduler/task-priority`; None when the label is absent.
    order: int | None = None
    # True for the master of a training job or the head of a Ray cluster.
    leader: bool = False
    nominated_node: str = ""
    guaranteed: bool = False
    numa_zones: ZoneShares = ()
    # What each container asks for, where NUMA alignment is by container; empty takes the pod as one.
    containers: tuple[tuple[tuple[str, float], ...], ...] = ()
    # Volumes that are attached to its node: driver and volume.
    volumes: tuple[tuple[str, str], ...] = ()
    # Disruption budgets that its eviction counts against; Kubernetes evicts no pod that is under several.
    budgets: tuple[str, ...] = ()
    # How long the task may run once it is started (`activeDeadlineSeconds`), and when that ends for one that runs.
    lifetime: float | None = None
    ends: float | None = None
    # A reservation pod holds a shared GPU for others and is not counted itself.
    reservation: bool = False

"""The cluster of a KAI test case: its queues, nodes, jobs and tasks as the scheduler's state takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spinney.api.missing import Lack, Missing
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import (
    UNLIMITED,
    Constraint,
    Constraints,
    DeviceRequest,
    GpuRequest,
    GroupSpec,
    JobSpec,
    Match,
    NodeSpec,
    Numa,
    NumaZone,
    PodTerm,
    QueueSpec,
    Share,
    TaskSpec,
    TopologySpec,
    gang,
)

Json = Mapping[str, Any]

# Any moment will do: every time in a case is relative to it.
NOW = 1_000_000_000.0
MINUTE = 60.0
NODE_TYPE = "kai.scheduler/type"
QUEUE_LABEL = "kai.scheduler/queue"
NUMA_OBSERVED = "kai.scheduler/numa-placement-observed"


@dataclass(slots=True)
class Place:
    """What a task does between rounds."""

    status: int
    node: str
    groups: tuple[str, ...]


def task_key(job: Json, number: int) -> str:
    """The name and UID of a job's task."""
    return f"{job['Name']}-{number}"


def sorted_jobs(case: Json) -> list[Json]:
    """The jobs of a case by falling priority, as their creation times are given out."""
    return sorted(case["Jobs"], key=lambda job: -job.get("Priority", 0))


def build_state(case: Json, places: Mapping[str, Place]) -> State:
    """The state of a case, with every task where it is now."""
    state = State()
    for queue in _queues(case):
        state.set_queue(queue)
    for topology in case.get("Topologies") or ():
        levels = tuple((level["NodeLabel"], level.get("Alias", "")) for level in topology["Spec"]["Levels"])
        state.set_topology(TopologySpec(topology["ObjectMeta"]["Name"], levels))
    claims = _Claims(case)
    for name, node in case["Nodes"].items():
        state.set_node(_node(name, node, claims.devices(name)))
    jobs = sorted_jobs(case)
    for number, job in enumerate(jobs):
        tasks = [
            _task(job, task, task_key(job, index), places[task_key(job, index)], claims)
            for index, task in enumerate(job["Tasks"])
        ]
        state.set_job(_job(job, number, len(jobs), tasks))
        for task in tasks:
            state.set_task(task)
    return state


class _Claims:
    """The resource claims of a case: what they ask for, who may use them, and which nodes have the devices."""

    def __init__(self, case: Json) -> None:
        objects = case.get("TestDRAObjects") or {}
        self._claims: dict[str, Json] = {claim["Name"]: claim for claim in objects.get("ResourceClaims") or ()}
        self._slices: list[Json] = list(objects.get("ResourceSlices") or ())
        self._nodes: list[str] = list(case["Nodes"])
        self._tasks = {task_key(job, number) for job in case["Jobs"] for number in range(len(job["Tasks"]))}

    def devices(self, node: str) -> int:
        """How many devices a node offers."""
        return sum(resource_slice["Count"] for resource_slice in self._slices if resource_slice.get("NodeName") == node)

    def requests(self, task: Json) -> tuple[DeviceRequest, ...]:
        """What a task's claims ask for; only GPUs are counted on nodes."""
        shared = [self._request(name, shared=True) for name in task.get("ResourceClaimNames") or ()]
        own = [self._request(name, shared=False) for name in (task.get("ResourceClaimTemplates") or {}).values()]
        return tuple(request for request in (*shared, *own) if request is not None)

    def _request(self, name: str, *, shared: bool) -> DeviceRequest | None:
        claim = self._claims.get(name)
        if claim is None:
            return None
        gpus = claim.get("Count") or 1 if _is_gpu(claim) else 0
        reserved = (claim.get("ClaimStatus") or {}).get("ReservedFor") or ()
        others = sum(consumer["Name"] not in self._tasks for consumer in reserved)
        return DeviceRequest(name, claim["DeviceClassName"], gpus, shared=shared, other_consumers=others)

    def nodes(self, task: Json) -> frozenset[str] | None:
        """Nodes with enough devices of classes that are no GPUs; None without such claims."""
        claims = (self._claims.get(name) for name in task.get("ResourceClaimNames") or ())
        wanted = [claim.get("Count") or 1 for claim in claims if claim is not None and not _is_gpu(claim)]
        return frozenset(node for node in self._nodes if self.devices(node) >= sum(wanted)) if wanted else None

    def problem(self, job: Json, task: Json) -> Missing | Refusal | None:
        """Why a task's claims keep it from every node: a shared GPU claim is for the queue that its label names."""
        for name in task.get("ResourceClaimNames") or ():
            claim = self._claims.get(name)
            if claim is None:
                return Missing(Lack.RESOURCE_CLAIM, name)
            if _is_gpu(claim) and (claim.get("Labels") or {}).get(QUEUE_LABEL) != job["QueueName"]:
                return Refusal(Code.OTHER, f"claim {name} is not for queue {job['QueueName']}")
        return None


def _is_gpu(claim: Json) -> bool:
    return "gpu" in claim["DeviceClassName"].lower()


def _task(job: Json, task: Json, key: str, place: Place, claims: _Claims) -> TaskSpec:
    gpu = _gpu(job, task)
    groups = place.groups
    if gpu.portion and place.node:
        groups += tuple(f"{key}-device-{index}" for index in range(gpu.devices - len(groups)))
    request = {"pods": 1.0}
    if not job.get("IsBestEffortJob"):
        request["cpu"] = 1000 * (job.get("RequiredCPUsPerTask") or 1)
        request["memory"] = job.get("RequiredMemoryPerTask") or 1e9
    # The clusters of KAI's tests have no volumes: a claim for one is always missing.
    volume = next((Missing(Lack.VOLUME_CLAIM, name) for name in task.get("PersistentVolumeClaimNames") or ()), None)
    return TaskSpec(
        uid=key,
        job=job["Name"],
        name=key,
        namespace=job.get("Namespace", ""),
        group=task.get("SubGroupName", ""),
        status=place.status,
        node=place.node if place.status & st.USED else "",
        request=request,
        gpu=gpu,
        claims=claims.requests(task),
        labels=task.get("PodAffinityLabels") or {},
        constraints=replace(
            _constraints(task), impossible=volume or claims.problem(job, task), volume_nodes=claims.nodes(task)
        ),
        gpu_groups=groups,
        order=task.get("Priority"),
        guaranteed=job.get("QOSClass") == "Guaranteed",
        numa_zones=tuple(
            (record["zone"], tuple((name, 1000 * float(amount)) for name, amount in record["amount"].items()))
            for record in (task.get("Annotations") or {}).get(NUMA_OBSERVED, ())
        ),
    )


def _queues(case: Json) -> list[QueueSpec]:
    departments = list(case.get("Departments") or ())
    lone = not departments and not case.get("DisableDefaultDepartment")
    if lone:
        departments = [{"Name": "default", "DeservedGPUs": UNLIMITED, "MaxAllowedGPUs": UNLIMITED}]
    specs = []
    for number, queue in enumerate(case["Queues"]):
        specs.append(
            QueueSpec(
                name=queue["Name"],
                parent="default" if lone else queue.get("ParentQueue", ""),
                priority=queue.get("Priority") if queue.get("Priority") is not None else 100,
                created=NOW + number * MINUTE,
                cpu=Share(*_limits(queue, "CPUs", 1), 1),
                memory=Share(*_limits(queue, "Memory", 1e6), 1),
                gpu=Share(queue.get("DeservedGPUs", 0), _limit(queue), queue.get("GPUOverQuotaWeight", 0)),
                reclaim_min_runtime=queue.get("ReclaimMinRuntime"),
            )
        )
    for number, queue in enumerate(departments):
        quota = queue.get("DeservedGPUs", 0)
        specs.append(
            QueueSpec(
                name=queue["Name"],
                created=NOW + number * MINUTE,
                cpu=Share(*_limits(queue, "CPUs", 1), 1),
                memory=Share(*_limits(queue, "Memory", 1e6), 1),
                gpu=Share(quota, _limit(queue), quota),
            )
        )
    return specs


def _limit(queue: Json) -> float:
    return queue.get("MaxAllowedGPUs") or UNLIMITED


def _limits(queue: Json, resource: str, unit: float) -> tuple[float, float]:
    quota, limit = queue.get(f"Deserved{resource}"), queue.get(f"MaxAllowed{resource}")
    return (
        UNLIMITED if quota is None else max(UNLIMITED, quota * unit),
        UNLIMITED if limit is None else max(UNLIMITED, limit * unit),
    )


def _node(name: str, node: Json, devices: int) -> NodeSpec:
    gpus = node.get("GPUs", 0)
    strategy = node.get("MigStrategy", "")
    labels = {NODE_TYPE: name, **(node.get("Labels") or {})}
    memory = int(node.get("GPUMemory") or 100)
    memory_known = node.get("GpuMemorySynced")
    allocatable = {
        "cpu": 1000 * (node.get("CPUMillis") or 20000),
        "memory": node.get("CPUMemory") or 20e9,
        "gpu": 0 if strategy == "mixed" else gpus,
        "pods": node["MaxTaskNum"] if node.get("MaxTaskNum") is not None else 110,
        **(node.get("MigInstances") or {}),
    }
    return NodeSpec(
        name=name,
        allocatable=allocatable,
        labels=labels,
        gpu_memory=memory - memory % 100,
        gpu_memory_known=True if memory_known is None else memory_known,
        gpu_count=gpus,
        mig=strategy if strategy in ("single", "mixed") else "",
        mig_enabled=bool(strategy),
        dra_gpus=devices,
        numa=_numa(node["NumaTopology"]) if "NumaTopology" in node else None,
    )


def _numa(topology: Json) -> Numa:
    zones = tuple(
        NumaZone(
            zone["id"],
            {name: 1000 * float(amount) for name, amount in zone["allocatable"].items()},
            {name: 1000 * float(amount) for name, amount in zone["available"].items()},
        )
        for zone in topology["zones"]
    )
    return Numa(topology["policy"], topology["scope"], zones)


def _job(job: Json, number: int, count: int, tasks: list[TaskSpec]) -> JobSpec:
    age = job.get("JobAgeInMinutes") or count - number
    priority = job.get("Priority", 0)
    running = any(task.status & st.CHARGED for task in tasks)
    tree = job.get("RootSubGroupSet")
    spec = _group(tree) if tree else gang(len(tasks))
    if tree and any(not task.group for task in tasks) and not _has_default(spec):
        spec = replace(spec, members=(*spec.members, *gang(len(tasks)).members))
    preemptibility = job.get("Preemptibility")
    stale = job.get("StaleDuration")
    return JobSpec(
        key=job["Name"],
        name=job["Name"],
        namespace=job.get("Namespace", ""),
        queue=job["QueueName"],
        priority=priority,
        preemptible=preemptibility == "preemptible" if preemptibility else priority < 100,
        created=NOW - age * MINUTE,
        tree=spec,
        last_start=NOW - MINUTE if running else None,
        stale_since=None if stale is None else NOW - stale,
        staleness_grace=job.get("PerJobStalenessGracePeriod"),
        preemption_delay=job.get("PreemptionDelay") or 0.0,
    )


def _has_default(spec: GroupSpec) -> bool:
    return any(member.name == "default" or _has_default(member) for member in spec.members)


def _group(tree: Json) -> GroupSpec:
    members = [_group(member) for member in tree.get("groups") or ()]
    members += [
        GroupSpec(leaf["name"], leaf.get("minAvailable", 0), _constraint(leaf.get("topologyConstraint")))
        for leaf in tree.get("podSets") or ()
    ]
    return GroupSpec(tree["name"], tree.get("minSubGroup"), _constraint(tree.get("topologyConstraint")), tuple(members))


def _constraint(constraint: Json | None) -> Constraint | None:
    if not constraint or not constraint.get("Topology"):
        return None
    return Constraint(constraint["Topology"], constraint.get("RequiredLevel", ""), constraint.get("PreferredLevel", ""))


def _gpu(job: Json, task: Json) -> GpuRequest:
    gpus = job.get("RequiredGPUsPerTask", 0)
    devices = job.get("RequiredMultiFractionDevicesPerTask") or 1
    if job.get("RequiredGpuMemory"):
        return GpuRequest(memory=job["RequiredGpuMemory"], devices=devices)
    if gpus != int(gpus):
        return GpuRequest(portion=gpus, devices=devices)
    mig = tuple(sorted((task.get("RequiredMigInstances") or {}).items()))
    if mig:
        return GpuRequest(mig=mig, legacy_mig=task.get("IsLegacyMigTask", False))
    whole = task.get("RequiredGPUs")
    return GpuRequest(whole=int(gpus if whole is None else whole), legacy_mig=task.get("IsLegacyMigTask", False))


def _constraints(task: Json) -> Constraints:
    extra = task.get("PodAffinityLabels") or {}
    matches = tuple(Match(name, "In", (value,)) for name, value in extra.items())
    names = task.get("NodeAffinityNames")
    near, apart = task.get("PodAffinityTopologyKey"), task.get("PodAntiAffinityTopologyKey")
    return Constraints(
        node_affinity=((Match(NODE_TYPE, "In", tuple(names)),),) if names else None,
        affinity=(PodTerm(near, matches),) if near and extra else (),
        anti_affinity=(PodTerm(apart, matches),) if apart and extra else (),
    )

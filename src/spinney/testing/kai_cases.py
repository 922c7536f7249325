"""Scheduler cases in the format of KAI's own test tables: set up, run, and judged as its tests do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spinney.scheduler.config import ACTIONS, Config, PluginConfig
from spinney.scheduler.plan import Decision, Plan, plan
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
from spinney.scheduler.state.tasks import GPU
from spinney.scheduler.why.texts import job_message

Json = Mapping[str, Any]

# Any moment will do: every time in a case is relative to it.
NOW = 1_000_000_000.0
MINUTE = 60.0
NODE_TYPE = "kai.scheduler/type"
QUEUE_LABEL = "kai.scheduler/queue"
MAX_CONSUMERS = 256
NUMA_OBSERVED = "kai.scheduler/numa-placement-observed"


@dataclass(slots=True)
class Result:
    """What came of a case: what differed, and what was decided in each round."""

    name: str
    differences: list[str] = field(default_factory=list)
    rounds: list[Plan] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything came out as expected."""
        return not self.differences


def case_name(entry: Json) -> str:
    """`FILE/FUNC/NAME`, as far as the case says."""
    parts = (entry.get("file"), entry.get("func"), entry["case"]["Name"])
    return "/".join(part for part in parts if part)


def run_case(entry: Json) -> Result:
    """Set a case up, run it, and compare."""
    result = Result(case_name(entry))
    run = _Run(entry, result)
    if "observed" in entry:
        run.observed(entry["observed"], entry.get("settled", False))
    elif entry["runner"].startswith("single:") or run.ends_in_cycle():
        run.single()
    else:
        run.rounds(entry.get("meta") or {})
    return result


@dataclass(slots=True)
class _Place:
    """What a task does between rounds."""

    status: int
    node: str
    groups: tuple[str, ...]


class _Run:
    def __init__(self, entry: Json, result: Result) -> None:
        self.entry = entry
        self.case: Json = entry["case"]
        self.result = result
        self.jobs = sorted(self.case["Jobs"], key=lambda job: -job.get("Priority", 0))
        self.config = _config(entry)
        self.claims = {
            claim["Name"]: dict(claim) for claim in (self.case.get("TestDRAObjects") or {}).get("ResourceClaims", [])
        }
        self.places = {
            f"{job['Name']}-{number}": _Place(
                st.VALUES[task["State"]], task.get("NodeName", ""), tuple(task.get("GPUGroups") or ())
            )
            for job in self.jobs
            for number, task in enumerate(job["Tasks"])
        }

    def ends_in_cycle(self) -> bool:
        """Whether the expected state exists only inside a cycle, so that the first round is judged."""
        kept = {job["Name"] for job in self.jobs if job.get("DeleteJobInTest")}
        expected = self.case.get("JobExpectedResults") or {}
        return any(
            one["Status"] in ("Pipelined", "Binding") or (one["Status"] == "Releasing" and name not in kept)
            for name, one in expected.items()
        )

    def single(self) -> None:
        """Run one action once."""
        state, outcome = self._round()
        self._judge(state, outcome)

    def rounds(self, meta: Json) -> None:
        """Run all actions until the expected state, then some more, in which nothing may change."""
        for _ in range(meta.get("RoundsUntilMatch") or 2):
            _, outcome = self._round()
            self._advance(outcome)
        self._judge(self._state(), {})
        for number in range(meta.get("RoundsAfterMatch") or 5):
            state, outcome = self._round()
            self._judge(state, outcome, f"round {number + 1} after the match: ")
            self._advance(outcome)

    def observed(self, expected: list[Json], settled: bool) -> None:
        """Run as many rounds as were observed; the first must agree, and the last where things settled."""
        for number, counts in enumerate(expected):
            _, outcome = self._round()
            if number == 0 or (settled and number == len(expected) - 1):
                self._compare_counts(number, counts, outcome)
            self._advance(outcome)

    def _compare_counts(self, number: int, expected: Json, outcome: Mapping[str, _Place]) -> None:
        for job in self.jobs:
            found = Counter(
                st.NAMES[outcome.get(key, self.places[key]).status]
                for key in (f"{job['Name']}-{task}" for task in range(len(job["Tasks"])))
            )
            if dict(found) != dict(expected[job["Name"]]):
                self.result.differences.append(
                    f"round {number + 1}: job {job['Name']}: {dict(found)}, expected {expected[job['Name']]}"
                )

    def _round(self) -> tuple[State, dict[str, _Place]]:
        state = self._state()
        done = plan(state, self.config, NOW)
        self.result.rounds.append(done)
        self._check_counts(done.decisions)
        outcome = {key: _Place(status, node, groups) for key, (status, node, groups) in done.outcome.items()}
        return state, outcome

    def _check_counts(self, decisions: tuple[Decision, ...]) -> None:
        if "observed" in self.entry:
            return
        allowed = ((self.case.get("Mocks") or {}).get("CacheRequirements")) or {}
        kinds = Counter(decision.kind for decision in decisions)
        for kind, field_name in (
            ("bind", "NumberOfCacheBinds"),
            ("evict", "NumberOfCacheEvictions"),
            ("wait", "NumberOfPipelineActions"),
        ):
            if kinds[kind] > allowed.get(field_name, 0):
                self.result.differences.append(f"{kinds[kind]} × {kind}, at most {allowed.get(field_name, 0)} expected")

    def _advance(self, outcome: Mapping[str, _Place]) -> None:
        deleted = {job["Name"] for job in self.jobs if job.get("DeleteJobInTest")}
        for job in self.jobs:
            for number in range(len(job["Tasks"])):
                key = f"{job['Name']}-{number}"
                place = outcome.get(key, self.places[key])
                if (place.status == st.RELEASING and job["Name"] not in deleted) or place.status == st.PIPELINED:
                    place = _Place(st.PENDING, "", self.places[key].groups)
                elif place.status == st.BINDING:
                    place = _Place(st.RUNNING, place.node, place.groups)
                self.places[key] = place

    def _state(self) -> State:
        state = State()
        for queue in _queues(self.case):
            state.set_queue(queue)
        for topology in self.case.get("Topologies") or ():
            levels = tuple((level["NodeLabel"], level.get("Alias", "")) for level in topology["Spec"]["Levels"])
            state.set_topology(TopologySpec(topology["ObjectMeta"]["Name"], levels))
        devices = (self.case.get("TestDRAObjects") or {}).get("ResourceSlices", [])
        for name, node in self.case["Nodes"].items():
            state.set_node(_node(name, node, sum(one["Count"] for one in devices if one["NodeName"] == name)))
        for number, job in enumerate(self.jobs):
            tasks = [self._task(job, index, task) for index, task in enumerate(job["Tasks"])]
            state.set_job(_job(job, number, len(self.jobs), tasks))
            for task in tasks:
                state.set_task(task)
        return state

    def _task(self, job: Json, number: int, task: Json) -> TaskSpec:
        key = f"{job['Name']}-{number}"
        place = self.places[key]
        gpu = _gpu(job, task)
        groups = place.groups
        if gpu.portion and place.node:
            groups += tuple(f"{key}-device-{index}" for index in range(gpu.devices - len(groups)))
        request = {"pods": 1.0}
        if not job.get("IsBestEffortJob"):
            request["cpu"] = 1000 * (job.get("RequiredCPUsPerTask") or 1)
            request["memory"] = job.get("RequiredMemoryPerTask") or 1e9
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
            claims=tuple(
                DeviceRequest(name, self.claims[name]["DeviceClassName"], self.claims[name]["Count"], shared=True)
                for name in task.get("ResourceClaimNames") or ()
                if name in self.claims
            ),
            labels=task.get("PodAffinityLabels") or {},
            constraints=replace(_constraints(task), impossible=self._claim_problem(job, task)),
            gpu_groups=groups,
            order=task.get("Priority"),
            guaranteed=job.get("QOSClass") == "Guaranteed",
            numa_zones=tuple(
                (record["zone"], tuple((name, 1000 * float(amount)) for name, amount in record["amount"].items()))
                for record in (task.get("Annotations") or {}).get(NUMA_OBSERVED, ())
            ),
        )

    def _claim_problem(self, job: Json, task: Json) -> Refusal | None:
        """Why a task's claims keep it from running anywhere."""
        for name in task.get("ResourceClaimNames") or ():
            claim = self.claims.get(name) or {}
            if (claim.get("Labels") or {}).get(QUEUE_LABEL) != job["QueueName"]:
                return Refusal(Code.OTHER, f"claim {name} is not for queue {job['QueueName']}")
            if len((claim.get("ClaimStatus") or {}).get("ReservedFor") or ()) >= MAX_CONSUMERS:
                return Refusal(Code.OTHER, f"claim {name} has all the consumers it may have")
        return None

    def _judge(self, state: State, outcome: Mapping[str, _Place], when: str = "") -> None:
        for name, expected in (self.case.get("JobExpectedResults") or {}).items():
            job = state.jobs[name]
            for task in job.all_tasks():
                self._judge_task(task.key, expected, outcome, when)
            gpus = sum(task.cls.gpus for task in job.all_tasks())
            if gpus != expected.get("GPUsRequired", 0):
                self._differs(f"{when}job {name}: {gpus} GPUs, expected {expected.get('GPUsRequired', 0)}")
            if expected.get("ExpectedErrorMessage"):
                self._judge_message(name, expected["ExpectedErrorMessage"], when)
        for key, expected in (self.case.get("TaskExpectedResults") or {}).items():
            if key in state.tasks:
                self._judge_task(key, expected, outcome, when)
                gpus = state.tasks[key].cls.gpus
                if gpus != expected.get("GPUsRequired", 0):
                    self._differs(f"{when}task {key}: {gpus} GPUs, expected {expected.get('GPUsRequired', 0)}")
        self._judge_nodes(state, outcome, when)

    def _judge_task(self, key: str, expected: Json, outcome: Mapping[str, _Place], when: str) -> None:
        place = outcome.get(key) or self.places[key]
        if st.NAMES[place.status] != expected["Status"]:
            self._differs(f"{when}task {key}: {st.NAMES[place.status]}, expected {expected['Status']}")
        if expected.get("NodeName") and place.node != expected["NodeName"]:
            self._differs(f"{when}task {key}: on {place.node or 'no node'}, expected {expected['NodeName']}")

    def _judge_message(self, job: str, expected: str, when: str) -> None:
        found = job_message(self.result.rounds[-1].problems.get(job, []))
        if found != expected:
            self._differs(f"{when}job {job}: message {found!r}, expected {expected!r}")

    def _judge_nodes(self, state: State, outcome: Mapping[str, _Place], when: str) -> None:
        wanted = self.case.get("ExpectedNodesResources") or {}
        if not wanted:
            return
        for key, place in outcome.items():
            task = state.tasks[key].spec
            state.set_task(replace(task, status=place.status, node=place.node, gpu_groups=place.groups))
        for name, expected in wanted.items():
            row = state.nodes.rows[name]
            idle, releasing = float(state.nodes.idle[row, GPU]), float(state.nodes.releasing[row, GPU])
            if (idle, releasing) != (expected.get("IdleGPUs", 0), expected.get("ReleasingGPUs", 0)):
                self._differs(f"{when}node {name}: {idle} GPUs idle and {releasing} releasing, expected {expected}")

    def _differs(self, text: str) -> None:
        self.result.differences.append(text)


def _config(entry: Json) -> Config:
    """The configuration that KAI's tests use."""
    config = Config(consolidation_victims=-1, skip_alike=False, staleness_grace=0.0)
    mocks = entry["case"].get("Mocks") or {}
    if "SchedulerConf" in mocks:
        plugins = [plugin for tier in mocks["SchedulerConf"]["Tiers"] for plugin in tier["Plugins"]]
        config = replace(
            config, plugins=tuple(PluginConfig(one["Name"], one.get("Arguments") or {}) for one in plugins)
        )
    if any("NumaTopology" in node for node in entry["case"]["Nodes"].values()):
        config = replace(config, plugins=(*config.plugins, PluginConfig("numa")))
    if "observed" not in entry and mocks.get("CacheRequirements") is None:
        config = config.without("predicates")
    kind, _, actions = entry["runner"].partition(":")
    names = tuple(actions.split(",")) if actions else ACTIONS
    grace = 60.0 if kind == "single" and names == ("stalegangeviction",) else 0.0
    return replace(config, actions=names, staleness_grace=grace)


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
            )
        )
    for number, queue in enumerate(departments):
        quota = queue.get("DeservedGPUs", 0)
        specs.append(
            QueueSpec(
                name=queue["Name"],
                created=NOW + number * MINUTE,
                cpu=Share(UNLIMITED, UNLIMITED, 1),
                memory=Share(UNLIMITED, UNLIMITED, 1),
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
    known = node.get("GpuMemorySynced")
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
        gpu_memory_known=True if known is None else known,
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

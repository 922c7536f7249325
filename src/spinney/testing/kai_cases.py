"""Scheduler cases in the format of KAI's own test tables: set up, run, and judged as its tests do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from spinney.scheduler.config import ACTIONS, Config, PluginConfig
from spinney.scheduler.plan import Decision, Plan, plan
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.tasks import CPU, GPU, MEMORY, Task
from spinney.scheduler.why.texts import job_message
from spinney.testing.kai_case_objects import NOW, Json, Place, build_state, sorted_jobs, task_key

# What a task is after a decision.
_AFTER = {"bind": st.BINDING, "wait": st.PIPELINED, "evict": st.RELEASING}


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


class _Run:
    def __init__(self, entry: Json, result: Result) -> None:
        self.entry = entry
        self.case: Json = entry["case"]
        self.result = result
        self.jobs = sorted_jobs(self.case)
        self.config = case_config(entry)
        self.places = {
            task_key(job, number): Place(
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
            result["Status"] in ("Pipelined", "Binding") or (result["Status"] == "Releasing" and name not in kept)
            for name, result in expected.items()
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
        self._judge(build_state(self.case, self.places), {})
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

    def _compare_counts(self, number: int, expected: Json, outcome: Mapping[str, Place]) -> None:
        for job in self.jobs:
            counts = Counter(
                st.NAMES[outcome.get(key, self.places[key]).status]
                for key in (f"{job['Name']}-{task}" for task in range(len(job["Tasks"])))
            )
            if dict(counts) != dict(expected[job["Name"]]):
                self.result.differences.append(
                    f"round {number + 1}: job {job['Name']}: {dict(counts)}, expected {expected[job['Name']]}"
                )

    def _round(self) -> tuple[State, dict[str, Place]]:
        state = build_state(self.case, self.places)
        done = plan(state, self.config, NOW)
        self.result.rounds.append(done)
        self._check_counts(done.decisions)
        outcome = {
            decision.task: Place(_AFTER[decision.kind], decision.node, decision.gpu_groups)
            for decision in done.decisions
        }
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

    def _advance(self, outcome: Mapping[str, Place]) -> None:
        deleted = {job["Name"] for job in self.jobs if job.get("DeleteJobInTest")}
        for job in self.jobs:
            for number in range(len(job["Tasks"])):
                key = f"{job['Name']}-{number}"
                place = outcome.get(key, self.places[key])
                if (place.status == st.RELEASING and job["Name"] not in deleted) or place.status == st.PIPELINED:
                    place = Place(st.PENDING, "", self.places[key].groups)
                elif place.status == st.BINDING:
                    place = Place(st.RUNNING, place.node, place.groups)
                self.places[key] = place

    def _judge(self, state: State, outcome: Mapping[str, Place], when: str = "") -> None:
        for name, expected in (self.case.get("JobExpectedResults") or {}).items():
            job = state.jobs[name]
            for task in job.all_tasks():
                self._judge_task(task.key, expected, outcome, when)
            self._judge_requests(f"{when}job {name}", expected, job.all_tasks())
            if expected.get("ExpectedErrorMessage"):
                self._judge_message(name, expected["ExpectedErrorMessage"], when)
        for key, expected in (self.case.get("TaskExpectedResults") or {}).items():
            if key in state.tasks:
                self._judge_task(key, expected, outcome, when)
                self._judge_requests(f"{when}task {key}", expected, [state.tasks[key]])
        self._judge_nodes(state, outcome, when)

    def _judge_task(self, key: str, expected: Json, outcome: Mapping[str, Place], when: str) -> None:
        place = outcome.get(key) or self.places[key]
        if st.NAMES[place.status] != expected["Status"]:
            self._differs(f"{when}task {key}: {st.NAMES[place.status]}, expected {expected['Status']}")
        if expected.get("NodeName") and place.node != expected["NodeName"]:
            self._differs(f"{when}task {key}: on {place.node or 'no node'}, expected {expected['NodeName']}")

    def _judge_requests(self, who: str, expected: Json, tasks: Iterable[Task]) -> None:
        classes = [task.cls for task in tasks]
        for name, amount in (
            ("GPUsRequired", sum(cls.gpus for cls in classes)),
            ("MilliCpuRequired", sum(float(cls.request[CPU]) for cls in classes)),
            ("MemoryRequired", sum(float(cls.request[MEMORY]) for cls in classes)),
        ):
            # KAI's tests leave out CPU and memory where they do not matter.
            if amount != expected.get(name, 0 if name == "GPUsRequired" else amount):
                self._differs(f"{who}: {name} is {amount:g}, expected {expected.get(name, 0):g}")

    def _judge_message(self, job: str, expected: str, when: str) -> None:
        message = job_message(self.result.rounds[-1].problems.get(job, []))
        if message != expected:
            self._differs(f"{when}job {job}: message {message!r}, expected {expected!r}")

    def _judge_nodes(self, state: State, outcome: Mapping[str, Place], when: str) -> None:
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


def case_config(entry: Json) -> Config:
    """The configuration that KAI's tests use."""
    config = Config(consolidation_victims=-1, skip_alike=False, staleness_grace=0.0)
    mocks = entry["case"].get("Mocks") or {}
    if "SchedulerConf" in mocks:
        plugins = [plugin for tier in mocks["SchedulerConf"]["Tiers"] for plugin in tier["Plugins"]]
        config = replace(
            config, plugins=tuple(PluginConfig(plugin["Name"], plugin.get("Arguments") or {}) for plugin in plugins)
        )
    if any("NumaTopology" in node for node in entry["case"]["Nodes"].values()):
        config = replace(config, plugins=(*config.plugins, PluginConfig("numa")))
    if "observed" not in entry and mocks.get("CacheRequirements") is None:
        config = config.without("predicates")
    kind, _, actions = entry["runner"].partition(":")
    names = tuple(actions.split(",")) if actions else ACTIONS
    grace = 60.0 if kind == "single" and names == ("stalegangeviction",) else 0.0
    return replace(config, actions=names, staleness_grace=grace)

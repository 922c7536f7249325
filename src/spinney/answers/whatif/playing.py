"""Play a cluster forward: carry plans out on the scheduler's state, as the rest of the cluster would."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from spinney.api import run_times
from spinney.api.core import Pod
from spinney.api.meta import Object
from spinney.api.pod_state import is_finished
from spinney.api.requests import pod_requests
from spinney.api.untyped import Untyped
from spinney.scheduler.config import Config
from spinney.scheduler.deadlines import next_deadline
from spinney.scheduler.place.reservations import Reservations
from spinney.scheduler.plan import Decision, Plan, plan
from spinney.scheduler.plugins.minruntime import longest_runtime
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import JobSpec, TaskSpec

# Namespace, images and requests.
Likeness = tuple[str, tuple[str, ...], tuple[tuple[str, int], ...]]
# Cycles in one moment: a chain of evictions that is longer does not settle.
_MOST_CYCLES = 24


@dataclass(frozen=True)
class Lifetimes:
    """How long tasks run once started, and when running tasks end; tasks of unknown length are missing."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    ends: Mapping[str, float] = field(default_factory=dict)
    # Tasks that are only taken to run as long as others like them did.
    guessed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Departure:
    """A task that left its node: when, by which action, and for which gang."""

    spec: TaskSpec
    at: float
    action: str
    beneficiary: str = ""


class Editor(Protocol):
    """Where a player writes: a trial, which is undone, or a state of its own."""

    @property
    def state(self) -> State:
        """The state as it is now."""

    def set_task(self, spec: TaskSpec) -> None:
        """Add a task, or change it."""

    def set_status(self, uid: str, status: int) -> None:
        """Let a task begin or end."""

    def drop_task(self, uid: str) -> None:
        """Take a task away."""

    def set_job(self, spec: JobSpec) -> None:
        """Add a gang, or change it."""


class Player:
    """Binds, evicts and ends tasks; an evicted task comes back as a new one if a controller creates it again."""

    def __init__(
        self, trial: Editor, config: Config, now: float, lifetimes: Lifetimes, comes_back: Callable[[str], bool]
    ) -> None:
        self.trial = trial
        self.config = config
        self.now = now
        # When gangs were placed, the tasks that are placed now, and those that left the node they had at the beginning.
        self.started: dict[str, float] = {}
        self.placed: dict[str, str] = {}
        self.departures: dict[str, Departure] = {}
        # Every eviction, also of tasks that were placed meanwhile; and when tasks were placed.
        self.evictions: list[Departure] = []
        self.bound: dict[str, float] = {}
        self.ends = dict(lifetimes.ends)
        self.seconds = dict(lifetimes.seconds)
        self.guesses = bool(lifetimes.guessed)
        # Nodes that volumes keep the successors of tasks to.
        self.volume_nodes: Mapping[str, frozenset[str]] = {}
        # Tasks whose successors are created only when they have ended.
        self.replaced_late: Collection[str] = frozenset()
        self._late: list[TaskSpec] = []
        self._comes_back = comes_back
        self._returning: list[TaskSpec] = []
        self._reservations = Reservations(now)
        self._names_runtimes = longest_runtime(config, trial.state.queue_specs.values()) > 0

    def know(self, lifetimes: Lifetimes) -> None:
        """Learn how long more tasks run."""
        self.seconds.update(lifetimes.seconds)
        self.ends.update(lifetimes.ends)

    def remember(self, reservations: Reservations | None) -> None:
        """Go on from the reservations of an earlier plan."""
        self._reservations = reservations or self._reservations

    def settle(self, current: Plan | None = None) -> Plan:
        """Plan and carry out at this moment until nothing is left to do; returns the last plan."""
        for _ in range(_MOST_CYCLES):
            latest = current or plan(self.trial.state, self.config, self.now, self._reservations)
            self._reservations = latest.reservations or self._reservations
            current = None
            evictions = len(self.evictions)
            self._carry_out(latest)
            # An evicted task holds its node while others are placed: new pods go where there is room already. After a
            # plan without evictions only the capacity that evicted tasks hold is left to plan with.
            if not self._return() and evictions == len(self.evictions) and not self._release():
                return latest
        return latest

    def cycle(self, current: Plan | None = None, config: Config | None = None) -> Plan:
        """Plan and carry out once, and settle only after evictions."""
        evictions = len(self.evictions)
        latest = current or plan(self.trial.state, config or self.config, self.now, self._reservations)
        self._reservations = latest.reservations or self._reservations
        self._carry_out(latest)
        return latest if evictions == len(self.evictions) else self.settle()

    def play_deadlines(self, latest: Plan, until: float) -> Plan:
        """Go on to every moment at which a rule about time decides otherwise; returns the last plan."""
        for _ in range(_MOST_CYCLES):
            moment = next_deadline(self.trial.state, self.config, self.now, self._reservations.since)
            if moment is None or moment > until:
                break
            self.now = moment
            latest = self.settle()
        return latest

    def advance(self, moment: float) -> None:
        """Let time pass: tasks end."""
        self.now = moment
        for uid in [uid for uid, end in self.ends.items() if end <= moment]:
            del self.ends[uid]
            if uid in self.trial.state.tasks:
                self.trial.set_status(uid, st.SUCCEEDED)

    def displace(self, uid: str, action: str) -> None:
        """Take a task off its node at once; the scheduler plans once before a controller has created it again."""
        spec = self.trial.state.tasks[uid].spec
        self.trial.drop_task(uid)
        if (successor := self._depart(spec, action)) is not None:
            self._returning.append(successor)

    def _carry_out(self, decided: Plan) -> None:
        for job, since in decided.staleness.items():
            self._change_job(job, stale_since=since)
        for decision in decided.decisions:
            if decision.kind == "evict":
                self._evict(decision)
            elif decision.kind == "bind":
                self._bind(decision)
        if self._names_runtimes:
            for job, moment in decided.last_start.items():
                self._change_job(job, last_start=moment)

    def _evict(self, decision: Decision) -> None:
        spec = self.trial.state.tasks[decision.task].spec
        self._change(decision.task, status=st.RELEASING)
        self._change_job(decision.job, last_eviction=self.now)
        successor = self._depart(spec, decision.action, decision.beneficiary)
        if successor is not None and origin_of(spec.uid) in self.replaced_late:
            self._late.append(successor)
        elif successor is not None:
            self.trial.set_task(successor)

    def _return(self) -> bool:
        """Create the successors of displaced tasks; False if there are none."""
        returning, self._returning = self._returning, []
        for spec in returning:
            self.trial.set_task(spec)
        return bool(returning)

    def _depart(self, spec: TaskSpec, action: str, beneficiary: str = "") -> TaskSpec | None:
        """Note that a task leaves; return its replacement, or None if nothing recreates it."""
        uid = spec.uid
        self.ends.pop(uid, None)
        self.placed.pop(uid, None)
        departure = Departure(spec, self.now, action, beneficiary)
        self.evictions.append(departure)
        if uid not in self.bound:
            self.departures[uid] = departure
        if not self._comes_back(origin_of(uid)):
            return None
        new = f"{uid}+"
        if uid in self.seconds:
            self.seconds[new] = self.seconds[uid]
        rules = spec.constraints
        if (nodes := self.volume_nodes.get(origin_of(uid))) is not None:
            rules = replace(rules, volume_nodes=nodes)
        return replace(
            spec,
            uid=new,
            status=st.PENDING,
            node="",
            gpu_groups=(),
            created=self.now,
            nominated_node="",
            ends=None,
            constraints=rules,
        )

    def _bind(self, decision: Decision) -> None:
        uid = decision.task
        self._change(uid, status=st.RUNNING, node=decision.node, gpu_groups=decision.gpu_groups)
        self.placed[uid] = decision.node
        self.bound[uid] = self.now
        self.started.setdefault(decision.job, self.now)
        if uid in self.seconds:
            self.ends[uid] = self.now + self.seconds[uid]

    def _release(self) -> bool:
        """Remove evicted tasks, and queue successors that were waiting for their end; False if there were none."""
        releasing = [uid for uid, task in self.trial.state.tasks.items() if task.status == st.RELEASING]
        for uid in releasing:
            self.trial.drop_task(uid)
        self._returning += self._late
        self._late = []
        return bool(releasing)

    def _change(self, uid: str, **fields: Any) -> None:
        task = self.trial.state.tasks.get(uid)
        if task is not None:
            self.trial.set_task(replace(task.spec, **fields))

    def _change_job(self, key: str, **fields: Any) -> None:
        job = self.trial.state.jobs.get(key)
        if job is not None and (spec := replace(job.spec, **fields)) != job.spec:
            self.trial.set_job(spec)


def origin_of(uid: str) -> str:
    """The task at the beginning, whose place others took."""
    return uid.rstrip("+")


def lifetimes_of(pods: Collection[Pod], now: float) -> Lifetimes:
    """How long pods run: as they say, until their deadline, or as long as others like them ran."""
    seconds: dict[str, float] = {}
    ends: dict[str, float] = {}
    guessed: set[str] = set()
    history = _history(pods)
    for pod in pods:
        if is_finished(pod):
            continue
        lifetime = lifetime_of(pod)
        since = pod.status.start_time.timestamp() if pod.status.start_time is not None else now
        if lifetime is None:
            times = history.get(_likeness(pod), ()) if history else ()
            lifetime = _guess(times, now - since if pod.spec.node_name else 0.0)
            if lifetime is None:
                continue
            guessed.add(pod.uid)
        seconds[pod.uid] = lifetime
        if pod.spec.node_name:
            # An overdue pod ends any moment.
            ends[pod.uid] = max(since + lifetime, now + 1.0)
    return Lifetimes(seconds, ends, frozenset(guessed))


def lifetime_of(pod: Pod) -> float | None:
    """How long a pod runs once started: as it says, else until its deadline; None where neither is known."""
    stated, limit = run_times.stated(pod), pod.spec.active_deadline_seconds
    if stated is None:
        return None if limit is None else float(limit)
    return stated if limit is None else min(stated, float(limit))


def _history(pods: Iterable[Pod]) -> dict[Likeness, list[float]]:
    """How long pods ran that have succeeded, by what they have in common; shortest first."""
    lengths: dict[Likeness, list[float]] = defaultdict(list)
    for pod in pods:
        if pod.status.phase != "Succeeded" or pod.status.start_time is None:
            continue
        states = (status.state.terminated for status in pod.status.container_statuses)
        ended = [state.finished_at for state in states if state is not None and state.finished_at is not None]
        if ended:
            lengths[_likeness(pod)].append((max(ended) - pod.status.start_time).total_seconds())
    return {likeness: sorted(times) for likeness, times in lengths.items()}


def _likeness(pod: Pod) -> Likeness:
    """Pods of one namespace that run the same images with the same requests are alike."""
    images = tuple(container.image for container in pod.spec.containers)
    return pod.namespace, images, tuple(sorted(pod_requests(pod.spec).items()))


def _guess(times: Sequence[float], so_far: float) -> float | None:
    """The median of the run times that are longer than a pod has run so far; None where there is none."""
    left = [time for time in times if time > so_far]
    return left[len(left) // 2] if left else None


def is_replaced_late(pod: Pod, owners: Mapping[str, Object]) -> bool:
    """Whether a pod's successor is created only when it has ended: by StatefulSets, and Jobs that look at failures."""
    controller = next((each for each in pod.metadata.owner_references if each.controller), None)
    if controller is None or controller.kind != "Job":
        return controller is not None and controller.kind == "StatefulSet"
    job = owners.get(controller.uid)
    spec = job.spec if isinstance(job, Untyped) else {}
    default = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    return bool(spec.get("podReplacementPolicy", default) == "Failed")


def is_recreated(pod: Pod) -> bool:
    """Whether a controller creates the pod again when it is evicted; bare pods and those of a kubelet are lost."""
    return any(owner.controller and owner.kind != "Node" for owner in pod.metadata.owner_references)

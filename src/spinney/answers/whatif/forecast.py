"""When a waiting gang is expected to start: the cluster played forward by the known ends of what runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from spinney.answers.cluster import Cluster
from spinney.answers.model import ExpectedStart
from spinney.answers.whatif.playing import Player, is_recreated, is_replaced_late, lifetimes_of
from spinney.answers.whatif.trial import Trial, trial
from spinney.api.core import Pod
from spinney.api.times import rfc3339
from spinney.scheduler.config import ALLOCATE, Config
from spinney.scheduler.plan import Plan
from spinney.scheduler.state.cluster import State
from spinney.scheduler.why.blocker import dominant, is_lasting

# Moments looked at: each costs a plan, which takes longer the more tasks there are.
_MOST_MOMENTS = 64
_LEAST_MOMENTS = 3
_MOST_TASKS = 60_000
_UNKNOWN = "nobody knows when the pods that are in its way end (activeDeadlineSeconds would tell)"
_BY_DEADLINE = "the pods in its way end by their deadlines, or sooner"
_BY_ANNOTATION = "the pods in its way say how long they run"
_BY_HISTORY = "the pods in its way are taken to run as long as others like them did"
_TOO_FAR = "it lies further ahead than a cluster of this size is played forward"
_AT_THE_LATEST = " (by then at the latest: in a large cluster, pods that end close together are taken as one)"
_NEVER = "it would wait even if everything else ended"


def forecast(cluster: Cluster) -> dict[str, ExpectedStart]:
    """The expected start of every waiting gang, by the key of its PodGroup; the state is the same afterwards."""
    schedule = cluster.schedule
    if schedule is None or not (waiting := waiting_gangs(schedule.state)):
        return {}
    with trial(schedule.state) as changed:
        player = player_of(cluster, schedule.config, changed)
        player.cycle(schedule.plan)
        return expected_starts(player, schedule.plan, waiting, cluster.pods)


def player_of(cluster: Cluster, config: Config, changed: Trial) -> Player:
    """A player of a cluster from now on, which knows how long pods run and which ones are created again."""
    now = cluster.now.timestamp()
    recreated = {pod.uid for pod in cluster.pods if is_recreated(pod)}
    player = Player(changed, config, now, lifetimes_of(cluster.pods, now), recreated.__contains__)
    player.replaced_late = {pod.uid for pod in cluster.pods if is_replaced_late(pod, cluster.by_uid)}
    return player


def latest_start(starts: Mapping[str, ExpectedStart], keys: Iterable[str]) -> ExpectedStart | None:
    """The start of the last of some gangs; unknown if that of any is."""
    known_starts = [starts[key] for key in keys if key in starts]
    return max(known_starts, key=lambda start: (start.at is None, start.at or ""), default=None)


def waiting_gangs(state: State) -> set[str]:
    """Gangs that are not placed as far as they must be."""
    return {key for key, job in state.jobs.items() if job.pending and not job.in_one_piece()}


def expected_starts(
    player: Player, latest: Plan, waiting: Collection[str], pods: Collection[Pod]
) -> dict[str, ExpectedStart]:
    """Play on until every gang is placed or no end is known; those that never are start at an unknown time."""
    beginning = player.now
    # Where ends are grouped, a gang may start before the moment that is computed.
    is_upper_bound = len(player.ends) >= _moments(player)
    starts = expected_at(player, waiting)
    by_deadline = any(pod.spec.active_deadline_seconds is not None for pod in pods)
    basis = _BY_HISTORY if player.guesses else _BY_DEADLINE if by_deadline else _BY_ANNOTATION
    suffix = _AT_THE_LATEST if is_upper_bound else ""
    unknown = _TOO_FAR if player.ends else _UNKNOWN
    return {
        key: _expected(starts[key], beginning, basis, suffix) if key in starts else _unknown(latest, key, unknown)
        for key in waiting
    }


def expected_at(player: Player, waiting: Collection[str]) -> dict[str, float]:
    """When gangs are placed as others end; those never placed, or at an unknown time, are missing."""
    # Only allocate as others end: nobody is evicted for a guess.
    allocate_only = replace(player.config, actions=(ALLOCATE,))
    moments = _moments(player)
    for turn in range(moments):
        if all(key in player.started for key in waiting) or not player.ends:
            break
        player.advance(_next_moment(player, moments - turn))
        player.cycle(config=allocate_only)
    return {key: player.started[key] for key in waiting if key in player.started}


def _moments(player: Player) -> int:
    return max(_LEAST_MOMENTS, min(_MOST_MOMENTS, _MOST_TASKS // max(len(player.trial.state.tasks), 1)))


def _next_moment(player: Player, moments: int) -> float:
    """The next end; in a large cluster several ends are taken together, so that few plans are made."""
    ends = sorted(player.ends.values())
    return ends[min(len(ends) // moments, len(ends) - 1)]


def _unknown(latest: Plan, key: str, text: str) -> ExpectedStart:
    problem = dominant(latest.problems.get(key, ()))
    never = problem is not None and is_lasting(problem)
    return ExpectedStart(at=None, sureness="unknown", text=_NEVER if never else text)


def _expected(at: float, beginning: float, basis: str, suffix: str) -> ExpectedStart:
    moment = rfc3339(datetime.fromtimestamp(at, UTC))
    if at <= beginning:
        return ExpectedStart(at=moment, sureness="exact", text="with the next cycle")
    return ExpectedStart(at=moment, sureness="guess" if basis == _BY_HISTORY else "estimate", text=basis + suffix)

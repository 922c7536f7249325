"""How good expected starts are: asked while a trace is replayed, and held against what then happened."""

from __future__ import annotations

from spinney.answers.whatif.forecast import expected_at
from spinney.answers.whatif.playing import Lifetimes, Player
from spinney.answers.whatif.trial import trial
from spinney.scheduler.config import Config
from spinney.sim.replay.engine import START, Replay
from spinney.sim.replay.trace import Trace

# A start is met if it is off by at most this part of the time that was left.
_TOLERANCE = 0.2


def foresight(trace: Trace, config: Config, every: float) -> dict[str, float]:
    """Expected starts of all jobs at their arrival: how many waited, and which part of the starts was met."""
    replay = Replay(trace, config, every)
    guesses: dict[str, tuple[float, float]] = {}
    while (moment := replay.next_moment()) is not None:
        arrived = replay.step(moment)
        waiting = [job.spec.key for job in arrived if job.spec.key not in replay.result.started]
        if waiting:
            now = replay.player.now - START
            guesses.update({key: (now, at - START) for key, at in _expected(replay, waiting).items()})
        if replay.is_stuck():
            break
    started = replay.result.started
    waited = [key for key in guesses if key in started]
    met = sum(abs(guesses[key][1] - started[key]) <= _TOLERANCE * (started[key] - guesses[key][0]) for key in waited)
    jobs = sum(job.spec.key in started for job in trace.jobs)
    return {"jobs": jobs, "waited": len(waited), "met": round(met / len(waited), 4) if waited else 1.0}


def _expected(replay: Replay, waiting: list[str]) -> dict[str, float]:
    player = replay.player
    with trial(replay.state) as copy:
        ahead = Player(copy, player.config, player.now, Lifetimes(player.seconds, player.ends), lambda uid: True)
        return expected_at(ahead, waiting)

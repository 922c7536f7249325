"""Small clusters, looked at exhaustively: when nothing is done nothing could be, and nobody is evicted in vain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as some

from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan
from spinney.scheduler.state import status as st
from tests.scheduler.clusters import Cluster, outcome
from tests.scheduler.exhaustive import (
    SIZES,
    Device,
    Holding,
    Small,
    after_moves,
    assert_nobody_left_in_vain,
    room_for,
    sharing,
    small,
    subsets,
)


def is_placed(done: Plan) -> bool:
    return any(decision.job == "gang" for decision in done.decisions)


@given(small(priorities=(10, 20, 95)), SIZES, some.integers(1, 3))
def test_preemption_is_neither_blind_nor_wasteful(setting: Small, gpus: int, count: int) -> None:
    """A gang waits only if no set of lesser jobs makes room for it; of those evicted none could have stayed."""
    cluster, wanted = setting.cluster, [gpus] * count
    config = Config(actions=("allocate", "preempt"), staleness_grace=-1)
    done = cluster.job("gang", "q0", [""] * count, gpus=gpus, priority=90).plan(config=config)
    lesser = [name for name, workload in setting.running.items() if workload.priority < 90 and workload.preemptible]
    assert is_placed(done) == any(setting.fits(setting.without(gone), wanted) for gone in subsets(lesser))
    assert_nobody_left_in_vain(done, setting, wanted)


@given(small(queues=2), SIZES, some.integers(1, 3))
def test_consolidation_finds_whatever_rearrangement_there_is(setting: Small, gpus: int, count: int) -> None:
    """A gang waits only if running gangs cannot be moved in any way that leaves room for it and a place for all."""
    cluster, wanted = setting.cluster, [gpus] * count
    config = Config(actions=("allocate", "consolidation"), staleness_grace=-1)
    done = cluster.job("gang", "q0", [""] * count, gpus=gpus).plan(config=config)
    movable = [name for name, workload in setting.running.items() if workload.preemptible]
    possible = any(setting.fits(setting.without(moved), wanted, moved) for moved in subsets(movable))
    assert is_placed(done) == possible
    lost, rooms = after_moves(done, setting)
    assert not lost
    assert not is_placed(done) or setting.fits(rooms, wanted)


def reclaimable(setting: Small, done: Plan, gone: Iterable[str], wanted: float) -> bool:
    """Whether gangs may be taken for an amount, the least deserving of each queue first.

    Each from a queue that has more than its fair share, or more than its quota if the taker is owed the amount.
    """
    owed = setting.held("q0") + wanted <= setting.quotas["q0"]
    left = {queue: setting.held(queue) for queue in setting.quotas}
    for name in sorted(gone, reverse=True):
        queue = setting.running[name].queue
        fair = max(setting.quotas[queue], done.fair_share[queue][2])
        if left[queue] <= (setting.quotas[queue] if owed else fair):
            return False
        left[queue] -= setting.running[name].total
    return True


@given(small(queues=3), SIZES, some.integers(1, 3))
def test_reclaim_is_neither_blind_nor_wasteful_nor_unfair(setting: Small, gpus: int, count: int) -> None:
    """What its queue is entitled to waits only if others may not be taken or moved; of those taken all may be."""
    cluster, wanted = setting.cluster, [gpus] * count
    config = Config(actions=("allocate", "reclaim"), staleness_grace=-1)
    done = cluster.job("gang", "q0", [""] * count, gpus=gpus).plan(config=config)
    entitled = setting.held("q0") + gpus * count <= done.fair_share["q0"][2]
    # Who may be taken first from its queue may be moved as well.
    others = [
        name
        for name, workload in setting.running.items()
        if workload.queue != "q0" and workload.preemptible and reclaimable(setting, done, [name], gpus * count)
    ]

    def possible(gone: Sequence[str]) -> bool:
        rest = [name for name in others if name not in gone]
        return reclaimable(setting, done, gone, gpus * count) and any(
            setting.fits(setting.without([*gone, *moved]), wanted, moved) for moved in subsets(rest)
        )

    assert is_placed(done) or not setting.fits(setting.left, wanted)
    assert is_placed(done) or not entitled or not any(map(possible, subsets(others)))
    lost, _ = after_moves(done, setting)
    assert not lost or entitled
    assert reclaimable(setting, done, lost, gpus * count)
    assert_nobody_left_in_vain(done, setting, wanted)


@given(sharing(), some.sampled_from([0.5, 0.75, 1, 2]), some.integers(1, 3))
def test_preemption_sees_every_way_to_free_shared_gpus(
    setting: tuple[Cluster, dict[Device, float], Holding], gpus: float, count: int
) -> None:
    """A gang waits only if no set of lesser gangs frees enough devices; without moves nobody leaves in vain."""
    cluster, left, lesser = setting
    config = Config(actions=("allocate", "preempt"), staleness_grace=-1)
    done = cluster.job("gang", "q", [""] * count, gpus=gpus, priority=90).plan(config=config)

    def enough(gone: Iterable[str]) -> bool:
        rooms = dict(left)
        for part, devices in map(lesser.__getitem__, gone):
            for device in devices:
                rooms[device] += part
        return room_for(rooms, gpus) >= count

    assert is_placed(done) or not any(map(enough, subsets(lesser)))
    states = {key.rpartition("-")[0]: status for key, (status, _, _) in outcome(done).items()}
    lost = {name for name, status in states.items() if status == st.RELEASING}
    if st.PIPELINED not in (states[name] for name in states if name != "gang"):
        assert not any(enough(fewer) for fewer in subsets(lost) if len(fewer) < len(lost))

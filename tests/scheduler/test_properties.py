"""What holds for every plan, whatever the cluster."""

from __future__ import annotations

import gc
from dataclasses import replace
from fractions import Fraction
from itertools import product
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.scheduler.cycle import Cycle
from spinney.scheduler.plan import Plan
from spinney.scheduler.share.fair_share import fair_shares
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.queues import Queues
from spinney.scheduler.state.specs import QueueSpec, Share
from spinney.scheduler.state.tasks import GPU
from spinney.scheduler.victims import trials
from tests.scheduler.clusters import Cluster, assume, outcome
from tests.scheduler.random_clusters import clusters, picture


def after(state: State, done: Plan) -> State:
    """The state once a plan's binds and evictions have happened."""
    for key, (status, node, groups) in outcome(done).items():
        if status == st.BINDING:
            assume(state, key, st.RUNNING, node, groups)
        elif status in (st.RELEASING, st.PIPELINED):
            assume(state, key, st.PENDING, "")
    return state


@given(clusters())
def test_a_plan_leaves_the_state_as_it_was(cluster: Cluster) -> None:
    """Planning is trying out: everything is undone exactly."""
    before = picture(cluster.state)
    cluster.plan()
    assert picture(cluster.state) == before


@given(clusters())
def test_a_plan_leaves_nothing_to_the_cycle_collector(cluster: Cluster) -> None:
    """Whatever a cycle was made of is freed at once, and not kept until the collector comes by."""
    gc.collect()
    gc.disable()
    try:
        cluster.plan()
        assert not [item for item in gc.get_objects() if isinstance(item, Cycle)]
    finally:
        gc.enable()


@given(clusters())
def test_equal_input_gives_an_equal_plan(cluster: Cluster) -> None:
    """Nothing but the state, the configuration and the time decides."""
    assert cluster.plan() == cluster.plan()


@given(clusters())
def test_many_victims_at_one_stroke_are_the_same_as_one_by_one(cluster: Cluster) -> None:
    """Victims that surely are not enough may be counted together: the plan is the same."""
    with patch.object(trials, "FEW", 1_000_000):
        slow = cluster.plan()
    with patch.object(trials, "FEW", 0):
        assert cluster.plan().decisions == slow.decisions


def assert_not_overcommitted(state: State) -> None:
    """Every node has what its tasks use, and every shared GPU its memory."""
    rows = state.nodes.all_rows()
    assert (state.nodes.idle[rows] >= 0).all()
    for row in range(len(state.gpus)):
        assert state.gpus.cells[row, 2] <= state.nodes.gpu_memory[state.gpus.node[row]]


@given(clusters())
def test_no_node_is_overcommitted(cluster: Cluster) -> None:
    """After a plan every node still has what its tasks use; also when everyone runs who waits for room."""
    done = cluster.plan()
    state = after(cluster.state, done)
    assert_not_overcommitted(state)
    for key, (status, node, groups) in outcome(done).items():
        if status == st.PIPELINED:
            assume(state, key, st.RUNNING, node, groups)
    assert_not_overcommitted(state)


@given(clusters())
def test_gangs_are_whole(cluster: Cluster) -> None:
    """A gang that got anything bound has its minimum on nodes."""
    done = cluster.plan()
    bound = {decision.job for decision in done.decisions if decision.kind == "bind"}
    evicted = {decision.job for decision in done.decisions if decision.kind == "evict"}
    state = after(cluster.state, done)
    for key in bound - evicted:
        job = state.jobs[key]
        assert all(active >= minimum for active, minimum in zip(job.active, job.minimums, strict=True))


@given(clusters())
def test_queue_limits_hold(cluster: Cluster) -> None:
    """A queue at or below its limit does not go above it."""
    queues = cluster.state.queues
    before = [held[2] for held in cluster.state.charged]
    state = after(cluster.state, cluster.plan())
    for number in range(len(queues)):
        limit = queues.limit[number][2]
        assert limit < 0 or state.charged[number][2] <= max(limit, before[number])


@given(clusters())
def test_reclaim_leaves_queues_what_they_are_owed(cluster: Cluster) -> None:
    """A queue that gave something up had more than its quota until the last piece went."""
    queues, jobs = cluster.state.queues, cluster.state.jobs
    done = cluster.plan("reclaim")
    before = [held[2] for held in cluster.state.charged]
    largest = dict.fromkeys(range(len(queues)), 0.0)
    for job in jobs.values():
        largest[job.queue] = max(largest[job.queue], job.charged()[2])
    victims = {jobs[decision.job].queue for decision in done.decisions if decision.kind == "evict"}
    # Victims that have a new place already are moved, not taken.
    moved = dict.fromkeys(victims, 0.0)
    for key, (status, _, _) in outcome(done).items():
        task = cluster.state.tasks[key]
        if status == st.PIPELINED and task.job and (queue := task.job.queue) in victims:
            moved[queue] += task.cls.gpus
    state = after(cluster.state, done)
    for number in victims:
        floor = min(queues.quota[number][2], before[number])
        assert state.charged[number][2] + moved[number] + largest[number] > floor


@given(clusters(), some.sampled_from([2, 4, 8]))
def test_another_node_never_hurts_a_gang(cluster: Cluster, gpus: int) -> None:
    """What can be placed without evictions can still be placed when a node is added."""
    pending = [job for job in cluster.state.jobs.values() if job.pending]
    for job in pending[1:]:
        cluster.state.drop_job(job.key)
    before = len(cluster.plan("allocate").decisions)
    cluster.node("more", gpus)
    assert len(cluster.plan("allocate").decisions) >= before


@given(clusters(), some.integers(1, 8))
def test_more_quota_never_hurts_a_gang(cluster: Cluster, more: int) -> None:
    """What can be placed without evictions can still be placed when its queue is owed more."""
    pending = [job for job in cluster.state.jobs.values() if job.pending]
    for job in pending[1:]:
        cluster.state.drop_job(job.key)
    before = len(cluster.plan("allocate").decisions)
    for name, spec in list(cluster.state.queue_specs.items()):
        limit = spec.gpu.limit + more if spec.gpu.limit >= 0 else -1
        cluster.state.set_queue(replace(spec, gpu=Share(spec.gpu.quota + more, limit, spec.gpu.weight)))
        assert name in cluster.state.queues.index
    assert len(cluster.plan("allocate").decisions) >= before


@given(clusters())
def test_fair_shares_add_up(cluster: Cluster) -> None:
    """No more is given out than there is, unless quotas alone are more; nobody is given more than it asks for."""
    done, queues = cluster.plan("allocate"), cluster.state.queues
    nodes = cluster.state.nodes
    total = float(nodes.allocatable[nodes.all_rows(), GPU].sum())
    wanted = [held[2] + waits[2] for held, waits in zip(cluster.state.charged, cluster.state.waiting, strict=True)]
    quotas = [min(queues.quota[number][2], wanted[number]) for number in range(len(queues))]
    shares = [done.fair_share[name][2] for name in queues.names]
    assert sum(shares) <= max(total, sum(quotas)) + 1e-9
    assert all(share <= want + 1e-9 for share, want in zip(shares, wanted, strict=True))


@given(clusters())
def test_equal_gangs_that_wait_really_do_not_fit(cluster: Cluster) -> None:
    """When a gang of equal whole-GPU tasks is not placed, no way of placing it exists."""
    pending = [job for job in cluster.state.jobs.values() if job.pending]
    keep = next((job for job in pending if not any(job.active) and job.all_tasks()[0].cls.gpus >= 1), None)
    for job in pending:
        if job is not keep:
            cluster.state.drop_job(job.key)
    if keep is None:
        return
    cluster.queue(cluster.state.queues.names[keep.queue], 1000)
    if any(decision.job == keep.key for decision in cluster.plan("allocate").decisions):
        return
    nodes, size = cluster.state.nodes, int(keep.all_tasks()[0].cls.gpus)
    free = [int(nodes.idle[row, GPU]) for row in nodes.all_rows()]
    for places in product(range(len(free)), repeat=keep.minimums[0]):
        used = [size * places.count(node) for node in range(len(free))]
        assert any(taken > room for taken, room in zip(used, free, strict=True))


@given(some.data())
def test_victims_are_needed(data: some.DataObject) -> None:
    """Of the victims taken for one task, none could have stayed."""
    nodes = data.draw(some.integers(1, 3))
    cluster = Cluster(*[4] * nodes).queue("owed", 4 * nodes).queue("borrowed", 0)
    for number in range(4 * nodes):
        cluster.job(f"v{number}", "borrowed", [f"n{number % nodes}"])
    size = data.draw(some.integers(1, 4))
    cluster.job("wants", "owed", [""], gpus=size)
    done = cluster.plan("reclaim")
    evicted = [decision for decision in done.decisions if decision.kind == "evict"]
    assert len(evicted) == size
    assert len({decision.node for decision in evicted}) == 1


# Quota, limit, weight, priority and what is asked for.
Row = tuple[int, int, int, int, int]
ROWS = some.lists(
    some.tuples(
        some.integers(-1, 6),
        some.integers(-1, 9),
        some.integers(0, 3),
        some.sampled_from([1, 1, 2]),
        some.integers(0, 9),
    ),
    min_size=1,
    max_size=5,
)


def _queue(name: str, row: Row, created: int, parent: str = "") -> QueueSpec:
    quota, limit, weight, priority, _ = row
    return QueueSpec(name, parent, priority, created=created, gpu=Share(quota, limit, weight))


@given(ROWS, some.integers(0, 20))
def test_fair_share_matches_a_slow_reference(rows: list[Row], total: int) -> None:
    """The division equals one done by hand in exact fractions."""
    specs = {f"q{number}": _queue(f"q{number}", row, number) for number, row in enumerate(rows)}
    requested = [[0.0, 0.0, float(request)] for *_, request in rows]
    shares = [share[2] for share in fair_shares(Queues(specs), [0.0, 0.0, float(total)], requested)]
    assert shares == [float(share) for share in _by_hand(rows, total)]


@given(ROWS, some.integers(0, 20), some.data())
def test_who_had_more_lately_gets_no_more_now(rows: list[Row], total: int, data: some.DataObject) -> None:
    """A queue's share never grows with its own usage, and in all no more is given out for it."""
    number, usage = data.draw(some.integers(0, len(rows) - 1)), data.draw(some.floats(0, 2))
    specs = {f"q{index}": _queue(f"q{index}", row, index) for index, row in enumerate(rows)}
    requested = [[0.0, 0.0, float(request)] for *_, request in rows]
    before = fair_shares(Queues(specs), [0.0, 0.0, float(total)], requested)
    specs[f"q{number}"] = replace(specs[f"q{number}"], usage=(0.0, 0.0, usage))
    now = fair_shares(Queues(specs), [0.0, 0.0, float(total)], requested)
    assert now[number][2] <= before[number][2]
    assert sum(share[2] for share in now) <= max(total, sum(share[2] for share in before)) + 1e-9


@given(some.lists(ROWS, min_size=1, max_size=3), some.lists(ROWS, min_size=3, max_size=3), some.integers(0, 20))
def test_fair_share_of_a_tree_matches_its_levels(leaves: list[list[Row]], tops: list[list[Row]], total: int) -> None:
    """Each department is given its part as if it were alone on its level, and its queues divide just that."""
    parents = [(*rows[0][:4], sum(member[4] for member in below)) for rows, below in zip(tops, leaves, strict=False)]
    specs: dict[str, QueueSpec] = {}
    requested: dict[str, float] = {}
    for number, (row, below) in enumerate(zip(parents, leaves, strict=True)):
        specs[f"d{number}"], requested[f"d{number}"] = _queue(f"d{number}", row, number), row[4]
        for index, own in enumerate(below):
            name = f"d{number}-{index}"
            specs[name], requested[name] = _queue(name, own, index, parent=f"d{number}"), own[4]
    queues = Queues(specs)
    requests = [[0.0, 0.0, float(requested[name])] for name in queues.names]
    shares = dict(zip(queues.names, fair_shares(queues, [0.0, 0.0, float(total)], requests), strict=True))
    for number, part in enumerate(_by_hand(parents, total)):
        assert shares[f"d{number}"][2] == float(part)
        for index, share in enumerate(_by_hand(leaves[number], part)):
            assert shares[f"d{number}-{index}"][2] == pytest.approx(float(share))


def _by_hand(rows: list[Row], total: int | Fraction) -> list[Fraction]:
    """Quotas first; then what is left by weight, priority by priority; then single units to those cut most."""
    wants = [Fraction(request if limit == -1 else min(limit, request)) for _, limit, _, _, request in rows]
    given_ = [min(Fraction(total if row[0] == -1 else row[0]), want) for row, want in zip(rows, wants, strict=True)]
    left, cut = Fraction(total) - sum(given_), list[dict[int, Fraction]]()
    for priority in sorted({row[3] for row in rows}, reverse=True):
        weights = {number: row[2] for number, row in enumerate(rows) if row[3] == priority and row[2]}
        left, rests = _by_weight(weights, wants, given_, left)
        cut.append(rests)
    for rests in cut:
        for number in sorted(rests, key=lambda queue: (-rests[queue], queue)):
            part = min(Fraction(1), max(left, Fraction(0)))
            given_[number] += part
            left -= part
    return given_


def _by_weight(
    weights: dict[int, int], wants: list[Fraction], given_: list[Fraction], left: Fraction
) -> tuple[Fraction, dict[int, Fraction]]:
    """Whole units by weight until nobody wants less than its part; what is left then, and what was cut from whom."""
    rests: dict[int, Fraction] = {}
    again = left > 0
    while again and left > 0:
        hungry = [number for number in weights if wants[number] > given_[number]]
        amount, whole, again = left, sum(weights[number] for number in hungry), False
        for number in hungry:
            share = amount * weights[number] / whole
            want = wants[number] - given_[number]
            part = want if want <= share else Fraction(share.numerator // share.denominator)
            rests.pop(number, None)
            if want > share > part:
                rests[number] = share - part
            given_[number] += part
            left -= part
            again = again or (part > 0 and want < share)
    return left, rests

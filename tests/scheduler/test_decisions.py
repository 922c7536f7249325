"""Decisions one by one: what is placed where, who has to go, and why something waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spinney.api.labels import CPU_WORKER
from spinney.api.schedulerfile import SchedulerFile
from spinney.scheduler.actions import evict
from spinney.scheduler.config import Config, ConfigError, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.place.refusals import no_room
from spinney.scheduler.state import status as st
from spinney.scheduler.state.problems import NoDomain, NoRoom, NotReady, OverLimit, OverQuota
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.specs import (
    Constraint,
    Constraints,
    GroupSpec,
    Match,
    NodeSpec,
    PodTerm,
    SpreadTerm,
    TopologySpec,
)
from spinney.scheduler.why.advice import advice
from spinney.scheduler.why.texts import job_message, message
from tests.scheduler.clusters import NOW, Cluster, assume, outcome, statuses


def test_gangs_start_whole_or_not_at_all() -> None:
    """Three tasks of two GPUs do not start on two nodes with room for two; the reason says how far they got."""
    cluster = Cluster(2, 3).queue("q", 100).job("j", "q", ["", "", ""], gpus=2)
    done = cluster.plan("allocate")
    assert not done.decisions
    (problem,) = done.problems["j"]
    assert isinstance(problem, NoRoom)
    assert (problem.found, problem.required) == (2, 3)
    assert "Resources were found for 2 pods while 3 are required" in job_message([problem])


def test_a_gang_that_is_not_complete_waits_for_its_own() -> None:
    """One task of three is there: the reason counts them, and nothing is said of nodes."""
    cluster = Cluster(8).queue("q", 100).job("j", "q", [""], minimum=3)
    (problem,) = cluster.plan().problems["j"]
    assert problem == NotReady(ready=1, required=3, gated=0)
    assert message(problem) == "Job is not ready for scheduling. Waiting for 3 pods, currently 1 exist"
    assert advice(problem) == "2 more pods must exist without a scheduling gate"


def test_nodes_are_filled_up() -> None:
    """A single task goes to the fullest node that has room."""
    cluster = Cluster(8, 8).queue("q", 100).job("r", "q", ["n1"], gpus=4).job("j", "q", [""])
    assert outcome(cluster.plan("allocate"))["j-0"][1] == "n1"


def test_room_being_released_is_waited_for() -> None:
    """A task that fits only once another is gone waits for that node instead of being bound."""
    cluster = Cluster(2).queue("q", 100).job("r", "q", ["n0"], gpus=2).job("j", "q", [""], gpus=2)
    assume(cluster.state, "r-0", st.RELEASING, "n0")
    assert statuses(cluster.plan("allocate")) == {"j-0": "Pipelined"}


def test_elastic_gangs_grow_one_by_one() -> None:
    """Beyond its minimum a gang takes what there is."""
    cluster = Cluster(3).queue("q", 100).job("j", "q", [""] * 5, minimum=2)
    assert len(cluster.plan("allocate").decisions) == 3


def test_a_limit_stops_a_queue() -> None:
    """A queue at its limit waits, and the reason says by how much it is short."""
    cluster = Cluster(8).queue("q", 2, limit=3).job("r", "q", ["n0"], gpus=2).job("j", "q", [""], gpus=2)
    (problem,) = cluster.plan("allocate").problems["j"]
    assert isinstance(problem, OverLimit)
    assert problem.short == 1


def test_what_may_not_be_evicted_stays_within_quota() -> None:
    """A job that may not be evicted is only placed inside its queue's quota."""
    cluster = Cluster(8).queue("q", 2).job("j", "q", [""], gpus=3, preemptible=False)
    (problem,) = cluster.plan("allocate").problems["j"]
    assert isinstance(problem, OverQuota)
    assert problem.short == 1


def test_reclaim_takes_back_what_was_borrowed() -> None:
    """A queue within its quota gets its GPUs back from one that is above its own."""
    cluster = Cluster(4).queue("mine", 2).queue("theirs", 2)
    for number in range(4):
        cluster.job(f"r{number}", "theirs", ["n0"])
    done = cluster.job("j", "mine", ["", ""]).plan()
    assert sorted(statuses(done).values()) == ["Pipelined", "Pipelined", "Releasing", "Releasing"]
    assert {decision.beneficiary for decision in done.decisions if decision.kind == "evict"} == {"j"}


def test_reclaim_counts_what_the_reclaimer_takes() -> None:
    """Beyond its quota a queue takes nothing from those that would fall below their fair share by it."""
    cluster = Cluster(4, 4).queue("mine", 2).queue("theirs", 0).queue("other", 0, weight=0)
    cluster.job("a", "theirs", ["n1"], preemptible=False).job("b", "other", ["n0"]).job("c", "theirs", ["n1"])
    cluster.job("d", "theirs", ["n1", "n0"]).job("e", "theirs", ["n0"], gpus=2)
    cluster.job("f", "other", ["n1"], preemptible=False).job("j", "mine", [""], gpus=4)
    done = cluster.plan("reclaim")
    assert (done.fair_share["mine"][2], done.fair_share["theirs"][2]) == (4, 4)
    assert not done.decisions


def test_reclaim_does_not_take_what_is_owed() -> None:
    """A queue at its quota keeps everything, whoever asks."""
    cluster = Cluster(4).queue("mine", 2, weight=0).queue("theirs", 4, weight=0).job("r", "theirs", ["n0"], gpus=4)
    assert not cluster.job("j", "mine", [""]).plan().decisions


def test_preemption_takes_the_lowest_priority() -> None:
    """In one queue, a higher priority pushes out the lowest that is enough."""
    cluster = Cluster(2).queue("q", 2)
    cluster.job("low", "q", ["n0"], priority=10).job("middle", "q", ["n0"], priority=20)
    assert statuses(cluster.job("j", "q", [""], priority=90).plan()) == {"low-0": "Releasing", "j-0": "Pipelined"}


def test_a_gang_whose_missing_member_is_still_leaving_waits() -> None:
    """Nothing is searched for while the subgroup that goes next has all its tasks on their way out."""
    either = GroupSpec(minimum=1, members=(GroupSpec("a", 1), GroupSpec("b", 1)))
    cluster = Cluster(1).queue("q", 1).job("j", "q", ["n0", ""], tree=either)
    for number, group in enumerate("ab"):
        task = cluster.state.tasks[f"j-{number}"]
        status = st.PENDING if number else st.RELEASING
        cluster.state.set_task(replace(task.spec, group=group, status=status))
    assert not cluster.plan("preempt").decisions


def test_pods_of_a_node_that_is_gone_free_nothing() -> None:
    """A victim whose node was deleted makes no room on another one."""
    cluster = Cluster().queue("q", 100)
    # As many as the table has rows: none is unused.
    for number in range(16):
        cluster.state.set_node(NodeSpec(f"n{number}", {"cpu": 1000.0, "memory": 1e12, "pods": 110.0}))
        cluster.job(f"r{number}", "q", [f"n{number}"], gpus=0, preemptible=number == 3)
    cluster.state.drop_node("n3")
    cluster.job("j", "q", [""], gpus=0, priority=75)
    assert not cluster.plan("preempt").decisions


def test_a_node_that_lost_gpus_does_not_stop_consolidation() -> None:
    """More of its GPUs are in use than it has: there is room elsewhere that moves can bring together."""
    cluster = Cluster(3, 2, 2).queue("q", 100)
    cluster.job("kept", "q", ["n0", "n0", "n0"], preemptible=False).job("a", "q", ["n1"]).job("b", "q", ["n2"])
    cluster.job("new", "q", [""], gpus=2).node("n0", 1)
    assert "evict" in {decision.kind for decision in cluster.plan("consolidation").decisions}


def test_consolidation_moves_nobody_out() -> None:
    """Two half-full nodes become one full and one empty when a large task needs that."""
    cluster = Cluster(4, 4).queue("q", 100).job("a", "q", ["n0"], gpus=2).job("b", "q", ["n1"], gpus=2)
    done = cluster.job("j", "q", [""], gpus=4).plan()
    assert sorted(statuses(done).values()) == ["Pipelined", "Pipelined"]


def test_stale_gangs_give_their_room_back() -> None:
    """A gang below its minimum is evicted when its grace is over."""
    cluster = Cluster(4).queue("q", 100).job("j", "q", ["n0", ""], minimum=2, gpus=4)
    assert statuses(cluster.plan("stalegangeviction")) == {"j-0": "Releasing"}


def test_a_required_domain_holds_the_whole_gang() -> None:
    """A gang that must stay in one rack goes to a rack that holds all of it, though nodes elsewhere are fuller."""
    cluster = Cluster().queue("q", 100)
    for number, (rack, gpus) in enumerate([("a", 1), ("a", 2), ("b", 2), ("b", 2)]):
        cluster.node(f"n{number}", gpus, rack=rack)
    cluster.state.set_topology(TopologySpec("tree", (("rack", ""),)))
    cluster.job("j", "q", [""] * 4, inside=Constraint("tree", required="rack"))
    assert {place[1] for place in outcome(cluster.plan("allocate")).values()} == {"n2", "n3"}
    cluster.job("k", "q", [""] * 5, inside=Constraint("tree", required="rack"))
    (problem,) = cluster.plan("allocate").problems["k"]
    assert isinstance(problem, NoDomain)


@pytest.mark.parametrize("gpus", [1, 4])
def test_a_topology_that_no_node_is_part_of_stopped_the_scheduler(gpus: int) -> None:
    """The gang waits and hears what is missing, whether or not it would fit elsewhere; others are placed."""
    cluster = Cluster().node("n", 2).queue("q")
    cluster.state.set_topology(TopologySpec("tree", (("zone", ""), ("rack", ""))))
    cluster.job("j", "q", ["", ""], gpus=gpus, inside=Constraint("tree", required="rack")).job("k", "q", [""])
    done = cluster.plan()
    assert [decision.job for decision in done.decisions] == ["k"]
    (problem,) = done.problems["j"]
    assert "no node has the labels of topology tree down to rack" in advice(problem)


@pytest.mark.parametrize("wish", [{"memory": 2000}, {"portion": 1.5}])
def test_a_share_larger_than_any_device_was_given_one(wish: dict[str, float]) -> None:
    """Twice the memory of a GPU is on no GPU: the pod waits, and hears of what there is too little."""
    cluster = Cluster(4).queue("q", 100).job("j", "q", [""])
    (task,) = cluster.state.jobs["j"].all_tasks()
    cluster.state.set_task(replace(task.spec, gpu=replace(task.spec.gpu, whole=0, **wish)))
    done = cluster.plan()
    assert not done.decisions
    (problem,) = done.problems["j"]
    assert "didn't have enough resources: GPU memory" in message(problem)


def _racks(*sizes: int) -> Cluster:
    cluster = Cluster().queue("q", 100)
    for number, gpus in enumerate(sizes):
        cluster.node(f"n{number}", gpus, zone="z", rack=f"r{number}")
    cluster.state.set_topology(TopologySpec("tree", (("zone", ""), ("rack", ""))))
    return cluster


def test_the_best_rack_was_named_by_its_zone() -> None:
    """Where the whole zone is too full, the advice still names the rack that is nearest to holding the gang."""
    cluster = _racks(4, 4).job("a", "q", ["n0"] * 3).job("b", "q", ["n1"] * 2)
    cluster.job("j", "q", [""] * 4, inside=Constraint("tree", required="rack"))
    (problem,) = cluster.plan("allocate").problems["j"]
    assert message(problem).endswith(": not enough resources in z to allocate the job")
    assert advice(problem) == ("the best rack (z.r1) holds 2 of 4 pods: free room for 2 more there")


def test_no_rack_is_large_enough() -> None:
    """Where no rack could ever hold the gang, the advice is to add nodes, not to wait for room."""
    cluster = _racks(4, 3, 4).job("a", "q", ["n0"])
    cluster.job("j", "q", [""] * 6, inside=Constraint("tree", required="rack"))
    (problem,) = cluster.plan("allocate").problems["j"]
    assert advice(problem) == (
        "the largest rack holds 4 of 6 pods even when nothing else runs there: add nodes for 2 more to z.r2, or "
        "ask for rack as preferred instead of required"
    )


def test_a_wide_domain_with_room_in_one_corner() -> None:
    """A gang that must stay in one zone starts though all nodes are in one rack of it."""
    cluster = Cluster().queue("q", 100)
    for number in range(2):
        cluster.node(f"n{number}", 2, zone="z", rack="r")
    cluster.state.set_topology(TopologySpec("tree", (("zone", ""), ("rack", ""))))
    cluster.job("j", "q", [""] * 3, inside=Constraint("tree", required="zone"))
    assert len(cluster.plan("allocate").decisions) == 3


def test_shared_gpus_are_packed() -> None:
    """Halves share a GPU that is in use before another is opened."""
    cluster = Cluster(2, 2).queue("q", 100).job("r", "q", ["n1"], gpus=0.5).job("j", "q", [""], gpus=0.5)
    assert outcome(cluster.plan("allocate"))["j-0"][1:] == ("n1", ("r-0-gpu",))


def test_queue_depth_keeps_the_best() -> None:
    """With a depth of one, only the most urgent job of a queue is looked at."""
    cluster = Cluster(8).queue("q", 100).job("later", "q", [""]).job("urgent", "q", [""], priority=90)
    done = cluster.plan(config=Config(actions=("allocate",), queue_depth={"allocate": 1}))
    assert list(outcome(done)) == ["urgent-0"]


def test_a_victim_is_charged_once() -> None:
    """An elastic job that gives up several tasks for one gang is credited for each of them once."""
    cluster = Cluster(4).queue("mine", 4).queue("theirs", 0).job("r", "theirs", ["n0"] * 4, minimum=1)
    done = cluster.job("j", "mine", [""] * 3).plan("reclaim")
    evicted = [decision.task for decision in done.decisions if decision.kind == "evict"]
    assert len(evicted) == len(set(evicted)) == 3


def test_evictions_make_room_below_a_limit_once() -> None:
    """Room below a department's limit that a victim left is not counted again when more of its job must go."""
    cluster = Cluster(8).queue("all", 8, limit=4).queue("mine", 3, parent="all").queue("theirs", 1, parent="all")
    cluster.job("r", "theirs", ["n0"] * 4, minimum=1)
    done = cluster.job("j", "mine", [""] * 3).plan("reclaim")
    assert Counter(statuses(done).values()) == {"Releasing": 3, "Pipelined": 3}


def test_one_gpu_short_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When queues may give one GPU too few, no scenario is tried."""
    monkeypatch.setattr(evict.Solver, "solve", None)
    cluster = Cluster(4, 4).queue("mine", 8, weight=0).queue("theirs", 1, weight=0)
    for number in range(8):
        cluster.job(f"r{number}", "theirs", [f"n{number % 2}"])
    assert not cluster.job("j", "mine", ["", ""], gpus=4).plan("reclaim").decisions


@pytest.mark.parametrize("gpus", [1, 0.5])
def test_a_node_that_lost_gpus_hides_no_victims(gpus: float) -> None:
    """What one node has too little of, it does not take from the room that victims leave on another."""
    cluster = Cluster(4, 1).queue("q", 100)
    cluster.job("broken", "q", ["n0"] * 4, priority=100, preemptible=False).job("low", "q", ["n1"], priority=10)
    cluster.node("n0", 1).job("j", "q", [""], gpus=gpus, priority=90)
    assert statuses(cluster.plan()) == {"low-0": "Releasing", "j-0": "Pipelined"}


def _spread(cluster: Cluster, key: str, rules: Constraints) -> None:
    task = cluster.state.tasks[key].spec
    cluster.state.set_task(replace(task, constraints=rules, labels={"app": "a"}))


def test_evicted_pods_do_not_repel() -> None:
    """A pod may take the place of a victim that it could not share a node with."""
    term = PodTerm("host", (Match("app", "In", ("a",)),))
    rules = Constraints(anti_affinity=(term,))
    cluster = Cluster().node("n0", 2, host="n0").queue("q", 2)
    cluster.job("low", "q", ["n0"], priority=10).job("j", "q", [""], priority=90)
    _spread(cluster, "low-0", rules)
    _spread(cluster, "j-0", rules)
    assert statuses(cluster.plan()) == {"low-0": "Releasing", "j-0": "Pipelined"}


def test_spread_constraints_hold() -> None:
    """Two pods that must spread over zones do not both go to the fuller zone."""
    rules = Constraints(spread=(SpreadTerm("zone", matches=(Match("app", "In", ("a",)),)),))
    cluster = Cluster().node("n0", 4, zone="a").node("n1", 4, zone="b").queue("q", 100).job("j", "q", ["", ""])
    for key in ("j-0", "j-1"):
        _spread(cluster, key, rules)
    assert {place[1] for place in outcome(cluster.plan("allocate")).values()} == {"n0", "n1"}


def test_unknown_names_are_errors() -> None:
    """A plugin or action that does not exist is said, with what does."""
    cluster = Cluster(1).queue("q", 1)
    with pytest.raises(ConfigError, match="plugin 'magic' is unknown; known are"):
        cluster.plan(config=Config(plugins=(PluginConfig("magic"),)))
    with pytest.raises(ConfigError, match="action 'dance' is unknown"):
        cluster.plan(config=Config(actions=("dance",)))


def _searches(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, config: Config) -> list[str]:
    """The jobs that victims are sought for."""
    looked_for: list[str] = []
    inner = evict.Solver.solve

    def solve(solver: evict.Solver) -> object:
        looked_for.append(solver.job.key)
        return inner(solver)

    monkeypatch.setattr(evict.Solver, "solve", solve)
    monkeypatch.setattr(evict, "cannot_fit", lambda *_: False)
    cluster.plan(config=config)
    return looked_for


def test_more_of_the_same_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a job that no victims help, larger ones like it are passed over; smaller and different ones are not."""
    cluster = Cluster(2, 2).queue("q", 4).job("r", "q", ["n0"], gpus=2, priority=10)
    cluster.job("fixed", "q", ["n1"], gpus=2, priority=95)
    for name, tasks, gpus in (("pair", 2, 2), ("four", 4, 2), ("equal", 2, 2), ("ones", 3, 1)):
        cluster.job(name, "q", [""] * tasks, gpus=gpus, priority=90)
    cluster.job("urgent", "q", [""] * 4, gpus=2, priority=91)
    config = Config(actions=("preempt",))
    assert _searches(monkeypatch, cluster, config) == ["urgent", "pair", "ones"]
    every = replace(config, skip_alike=False)
    assert _searches(monkeypatch, cluster, every)[-4:] == ["urgent", "pair", "four", "ones"]


@pytest.mark.parametrize(
    ("queue", "said", "advised"),
    [
        ("nowhere", "Queue nowhere does not exist", "create queue nowhere"),
        ("orphan", "the queue lost above it does not exist, or is not in the same node pool", "create queue lost, or"),
        ("below", "the queue lost above it does not exist", "give it the node pool label of queue below"),
        ("all", "Queue all holds other queues", "name a queue that has none below it"),
        ("ring", "Queue ring does not exist", "create queue ring"),
    ],
)
def test_a_queue_that_cannot_be_used_says_why(queue: str, said: str, advised: str) -> None:
    """Missing, below one that is missing or in another pool, or above others."""
    cluster = Cluster(1).queue("all").queue("leaf", parent="all").queue("orphan", parent="lost")
    cluster.queue("below", parent="orphan").queue("ring", parent="ring").job("j", queue, [""])
    if queue == "orphan":
        cluster.state.drop_queue("below")
    (problem,) = cluster.plan().problems["j"]
    assert said in message(problem)
    assert advised in advice(problem)


def test_reasons_are_counted_for_the_nodes_at_hand() -> None:
    """What was counted for one set of nodes is not told of another that came after it."""
    cluster = Cluster(1, 1, 1).queue("q", 100).job("j", "q", [""], gpus=2)
    cycle = Cycle(cluster.state, Config(), NOW)
    job = cluster.state.jobs["j"]
    for size in (3, 2, 1):
        problem = no_room(cycle, job, job.all_tasks()[0], 0, np.arange(size))
        assert problem.refusals == ((Refusal(Code.RESOURCE, "gpu"), size),)


def test_nodes_that_are_no_workers_take_nobody() -> None:
    """With `restrict-node-scheduling` pods go to nodes marked for their kind, and shares are cut from those only."""
    args = {"restrict-node-scheduling": "true", "gpu-worker-node-label-key": "gpu"}
    config = from_file(SchedulerFile(args=args, actions="allocate"))
    cluster = Cluster().node("n0", 8).node("n1", 2, gpu="").node("n2", 4, **{CPU_WORKER: ""}).queue("q")
    done = cluster.job("heavy", "q", [""], gpus=1).job("light", "q", [""], gpus=0).job("large", "q", [""], gpus=4)
    made = done.plan(config=config)
    assert {key: place[1] for key, place in outcome(made).items()} == {"heavy-0": "n1", "light-0": "n2"}
    assert made.fair_share["q"][2] == 2
    (problem,) = made.problems["large"]
    assert (Refusal(Code.WORKER_KIND, "GPU"), 2) in problem.refusals

"""A gang that is being updated goes back to the nodes its pods leave; for five minutes others keep away if they can."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from spinney.api import labels
from spinney.api.core import ConfigMap, Pod
from spinney.api.kai import PodGroup
from spinney.api.schedulerfile import SchedulerFile
from spinney.scheduler.config import Config
from spinney.scheduler.deadlines import next_deadline
from spinney.scheduler.plan import plan
from spinney.scheduler.service.component import COMPONENT as SCHEDULER
from spinney.scheduler.state import status as st
from spinney.scheduler.state.departures import FREED_KEY, KEPT_SECONDS
from spinney.scheduler.state.specs import Constraint, TopologySpec
from spinney.scheduler.why.explanation import explain_job
from spinney.services.binder.component import COMPONENT as BINDER
from tests import make
from tests.scheduler.clusters import NOW, Cluster, assume, outcome
from tests.scheduler.random_clusters import picture
from tests.services.stage import Stage, stage
from tests.virtual_time import virtual

CONFIG = Config(staleness_grace=-1)
PARTS = ((SCHEDULER, SchedulerFile()), (BINDER, None))


def updated(*gpus: int, tasks: int = 1, reference: str = "a", **job: Constraint) -> Cluster:
    """Nodes of this many GPUs; a gang left n0, which held it, and is to be placed again; n1 is in part used."""
    cluster = Cluster(*gpus).queue("q", 100)
    cluster.job("filler", "q", ["n1"])
    cluster.job("a", "q", ["n0"] * tasks, **job)
    refer(cluster, "a", reference)
    cluster.state.departures.set_time(NOW)
    for number in range(tasks):
        leave(cluster, f"a-{number}")
    return cluster


def refer(cluster: Cluster, job: str, gang: str) -> None:
    cluster.state.set_job(replace(cluster.state.jobs[job].spec, replaces=gang))


def leave(cluster: Cluster, key: str) -> None:
    """A running task goes, and another like it waits in its place."""
    old = cluster.state.tasks[key].spec
    cluster.state.drop_task(key)
    cluster.state.set_task(replace(old, uid=f"{key}-new", status=st.PENDING, node=""))


def places(cluster: Cluster, now: float = NOW) -> dict[str, str]:
    """Where a plan puts tasks, by task."""
    return {key: node for key, (_, node, _) in outcome(plan(cluster.state, CONFIG, now)).items()}


@pytest.mark.parametrize("tasks", [1, 3])
def test_an_updated_gang_goes_back_to_the_node_it_left(tasks: int) -> None:
    """One task or a run of them: the freed node wins over the one that bin-packing would fill up."""
    cluster = updated(8, 8, tasks=tasks)
    assert set(places(cluster).values()) == {"n0"}
    refer(cluster, "a", "")
    assert set(places(cluster).values()) == {"n1"}


def test_a_gang_takes_the_place_of_the_one_it_replaces() -> None:
    """The reference may name another gang, by its PodGang, even after that gang is gone."""
    cluster = Cluster(8, 8).queue("q", 100).job("filler", "q", ["n1"]).job("ns/pg-old-1", "q", ["n0"])
    old = cluster.state.tasks["ns/pg-old-1-0"].spec
    cluster.state.set_task(replace(old, labels={labels.PODGANG: "old"}))
    cluster.state.drop_job("ns/pg-old-1")
    cluster.state.drop_task("ns/pg-old-1-0")
    cluster.job("new", "q", [""])
    assert places(cluster, now=0.0) == {"new-0": "n1"}
    refer(cluster, "new", "ns/old")
    assert places(cluster, now=0.0) == {"new-0": "n0"}


def test_a_pod_waits_for_the_one_it_replaces_to_end() -> None:
    """The new pod comes while the old one ends: it waits for that room, for five minutes, then goes elsewhere."""
    cluster = Cluster(1, 2).queue("q", 100).job("filler", "q", ["n1"]).job("a", "q", ["n0"], minimum=1)
    refer(cluster, "a", "a")
    cluster.state.departures.set_time(NOW)
    old = cluster.state.tasks["a-0"].spec
    cluster.state.set_task(replace(old, status=st.RELEASING))
    cluster.state.set_task(replace(old, uid="a-1", status=st.PENDING, node=""))
    assert outcome(plan(cluster.state, CONFIG, NOW + 299))["a-1"][:2] == (st.PIPELINED, "n0")
    assert next_deadline(cluster.state, CONFIG, NOW + 1) == NOW + KEPT_SECONDS
    assert outcome(plan(cluster.state, CONFIG, NOW + 300))["a-1"][:2] == (st.BINDING, "n1")
    cluster.state.departures.set_time(NOW + 100)
    cluster.state.drop_task("a-0")
    assert outcome(plan(cluster.state, CONFIG, NOW + 399))["a-1"][:2] == (st.BINDING, "n0")


@pytest.mark.parametrize("tasks", [1, 2])
def test_others_keep_away_for_five_minutes(tasks: int) -> None:
    """n0 is fuller than n2, so another job would take it; it does so only then, or when the update is over."""
    cluster = updated(4, 1, 8)
    cluster.state.drop_task("a-0-new")
    cluster.job("other", "q", [""] * tasks)
    assert set(places(cluster, NOW + KEPT_SECONDS - 1).values()) == {"n2"}
    assert set(places(cluster, NOW + KEPT_SECONDS).values()) == {"n0"}
    cluster.state.drop_job("a")
    assert set(places(cluster).values()) == {"n0"}


def test_others_take_a_freed_node_where_nothing_else_fits() -> None:
    """It is a preference, and never the reason why a job waits."""
    cluster = updated(4, 1, 2)
    cluster.state.drop_task("a-0-new")
    cluster.job("other", "q", ["", ""], gpus=2)
    assert sorted(places(cluster).values()) == ["n0", "n2"]


def test_tasks_of_one_class_are_told_apart() -> None:
    """In one cycle, each of two updated gangs goes back to its node, and a third job to neither."""
    cluster = Cluster(4, 4, 8).queue("q", 100)
    for job, node in (("a", "n1"), ("b", "n0")):
        cluster.job(job, "q", [node])
        refer(cluster, job, job)
    for key in ("a-0", "b-0"):
        leave(cluster, key)
    cluster.job("c", "q", [""])
    assert places(cluster, now=0.0) == {"a-0-new": "n1", "b-0-new": "n0", "c-0": "n2"}


def test_a_place_that_was_taken_again_is_kept_no_longer() -> None:
    """Once the gang is back, what is left of the node is anybody's."""
    cluster = updated(4, 1, 8)
    assume(cluster.state, "a-0-new", st.RUNNING, "n0")
    assert list(cluster.state.departures.current(NOW)) == []
    assert set(places(cluster.job("other", "q", [""])).values()) == {"n0"}


def test_a_plan_leaves_the_record_as_it_was() -> None:
    """What a plan evicts or places in thought has freed and taken nothing."""
    cluster = updated(2, 1).job("urgent", "q", ["", ""], priority=90)
    cluster.job("victim", "q", ["n0"])
    assert len(cluster.state.queues) == 1  # worked out on first use
    before = picture(cluster.state), list(cluster.state.departures.current(NOW))
    made = plan(cluster.state, CONFIG, NOW)
    assert before[1]
    assert "evict" in {decision.kind for decision in made.decisions}
    assert (picture(cluster.state), list(cluster.state.departures.current(NOW))) == before
    assert plan(cluster.state, CONFIG, NOW) == made


def racks(cluster: Cluster, **rack_of: str) -> Constraint:
    cluster.state.set_topology(TopologySpec("t", (("rack", ""),)))
    for node, rack in rack_of.items():
        row = cluster.state.nodes.rows[node]
        cluster.state.set_node(replace(cluster.state.nodes.spec(row), labels={"rack": rack}))
    return Constraint("t", "rack")


def test_a_required_domain_is_stronger_and_the_one_left_is_preferred() -> None:
    """The rack that the gang left comes first, but only if it holds the whole gang."""
    cluster = updated(8, 4, 4, tasks=2, inside=Constraint("t", "rack"))
    racks(cluster, n0="x", n1="y", n2="z")
    assert set(places(cluster).values()) == {"n0"}
    cluster.job("guest", "q", ["n0"], gpus=7)
    assert set(places(cluster).values()) == {"n1"}


def test_others_choose_a_domain_that_does_without_freed_nodes() -> None:
    """A gang inside one rack takes the emptier rack, as long as the fuller one needs the nodes that are kept."""
    cluster = updated(4, 1, 8)
    cluster.state.drop_task("a-0-new")
    inside = racks(cluster, n0="x", n1="x", n2="y")
    cluster.job("other", "q", ["", ""], inside=inside)
    assert set(places(cluster).values()) == {"n2"}
    assert set(places(cluster, NOW + KEPT_SECONDS).values()) == {"n0"}


def test_departures_are_forgotten_in_time_and_in_number() -> None:
    """The record of a busy cluster stays small."""
    cluster = updated(4, 1)
    departures = cluster.state.departures
    short = cluster.state.tasks["filler-0"].spec
    departures.set_time(NOW + KEPT_SECONDS - 1)
    assert len(list(departures.current(NOW))) == 1
    for number in range(10_000):
        departures.task_changed(replace(short, uid=f"short-{number}"), None)
    assert list(departures.current(NOW)) == []
    refer(cluster, "filler", "filler")
    assert len(list(departures.current(NOW))) == 10_000
    departures.set_time(NOW + 2 * KEPT_SECONDS - 1)
    assert list(departures.current(NOW)) == []


def test_a_restarted_scheduler_knows_what_was_freed() -> None:
    """What is written down is taken up by another, until its time; a pod that stayed takes no place of its gang."""
    cluster = updated(8, 4, tasks=2)
    written = cluster.state.departures.remembered(NOW)
    again = Cluster(8, 4).queue("q", 100).job("filler", "q", ["n1"]).job("a", "q", ["", "n0"], minimum=1)
    refer(again, "a", "a")
    again.state.departures.set_time(NOW)
    again.state.departures.restore(written)
    assert places(again)["a-0"] == "n0"
    assert explain_job(again.state, again.plan(), "a").left == {"n0": NOW + KEPT_SECONDS}
    again.state.departures.set_time(NOW + KEPT_SECONDS)
    assert places(again, NOW + KEPT_SECONDS)["a-0"] == "n1"


async def _replace(world: Stage, pod: str, gang: str) -> None:
    """What an update does to a pod of a PodGang, as far as the scheduler sees it."""
    await world.client.delete(Pod, ("default", pod), grace_seconds=0)
    built = make.pod(f"{pod}-new").scheduler("kai-scheduler").gpus(1).annotate("pod-group-name", f"pg-{gang}-1")
    await world.client.create(Pod, built.label(labels.PODGANG, gang).build(), "default")


@virtual
async def test_the_annotation_of_a_pod_group_brings_its_pod_back() -> None:
    """Through the service: with the reference the new pod gets the old one's node, without it the fuller one."""
    async with stage(*PARTS) as world:
        for name in ("n1", "n2"):
            await world.node(name, gpus=4)
        await world.gang("filler", members=1, gpus=3)
        for name in ("svc", "plain"):
            group = {"metadata": {"name": f"pg-{name}-1"}, "spec": {"minMember": 1, "queue": "q"}}
            await world.client.create(PodGroup, group, "default")
            pod = make.pod(name).scheduler("kai-scheduler").gpus(2).annotate("pod-group-name", f"pg-{name}-1")
            await world.client.create(Pod, pod.label(labels.PODGANG, name).build(), "default")
        await asyncio.sleep(10)
        full, emptier = (await world.placed("filler"))["filler-0"], (await world.placed("svc"))["svc"]
        assert full != emptier
        reference = {"metadata": {"annotations": {labels.REUSE_RESERVATION: "default/svc"}}}
        await world.client.patch(PodGroup, ("default", "pg-svc-1"), reference)
        await _replace(world, "svc", "svc")
        await asyncio.sleep(10)
        record = await world.client.get(ConfigMap, ("default", "kai-scheduler-record"))
        assert FREED_KEY in record.data
        assert await world.placed("svc") == {"svc-new": emptier}
        await _replace(world, "plain", "plain")
        await asyncio.sleep(10)
        assert await world.placed("plain") == {"plain-new": full}

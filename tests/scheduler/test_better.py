"""Where upstream is known to be wrong or slow: one test for each, as docs/differences.md tells."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spinney.api.core import Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, convert
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from spinney.api.scheduling import PriorityClass
from spinney.kube.client.transport import Request, Response
from spinney.scheduler.config import Config
from spinney.scheduler.intake.cluster_objects import job_spec
from spinney.scheduler.state import status as st
from spinney.scheduler.state.specs import Constraint, GpuRequest, GroupSpec, TopologySpec
from tests import make
from tests.scheduler.clusters import Cluster, assume, outcome, statuses
from tests.scheduler.random_clusters import clusters
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import broken, stage
from tests.virtual_time import virtual


def racks(*names: str, gpus: int = 2) -> Cluster:
    cluster = Cluster().queue("q", 100)
    for number, rack in enumerate(names):
        cluster.node(f"n{number}", gpus, rack=rack)
    cluster.state.set_topology(TopologySpec("tree", (("rack", ""),)))
    return cluster


def test_a_packed_domain_is_cleared() -> None:
    """A gang that must stay in one rack has victims in one rack only, though lesser ones are spread over both."""
    cluster = racks("a", "b", "b", "a")
    for number, priority in enumerate((10, 11, 12, 13)):
        cluster.job(f"r{number}", "q", [f"n{number}"], gpus=2, priority=priority)
    done = cluster.job("j", "q", ["", ""], gpus=2, priority=90, inside=Constraint("tree", required="rack")).plan()
    gone = {key for key, status in statuses(done).items() if status == "Releasing"}
    assert gone in ({"r0-0", "r3-0"}, {"r1-0", "r2-0"})


def test_a_queue_that_is_owed_all_it_has_hides_nobody() -> None:
    """Victims of another queue are found behind one from which nothing may be taken."""
    cluster = Cluster(2, 2).queue("mine", 2).queue("owed", 2, weight=0).queue("borrows", 0)
    cluster.job("o", "owed", ["n0"], gpus=2, priority=10).job("b", "borrows", ["n1"], gpus=2, priority=20)
    assert statuses(cluster.job("j", "mine", [""], gpus=2).plan()) == {"b-0": "Releasing", "j-0": "Pipelined"}


def test_a_victim_without_gpus_moves_to_a_node_without_gpus() -> None:
    """It need not end because whom it makes room for could not use that node, unless that is asked for."""
    cluster = Cluster(2).queue("q", 100)
    cluster.job("light", "q", ["n0"], gpus=0, priority=10).job("heavy", "q", ["n0"], gpus=2, priority=20)
    for key, cpu in (("light-0", 40_000.0), ("heavy-0", 1000.0)):
        spec = cluster.state.tasks[key].spec
        cluster.state.set_task(replace(spec, request={"cpu": cpu, "memory": 1e9}))
    cluster.node("plain", 0).job("j", "q", [""], gpus=2, priority=90)
    spec = cluster.state.tasks["j-0"].spec
    cluster.state.set_task(replace(spec, request={"cpu": 60_000.0, "memory": 1e9}))
    done = cluster.plan("preempt")
    assert statuses(done) == {"light-0": "Pipelined", "heavy-0": "Releasing", "j-0": "Pipelined"}
    assert outcome(done)["light-0"][1] == "plain"
    config = Config(actions=("preempt",), rehome_anywhere=False)
    assert statuses(cluster.plan(config=config))["light-0"] == "Releasing"


@given(some.lists(some.sampled_from([300, 400, 600, 700]), min_size=1, max_size=8))
def test_memory_of_a_gpu_is_not_given_twice(wishes: list[int]) -> None:
    """Tasks that ask for memory never have more of a GPU together than it has."""
    cluster = Cluster(2).queue("q", 100)
    for number, memory in enumerate(wishes):
        cluster.job(f"j{number}", "q", [""])
        spec = cluster.state.tasks[f"j{number}-0"].spec
        cluster.state.set_task(replace(spec, gpu=GpuRequest(memory=memory)))
    held: dict[str, int] = {}
    for key, (_, _, groups) in outcome(cluster.plan("allocate")).items():
        for group in groups:
            held[group] = held.get(group, 0) + cluster.state.tasks[key].cls.memory
    assert len(held) <= 2
    assert all(memory <= 1000 for memory in held.values())


def tree(needed: int) -> GroupSpec:
    return GroupSpec(minimum=needed, members=tuple(GroupSpec(name, 1) for name in ("leader", "extra")))


@pytest.mark.parametrize(("needed", "gone"), [(1, {}), (2, {"j-0": "Releasing"})])
def test_a_subgroup_that_is_not_needed_makes_nothing_stale(needed: int, gone: dict[str, str]) -> None:
    """A gang of two subgroups that needs one runs on with one."""
    cluster = Cluster(1).queue("q", 100).job("j", "q", ["n0", ""], tree=tree(needed))
    for key, group in (("j-0", "leader"), ("j-1", "extra")):
        cluster.state.set_task(replace(cluster.state.tasks[key].spec, group=group))
    assert statuses(cluster.plan("stalegangeviction")) == gone


def test_a_class_that_never_preempts() -> None:
    """Its gangs go first, but push nobody out; what their queue is owed they still take back."""
    classes = [convert(PriorityClass, {"metadata": {"name": "calm"}, "value": 90, "preemptionPolicy": "Never"})]
    group = convert(PodGroup, {"metadata": {"name": "g"}, "spec": {"priorityClassName": "calm", "queue": "q"}})
    assert not job_spec(group, classes, {}).preempts
    cluster = Cluster(1).queue("q", 1).queue("other", 0).job("low", "q", ["n0"], priority=10)
    cluster.job("j", "q", [""], priority=90)
    cluster.state.set_job(replace(cluster.state.jobs["j"].spec, preempts=False))
    assert not cluster.plan().decisions
    cluster.state.set_job(replace(cluster.state.jobs["low"].spec, queue="other"))
    assert statuses(cluster.plan()) == {"low-0": "Releasing", "j-0": "Pipelined"}


@given(clusters())
def test_the_order_of_arrival_does_not_matter(cluster: Cluster) -> None:
    """Jobs and tasks that were seen in another order are treated alike: no map decides."""
    config = Config(consolidation_victims=1, staleness_grace=0)
    first = cluster.plan(config=config)
    state = cluster.state
    for job in list(state.jobs.values())[::-1]:
        tasks = [task.spec for task in job.all_tasks()][::-1]
        state.drop_job(job.key)
        for spec in tasks:
            state.drop_task(spec.uid)
        state.set_job(job.spec)
        for spec in tasks:
            state.set_task(spec)
    assert outcome(cluster.plan(config=config)) == outcome(first)


def test_groups_of_one_name_in_two_namespaces_are_two() -> None:
    """Their pods are not put together."""
    built: Json = {"metadata": {"name": "g", "namespace": "a"}, "spec": {"minMember": 2, "queue": "q"}}
    other = {**built, "metadata": {"name": "g", "namespace": "b"}}
    assert job_spec(convert(PodGroup, built), [], {}).key != job_spec(convert(PodGroup, other), [], {}).key


def test_projects_alone_share_where_departments_have_no_part() -> None:
    """With `full-hierarchy-fairness` off a department holds no project back, and no queue is changed for that."""
    cluster = Cluster(4).queue("small", 1, limit=1).queue("p", 4, parent="small").job("j", "p", [""], gpus=4)
    assert not cluster.plan().decisions
    specs = dict(cluster.state.queue_specs)
    cluster.state.flat = True
    cluster.state.set_queue(replace(specs["p"], created=9.0))
    assert statuses(cluster.plan()) == {"j-0": "Binding"}
    assert cluster.state.queue_specs["small"] == specs["small"]


def test_departments_keep_what_they_are_owed() -> None:
    """A project within its own share takes nothing from a department that has no more than its own."""
    cluster = Cluster(4).queue("one", 2, weight=0).queue("two", 2, weight=0)
    cluster.queue("one-a", 2, parent="one").queue("one-b", 2, parent="one").queue("two-a", 2, parent="two")
    cluster.job("x", "one-a", ["n0"], gpus=2).job("y", "two-a", ["n0"], gpus=2)
    done = cluster.job("j", "one-b", [""], gpus=1).plan("reclaim")
    assert "y-0" not in outcome(done)


@virtual
async def test_pods_of_others_count_at_once() -> None:
    """A pod that somebody else bound has its GPUs, and what was placed before it was seen is placed elsewhere."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        await world.node("n1", gpus=2)
        await world.node("n2", gpus=2)
        await world.client.create(Pod, make.pod("theirs").scheduler("other").gpus(2).on("n1").build(), "default")
        await world.gang("ours", members=1, gpus=2)
        await asyncio.sleep(5)
        assert await world.placed("ours") == {"ours-0": "n2"}


@virtual
async def test_a_gang_with_claims_is_not_stuck_after_a_failure() -> None:
    """When one of its requests could not be written, its devices are free again, and it starts without a restart."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client, refused = world.client, 1

        def fault(sent: Request) -> Response | None:
            nonlocal refused
            if refused and sent.method == "POST" and sent.path.endswith("/bindrequests") and b'"g-1"' in sent.body:
                refused -= 1
                return broken()
            return None

        world.transport.fault = fault
        await world.node("n1", gpus=0)
        expression = 'device.driver == "gpu.example.com"'
        await client.create(
            DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
        )
        pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
        offered = {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": pool,
            "devices": [{"name": "a"}, {"name": "b"}],
        }
        await client.create(ResourceSlice, {"metadata": {"name": "n1"}, "spec": offered})
        await client.create(PodGroup, {"metadata": {"name": "g"}, "spec": {"minMember": 2, "queue": "q"}}, "default")
        wish = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        for name in ("g-0", "g-1"):
            await client.create(ResourceClaim, {"metadata": {"name": name}, "spec": wish}, "default")
            built = make.pod(name).scheduler("kai-scheduler").annotate("pod-group-name", "g").build()
            built["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
            await client.create(Pod, built, "default")
        await asyncio.sleep(30)
        assert not refused
        assert await world.placed("g") == {"g-0": "n1", "g-1": "n1"}


def test_releasing_room_is_not_given_to_two() -> None:
    """Two gangs that wait for the same node: the first has it, the second has to look elsewhere."""
    cluster = Cluster(2).queue("q", 100).job("r", "q", ["n0"], gpus=2)
    assume(cluster.state, "r-0", st.RELEASING, "n0")
    cluster.job("a", "q", [""], gpus=2).job("b", "q", [""], gpus=2)
    assert statuses(cluster.plan("allocate")) == {"a-0": "Pipelined"}

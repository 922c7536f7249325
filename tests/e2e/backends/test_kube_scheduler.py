"""The default backend with the real kube-scheduler of each release: all or nothing, and nobody blocked for good."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.kai import Queue
from spinney.api.pod import Pod
from spinney.kube.chance import Chance
from spinney.testing import build
from spinney.testing.controlplane import ControlPlane
from tests import data, make
from tests.backends.kubescheduler import Schedules, schedules
from tests.e2e.sequence import RESOURCES, Shell, apply_get_patch_delete

RELEASES = ("v1.35.4", "v1.36.3")


@pytest.fixture(scope="module", params=RELEASES)
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of a release, with its controllers and its scheduler."""
    if not build.built(request.param):
        data.unavailable(
            "real", f"Kubernetes {request.param} is not built: run `make controlplane VERSION={request.param}`"
        )
    with ControlPlane(tmp_path_factory.mktemp("plane"), request.param) as plane:
        plane.start_controllers()
        plane.start_scheduler()
        yield plane


@pytest.fixture
async def cluster(plane: ControlPlane) -> AsyncIterator[Schedules]:
    """Our components on that control plane. What a test leaves must not keep the gangs of the next one waiting."""
    async with schedules(plane) as view:
        yield view
        for left in (await view.client.list(PodCliqueSet)).items:
            await view.client.delete(PodCliqueSet, left.key)
        await view.until("nothing is left", lambda: len(view.gangs) == 0)


async def place(cluster: Schedules, name: str) -> str:
    """A namespace for a test; its nodes carry the same name as a label."""
    await cluster.client.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
    return name


def gang(name: str, where: str) -> make.SetBuilder:
    """A set whose pods run only on the nodes of a test."""
    builder = make.pcs(name, where)
    builder.annotate("where", where)
    return builder


def role(builder: make.SetBuilder, name: str, replicas: int, least: int, gpus: int = 1) -> make.SetBuilder:
    """Add a role whose pods ask for so many GPUs."""
    where = builder.object["metadata"]["annotations"]["where"]
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "image": "busybox", "resources": resources}
    return builder.clique(name, replicas, least, nodeSelector={"where": where}, containers=[container])


async def test_one_gpu_short_nothing_is_bound_and_with_one_more_node_all_is(cluster: Schedules) -> None:
    """All or nothing."""
    where = await place(cluster, "short")
    await cluster.node("short-0", 4, where=where)
    await cluster.node("short-1", 3, where=where)
    await cluster.apply(role(gang("train", where), "workers", 4, 4, gpus=2), where)
    await cluster.until("the gang is refused", lambda: cluster.refused(where, "train-0"))
    assert cluster.bound(where) == {"workers": 0}
    await cluster.node("short-2", 2, where=where)
    await cluster.until("all are bound", lambda: cluster.bound(where) == {"workers": 4})


async def test_surplus_comes_after_the_gang_and_takes_what_is_left(cluster: Schedules) -> None:
    """Two of four must run; a third finds room, the fourth does not and harms nobody."""
    where = await place(cluster, "surplus")
    await cluster.node("surplus-0", 3, where=where)
    await cluster.apply(role(gang("serve", where), "workers", 4, 2), where)
    await cluster.until("three are bound", lambda: cluster.bound(where) == {"workers": 3})
    await cluster.until("the gang is scheduled", lambda: cluster.scheduled(where, "serve-0"))


async def test_a_lost_pod_is_replaced(cluster: Schedules) -> None:
    """The replacement joins the gang that runs."""
    where = await place(cluster, "lost")
    await cluster.node("lost-0", 4, where=where)
    await cluster.apply(role(gang("train", where), "workers", 3, 3), where)
    await cluster.until("all are bound", lambda: cluster.bound(where) == {"workers": 3})
    lost = cluster.living(where)[0]
    await cluster.client.delete(Pod, (where, lost.name), grace_seconds=0)

    def replaced() -> bool:
        return lost.name not in {pod.name for pod in cluster.living(where)} and cluster.bound(where) == {"workers": 3}

    await cluster.until("it is replaced", replaced)


async def test_a_set_that_is_scaled_out_gets_another_gang(cluster: Schedules) -> None:
    """The new replica is a gang of its own."""
    where = await place(cluster, "scaled")
    await cluster.node("scaled-0", 4, where=where)
    await cluster.apply(role(gang("serve", where), "workers", 2, 2), where)
    await cluster.until("the first is bound", lambda: cluster.scheduled(where, "serve-0"))
    await cluster.client.patch(PodCliqueSet, (where, "serve"), {"spec": {"replicas": 2}})
    await cluster.until("the second is bound", lambda: cluster.scheduled(where, "serve-1"))
    assert cluster.bound(where) == {"workers": 4}


async def test_two_gangs_that_compete_run_one_after_the_other(cluster: Schedules) -> None:
    """One runs, the other waits whole and runs later; a gang that never fits blocks neither."""
    where = await place(cluster, "compete")
    await cluster.node("compete-0", 2, where=where)
    await cluster.node("compete-1", 2, where=where)
    await cluster.apply(role(gang("never", where), "workers", 9, 9), where)
    await cluster.until("it is refused", lambda: cluster.refused(where, "never-0"))
    for name in ("one", "two"):
        await cluster.apply(role(gang(name, where), "workers", 3, 3), where)

    def halves() -> set[int]:
        return {cluster.bound(where, f"{name}-0").get("workers", -1) for name in ("one", "two")}

    await cluster.until("one of them runs and the other is refused", lambda: halves() == {0, 3})
    winner, loser = ("one", "two") if cluster.bound(where, "one-0") == {"workers": 3} else ("two", "one")
    await cluster.until("the loser is refused", lambda: cluster.refused(where, f"{loser}-0"))
    await cluster.client.delete(PodCliqueSet, (where, winner))
    await cluster.until("the other runs", lambda: cluster.bound(where, f"{loser}-0") == {"workers": 3})
    assert cluster.bound(where, "never-0") == {"workers": 0}


GATE_OF_A_USER = "example.com/not-yet"


async def test_small_pods_that_come_first_leave_large_ones_their_room(cluster: Schedules, plane: ControlPlane) -> None:
    """kube-scheduler 1.35 spreads pods as they come: four small ones would take a half of every node."""
    if not plane.version.startswith("v1.35"):
        pytest.skip("from 1.36 on kube-scheduler looks at a gang as a whole")
    where = await place(cluster, "scatter")
    for index in range(4):
        await cluster.node(f"scatter-{index}", 2, where=where)
    pcs = role(gang("train", where), "large", 2, 2, gpus=2)
    cliques = pcs.object["spec"]["template"]["cliques"]
    cliques[0]["spec"]["podSpec"]["schedulingGates"] = [{"name": GATE_OF_A_USER}]
    for index in range(4):
        role(pcs, f"small{index}", 1, 1)
        # Pods that are alike would be put side by side.
        cliques[-1]["spec"]["podSpec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{4 + index}"
    await cluster.apply(pcs, where)

    def waits_for_large() -> bool:
        free = [pod for pod in cluster.living(where) if not pod.spec.scheduling_gates]
        return len(free) == 4 and all(pod.status.nominated_node_name for pod in free)

    await cluster.until("the small ones have their nodes in view", waits_for_large)
    for pod in cluster.living(where):
        if pod.spec.scheduling_gates:
            await cluster.client.patch(Pod, (where, pod.name), {"spec": {"schedulingGates": None}})
    await cluster.until("all are bound", lambda: sum(cluster.bound(where).values()) == 6)


async def test_a_gang_of_all_sizes_is_placed_where_it_only_just_fits(cluster: Schedules) -> None:
    """From 1.36 on kube-scheduler tries pods in the order in which they were let go, and in no other."""
    where = await place(cluster, "sizes")
    for index in range(4):
        await cluster.node(f"sizes-{index}", 4, where=where)
    pcs = role(role(role(gang("train", where), "small", 4, 4), "middle", 2, 2, gpus=2), "large", 2, 2, gpus=4)
    await cluster.apply(pcs, where)
    await cluster.until("all are bound", lambda: cluster.bound(where) == {"small": 4, "middle": 2, "large": 2})


MINIMUMS = {"router": 1, "prefill": 2, "decode": 4}


async def test_no_role_runs_below_its_minimum_on_random_clusters(cluster: Schedules) -> None:
    """router 1/1, prefill 4/2, decode 8/4 on 20 clusters: nothing, or every role's minimum at least."""
    chance = Chance(7)
    places = []
    for number in range(20):
        where = await place(cluster, f"random-{number}")
        places.append(where)
        for index in range(2 + int(chance.random() * 4)):
            await cluster.node(f"{where}-{index}", 1 + int(chance.random() * 8), where=where)
        pcs = role(gang("svc", where), "router", 1, 1)
        role(role(pcs, "prefill", 4, 2, gpus=2), "decode", 8, 4)
        await cluster.apply(pcs, where)

    def decided(where: str) -> bool:
        if cluster.scheduled(where, "svc-0"):
            return cluster.settled(where) and not any(pod.spec.scheduling_gates for pod in cluster.living(where))
        return cluster.refused(where, "svc-0")

    await cluster.until("every gang is bound or refused", lambda: all(map(decided, places)))
    outcomes = [cluster.bound(where) for where in places]
    for counts in outcomes:
        assert all(counts[name] == 0 for name in MINIMUMS) or all(
            counts[name] >= least for name, least in MINIMUMS.items()
        ), counts
    assert {any(counts.values()) for counts in outcomes} == {True, False}


async def test_from_136_on_a_packed_gang_lies_in_one_domain(cluster: Schedules, plane: ControlPlane) -> None:
    """Two racks with room for the gang only together hold none of it; with one more node a rack holds all."""
    if plane.version.startswith("v1.35"):
        pytest.skip("kube-scheduler 1.35 knows no topology")
    where = await place(cluster, "packed")
    levels = [{"domain": "rack", "key": "example.com/rack"}]
    binding = {"metadata": {"name": "packed"}, "spec": {"levels": levels}}
    await cluster.client.create(ClusterTopologyBinding, binding)
    for index, rack in enumerate("aabb"):
        await cluster.node(f"packed-{index}", 1, **{"where": where, "example.com/rack": rack})
    pcs = role(gang("train", where), "workers", 3, 3)
    constraint = {"topologyName": "packed", "pack": {"required": "rack"}}
    pcs.object["spec"]["template"]["topologyConstraint"] = constraint
    await cluster.apply(pcs, where)
    await cluster.until("the gang is refused", lambda: cluster.refused(where, "train-0"))
    assert cluster.bound(where) == {"workers": 0}
    await cluster.node("packed-4", 1, **{"where": where, "example.com/rack": "b"})
    await cluster.until("all are bound", lambda: cluster.bound(where) == {"workers": 3})
    assert {pod.spec.node_name for pod in cluster.living(where)} == {"packed-2", "packed-3", "packed-4"}


@pytest.mark.parametrize("backend", RESOURCES)
async def test_what_a_user_sees_with_kubectl(plane: ControlPlane, backend: str) -> None:
    """The contract's sequence on the real API server: placed by the real kube-scheduler, or by ours for `kai`."""
    if not plane.version.startswith("v1.35"):
        pytest.skip("once is enough: 1.36 differs only in what the tests above look at")
    services = ("scheduler", "binder", "podgroup-controller") if backend == "kai" else ()
    async with schedules(plane, *services) as cluster:
        where = await place(cluster, f"kubectl-{backend}")
        await cluster.node(where, 8, where=where)
        if backend == "kai":
            await cluster.client.create(Queue, make.queue("default-queue").unlimited().build())
        await apply_get_patch_delete(Shell(plane.kubeconfig(), where), backend, nodeSelector={"where": where})

"""The life of a set around its pods: what is made with it, what goes with it, and what must not happen."""

from __future__ import annotations

from functools import partial

import pytest

from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Secret, Service, ServiceAccount
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Object
from spinney.api.podgang import PodGang
from spinney.api.rbac import Role, RoleBinding
from tests import make
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample
from tests.grove.virtual import play, played

KAI = {"schedulerName": "kai-scheduler"}
GATE = {"name": "team.io/wait"}
MANAGED = (
    PodCliqueScalingGroup, PodClique, PodGang, Pod, Service, ServiceAccount, Secret, Role, RoleBinding,
    HorizontalPodAutoscaler,
)  # fmt: skip


def test_cascade_delete_leaves_nothing(both: Play) -> None:
    """CascadeDelete: a deleted set takes everything along that is part of it."""

    async def scenario(stage: Stage) -> None:
        (pcs,) = sample("e2e-yaml/workload2")
        pcs["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"minReplicas": 2, "maxReplicas": 4}
        await stage.apply(pcs)
        await stage.runs(10)
        assert await left(stage) == [kind.resource.kind for kind in MANAGED]
        await stage.delete(PodCliqueSet, "workload2")
        await stage.sees(lambda: left(stage), [])
        assert not await stage.list(PodCliqueSet)

    async def left(stage: Stage) -> list[str]:
        parts = {"app.kubernetes.io/part-of": "workload2"}
        return [kind.resource.kind for kind in MANAGED if await stage.list(kind, **parts)]

    both(scenario, nodes=10)


@played(nodes=10)
async def test_a_deleted_set_is_cleared_away_by_the_operator_itself(stage: Stage) -> None:
    """Each pod, gang and Service is deleted once by the operator: nobody waits for the garbage collector's pace."""
    (pcs,) = sample("e2e-yaml/workload2")
    await stage.apply(pcs)
    await stage.runs(10)
    once = {kind.resource.kind: len(await stage.list(kind)) for kind in (Pod, PodGang, Service)}
    stage.operator.writes.clear()
    await stage.delete(PodCliqueSet, "workload2")
    await stage.sees(partial(stage.list, Pod), [])
    assert {kind: stage.operator.writes.of(kind) for kind in once} == once


@played(nodes=2)
async def test_ready_was_empty_in_the_first_status(stage: Stage) -> None:
    """`kubectl get pcs` right after `kubectl apply` shows 0/2, and not a column of nothing."""
    listing = await stage.client.list(PodCliqueSet, stage.namespace)
    events = stage.client.watch(PodCliqueSet, stage.namespace, resource_version=listing.resource_version)
    await stage.apply(make.pcs("new", replicas=2).clique("worker", **KAI).build())
    async for event in events:
        if event.object is not None and event.object.status.current_generation_hash:
            assert event.object.status.ready == "0/2"
            return


@played(nodes=2)
async def test_a_set_that_was_told_to_leave_all_behind_does(stage: Stage) -> None:
    """`--cascade=orphan`: pods, gangs and Services outlive their set."""
    await stage.apply(make.pcs("kept").clique("worker", 2, **KAI).build())
    await stage.runs(2)
    pods = await stage.uids()
    await stage.client.delete(PodCliqueSet, (stage.namespace, "kept"), propagation="Orphan")
    await stage.sees(partial(stage.list, PodCliqueSet), [])
    await stage.settle()
    assert await stage.uids() == pods
    assert [len(await stage.list(kind)) for kind in (PodClique, PodGang)] == [1, 1]


def test_scaling_in_takes_the_highest_replica_with_all_it_has(both: Play) -> None:
    """Scale-in removes the highest index with its Services, gangs and pods, and nothing of the others."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(*sample("e2e-yaml/scale-down-tiny"))
        await stage.runs(10)
        kept = {
            pod.uid for pod in await stage.pods() if pod.metadata.labels["grove.io/podcliqueset-replica-index"] < "2"
        }
        await stage.scale(PodCliqueSet, "scale-down-tiny", 2)
        await stage.runs(4)
        assert await stage.uids() == kept
        for kind in (Service, PodGang):
            await stage.sees(partial(names_of, stage, kind), ["scale-down-tiny-0", "scale-down-tiny-1"])
        await stage.scale(PodCliqueSet, "scale-down-tiny", 0)
        for kind in (Service, PodGang, PodClique, Pod):
            await stage.sees(partial(names_of, stage, kind), [])
        await stage.sees(lambda: stage.ready("scale-down-tiny"), "0/0")

    async def names_of(stage: Stage, kind: type[Object]) -> list[str]:
        return sorted(item.name for item in await stage.list(kind, **{"app.kubernetes.io/part-of": "scale-down-tiny"}))

    both(scenario, nodes=10)


@played(nodes=10)
async def test_a_deleted_child_comes_back(stage: Stage) -> None:
    """Whatever someone deletes of a set is made again."""
    await stage.apply(*sample("e2e-yaml/workload1"))
    await stage.runs(10)
    await stage.client.delete(PodClique, ("default", "workload1-0-pc-a"))
    await stage.client.delete(PodCliqueScalingGroup, ("default", "workload1-0-sg-x"))
    await stage.client.delete(PodGang, ("default", "workload1-0"))
    await stage.client.delete(Service, ("default", "workload1-0"))
    await stage.client.delete(Secret, ("default", "workload1-ic-sat"))
    await stage.client.delete(Role, ("default", "grove.io:pcs:workload1"))
    await stage.runs(10)
    for kind, name in ((Service, "workload1-0"), (Secret, "workload1-ic-sat"), (Role, "grove.io:pcs:workload1")):
        assert (await stage.client.get(kind, ("default", name))).name == name
    assert (await stage.gang("workload1-0")).status.phase == "Running"


@played(nodes=10)
async def test_autoscalers_follow_the_set(stage: Stage) -> None:
    """A clique and a scaling group with a scaling range get an autoscaler of their name, and lose it with the range."""
    built = make.pcs("svc").clique("a", 2).clique("b").group("g", ["b"]).build()
    template = built["spec"]["template"]
    template["cliques"][0]["spec"]["autoScalingConfig"] = {"maxReplicas": 5}
    template["podCliqueScalingGroups"][0]["scaleConfig"] = {"minReplicas": 1, "maxReplicas": 3}
    await stage.apply(built)
    await stage.runs(3)
    specs = {hpa.name: hpa.spec for hpa in await stage.list(HorizontalPodAutoscaler)}
    assert {name: (spec.min_replicas, spec.max_replicas) for name, spec in specs.items()} == {
        "svc-0-a": (2, 5),
        "svc-0-g": (1, 3),
    }
    assert specs["svc-0-g"].scale_target_ref.kind == "PodCliqueScalingGroup"
    await stage.scale(PodClique, "svc-0-a", 4)
    await stage.runs(5)
    groups = template["podCliqueScalingGroups"]
    groups[0].pop("scaleConfig")
    await stage.client.patch(
        PodCliqueSet, ("default", "svc"), {"spec": {"template": {"podCliqueScalingGroups": groups}}}
    )
    await stage.settle(10)
    assert [hpa.name for hpa in await stage.list(HorizontalPodAutoscaler)] == ["svc-0-a"]


@played(nodes=3)
async def test_an_autoscaler_was_written_again_for_a_quantity_that_is_stored_otherwise(stage: Stage) -> None:
    """The API server stores half a request per second as 500m; later reconciles of the set leave that alone."""
    built = make.pcs("svc").clique("a").build()
    target = {"type": "AverageValue", "averageValue": "0.5"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "requests"}, "target": target}}
    built["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"maxReplicas": 5, "metrics": [metric]}
    await stage.apply(built)
    await stage.runs(1)
    stage.operator.writes.clear()
    await stage.scale(PodCliqueSet, "svc", 2)
    await stage.runs(2)
    # Of the second replica.
    assert stage.operator.writes.of("HorizontalPodAutoscaler") == 1


@played(nodes=10)
async def test_an_idle_scaling_group_is_not_scaled_up(stage: Stage) -> None:
    """An autoscaler takes each pod for a replica; simulated pods are idle, so that it leaves groups alone."""
    built = make.pcs("svc").clique("a", 2).clique("b", 2).group("g", ["a", "b"]).build()
    template = built["spec"]["template"]
    for clique in template["cliques"]:
        clique["spec"]["podSpec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    load = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    load["resource"]["target"]["averageUtilization"] = 80
    scaled = {"minReplicas": 1, "maxReplicas": 6, "metrics": [load]}
    template["podCliqueScalingGroups"][0]["scaleConfig"] = scaled
    await stage.apply(built)
    await stage.runs(4)
    await stage.settle(120)
    await stage.runs(4)


@played(nodes=4)
async def test_names_that_end_alike_are_not_confused(stage: Stage) -> None:
    """`worker` and `pworker` each get their own template."""
    built = make.pcs("svc").clique("worker").clique("pworker").build()
    for at, image in enumerate(("one", "two")):
        built["spec"]["template"]["cliques"][at]["spec"]["podSpec"]["containers"][0]["image"] = image
    await stage.apply(built)
    await stage.runs(2)
    images = {pod.metadata.labels["grove.io/podclique"]: pod.spec.containers[0].image for pod in await stage.pods()}
    assert images == {"svc-0-worker": "one", "svc-0-pworker": "two"}


@played(nodes=4)
async def test_the_users_own_gate_stays(stage: Stage) -> None:
    """A gate of the template is kept, and only its owner takes it off."""
    await stage.apply(make.pcs("svc").clique("a", schedulerName="kai-scheduler", schedulingGates=[GATE]).build())
    await stage.settle(60)
    (pod,) = await stage.pods()
    assert [gate.name for gate in pod.spec.scheduling_gates] == ["team.io/wait"]


@played(nodes=4)
async def test_the_sets_priority_reaches_pods_and_gangs(stage: Stage) -> None:
    """priorityClassName of the template is on the gang, and on pods that name none."""
    for name in ("high", "low"):
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}
        await stage.apply({**priority, "metadata": {"name": name}})
    built = make.pcs("svc").clique("a").clique("b", priorityClassName="low").build()
    built["spec"]["template"]["priorityClassName"] = "high"
    await stage.apply(built)
    await stage.runs(2)
    classes = {pod.metadata.labels["grove.io/podclique"]: pod.spec.priority_class_name for pod in await stage.pods()}
    assert classes == {"svc-0-a": "high", "svc-0-b": "low"}
    assert (await stage.gang("svc-0")).spec.priority_class_name == "high"


@played(nodes=10)
async def test_a_group_scaled_below_its_minimum_recovers(stage: Stage) -> None:
    """A scaling group below minAvailable keeps what it has, and comes back when it is scaled out again."""
    await stage.apply(*sample("e2e-yaml/workload1"))
    await stage.runs(10)
    await stage.scale(PodCliqueScalingGroup, "workload1-0-sg-x", 1)
    await stage.runs(6)
    await stage.scale(PodCliqueScalingGroup, "workload1-0-sg-x", 2)
    await stage.runs(10)


@pytest.mark.parametrize("count", [1, 0])
def test_a_clique_below_its_minimum_needs_no_more_than_it_is_to_have(count: int) -> None:
    """Whoever scales a clique below minAvailable gets a gang that runs with what is left; nothing is terminated."""

    async def scenario(stage: Stage) -> None:
        built = make.pcs("svc").clique("a", replicas=3, min_available=2, **KAI).clique("b", **KAI).build()
        built["spec"]["template"]["terminationDelay"] = "10s"
        await stage.apply(built)
        await stage.runs(4)
        await stage.scale(PodClique, "svc-0-a", count)
        await stage.runs(count + 1)
        before = await stage.uids()
        await stage.settle(60)
        assert await minimum(stage) == (count, "Running")
        assert (await stage.clique("svc-0-a")).spec.min_available == 2
        assert (await stage.ready("svc"), await stage.uids()) == ("1/1", before)
        await stage.scale(PodClique, "svc-0-a", 3)
        await stage.runs(4)
        assert await minimum(stage) == (2, "Running")

    async def minimum(stage: Stage) -> tuple[int, str]:
        gang = await stage.gang("svc-0")
        return gang.spec.podgroups[0].min_replicas, gang.status.phase

    play(scenario, nodes=5)


@played(nodes=12)
async def test_autoscalers_at_both_levels_come_to_rest(stage: Stage) -> None:
    """A set whose clique and scaling group are scaled by what idle pods use keeps its size, and nothing is written."""
    used = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    bounds = {"maxReplicas": 6, "metrics": [{"type": "Resource", "resource": used}]}
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "10m"}}}]
    builder = make.pcs("svc").clique("a", replicas=3, containers=containers)
    built = builder.clique("b", replicas=2, containers=containers).group("g", ["b"], 3, min_available=2).build()
    built["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = bounds
    built["spec"]["template"]["podCliqueScalingGroups"][0]["scaleConfig"] = bounds
    await stage.apply(built)
    await stage.runs(9)
    await stage.settle(600)
    assert await stage.running() == 9
    for autoscaler in await stage.list(HorizontalPodAutoscaler):
        assert (autoscaler.status.current_replicas, autoscaler.status.desired_replicas) == (3, 3)


@played(nodes=2)
async def test_what_goes_wrong_is_told_on_the_set(stage: Stage) -> None:
    """A name that someone else holds stands in lastErrors, and goes from there once the name is free."""
    theirs = {"metadata": {"name": "svc-0"}, "spec": {"clusterIP": "None"}}
    await stage.client.create(Service, theirs, "default")
    await stage.apply(make.pcs("svc").clique("a").build())
    await stage.settle(30)
    (error,) = (await stage.pcs("svc")).status.last_errors
    assert "Service default/svc-0 exists and belongs to someone else" in error.description
    await stage.client.delete(Service, ("default", "svc-0"))
    await stage.runs(1)
    await stage.settle(5)
    assert not (await stage.pcs("svc")).status.last_errors

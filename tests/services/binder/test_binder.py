"""The binder: what it binds, what it refuses, and that a failure leaves nothing behind."""

from __future__ import annotations

import asyncio
import json

import pytest

from spinney.api.conditions import find
from spinney.api.core import ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import convert
from spinney.api.resource import ResourceClaim
from spinney.kube.client.transport import Request, Response
from spinney.services.binder.sharing_config import memory_of
from spinney.services.reservation.manifest import ReservationSettings, reservation_pod
from tests import make
from tests.services.binder.binding import (
    ALLOCATION,
    PARTS,
    RESERVATIONS,
    claim,
    outcome,
    pod,
    request,
    reserved,
    tell_device,
    with_reservations,
)
from tests.services.stage import Stage, broken, stage
from tests.virtual_time import virtual

NODE = make.node("n1").typed(Node)


@virtual
async def test_a_request_is_carried_out() -> None:
    """The pod gets its node and says what it received; the request says that it succeeded."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await request(world, await pod(world))
        await asyncio.sleep(1)
        bound = await world.client.get(Pod, ("default", "p"))
        assert (bound.spec.node_name, bound.metadata.annotations["received-resource-type"]) == ("n1", "Regular")
        assert (await outcome(world))[0] == "Succeeded"


@virtual
async def test_a_request_that_was_heard_of_before_its_pod_was_never_carried_out() -> None:
    """Pods and requests come by different watches: whichever is behind, the pod is bound once both are known."""

    async def pods_come_late(request: Request) -> None:
        if request.path == "/api/v1/pods":
            await asyncio.sleep(5)

    async with stage(*PARTS) as world:
        await world.node("n1")
        world.transport.events = pods_come_late
        await request(world, await pod(world))
        await asyncio.sleep(10)
        assert (await outcome(world))[0] == "Succeeded"


@virtual
async def test_nothing_of_a_decision_is_bound_before_all_of_it_is_there() -> None:
    """The first of two requests waits for the second."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        first, second = await pod(world, "a"), await pod(world, "b")
        await request(world, first, decision=("d", 2))
        await asyncio.sleep(60)
        assert await world.placed("") == {"a": "", "b": ""}
        await request(world, second, decision=("d", 2))
        await asyncio.sleep(1)
        assert await world.placed("") == {"a": "n1", "b": "n1"}


@virtual
async def test_a_request_for_an_older_pod_of_the_same_name_is_ignored() -> None:
    """Requests are matched by the pod's UID."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        old = await pod(world)
        await world.client.delete(Pod, ("default", "p"), grace_seconds=0)
        await pod(world)
        body = {
            "metadata": {
                "name": "p",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": old.uid}],
            },
            "spec": {"podName": "p", "selectedNode": "n1"},
        }
        await world.client.create(BindRequest, body, "default")
        await asyncio.sleep(60)
        assert await world.placed("p") == {"p": ""}


@virtual
async def test_a_bind_that_fails_is_tried_again_with_growing_pauses() -> None:
    """The third try succeeds, a second and then two after the one before; the status tells how many failed."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        left = [2]
        tried: list[float] = []

        def fault(sent: Request) -> Response | None:
            if not sent.path.endswith("/binding"):
                return None
            tried.append(asyncio.get_running_loop().time())
            if not left[0]:
                return None
            left[0] -= 1
            return broken("Conflict", 409)

        world.transport.fault = fault
        await request(world, await pod(world))
        await asyncio.sleep(30)
        assert await world.placed("p") == {"p": "n1"}
        assert (await outcome(world))[0::2] == ("Succeeded", 2)
        assert [round(moment - tried[0]) for moment in tried] == [0, 1, 3]


@virtual
async def test_a_pod_that_can_never_be_bound_delays_nobody() -> None:
    """It fails as often as it may and then stays failed; another bind goes through meanwhile."""
    async with stage(*PARTS) as world:
        await world.node("n1")

        def fault(sent: Request) -> Response | None:
            return broken("Forbidden", 403) if "/pods/bad/binding" in sent.path else None

        world.transport.fault = fault
        await request(world, await pod(world, "bad"))
        await request(world, await pod(world, "good"))
        await asyncio.sleep(1)
        assert await world.placed("") == {"bad": "", "good": "n1"}
        await asyncio.sleep(600)
        phase, reason, attempts = await outcome(world, "bad")
        assert (phase, attempts) == ("Failed", 3)
        assert "broken on purpose" in reason
        bad = await world.client.get(Pod, ("default", "bad"))
        assert ("PodBound", "False") in [(condition.type, condition.status) for condition in bad.status.conditions]


@virtual
async def test_a_bind_that_works_in_the_end_takes_back_the_bad_news() -> None:
    """The pod's condition says so, and an event does."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        world.transport.fault = lambda sent: broken("Forbidden", 403) if sent.path.endswith("/binding") else None
        await request(world, await pod(world))
        await asyncio.sleep(60)
        assert await bound_condition(world) == ("False", "BindingError")
        world.transport.fault = lambda sent: None
        await world.client.delete(BindRequest, ("default", "p"))
        await request(world, await world.client.get(Pod, ("default", "p")))
        await asyncio.sleep(1)
        assert await bound_condition(world) == ("True", "Bound")


async def bound_condition(world: Stage) -> tuple[str, str]:
    """What the pod says about being bound."""
    condition = find((await world.client.get(Pod, ("default", "p"))).status.conditions, "PodBound")
    assert condition is not None
    return condition.status, condition.reason


@virtual
async def test_a_node_that_went_fails_the_bind() -> None:
    """The reason names the node."""
    async with stage(*PARTS) as world:
        await request(world, await pod(world), node="vanished")
        await asyncio.sleep(60)
        assert (await outcome(world))[:2] == ("Failed", "node vanished is not there any more")


async def sharing(world: Stage, name: str = "p", group: str = "g1") -> None:
    """A pod that shares a GPU, and the decision about it."""
    annotations = {"gpu_fraction": "0.5", "runai__shared_gpu_configmap": f"{name}-shared-gpu"}
    wanted = await pod(world, name, **annotations)
    await request(
        world,
        wanted,
        decision=(name, 1),
        receivedResourceType="Fraction",
        receivedGPU={"count": 1, "portion": "0.50"},
        selectedGPUGroups=[group],
    )


@virtual
async def test_a_shared_gpu_is_reserved_and_let_go() -> None:
    """One reservation for two users; the pods learn their device; the last user takes the reservation along."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_reservations(world)
        await sharing(world, "a")
        await sharing(world, "b")
        await asyncio.sleep(1)
        assert len(await reserved(world)) == 1
        await tell_device(world)
        await asyncio.sleep(1)
        assert await world.placed("") == {"a": "n1", "b": "n1"}
        config = await world.client.get(ConfigMap, ("default", "a-shared-gpu-0-evar"))
        assert config.data == {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}
        pod = await world.client.get(Pod, ("default", "a"))
        assert pod.metadata.labels["runai-gpu-group"] == "g1"
        for name in ("a", "b"):
            await world.client.delete(Pod, ("default", name), grace_seconds=0)
            await world.client.delete(BindRequest, ("default", name))
        await asyncio.sleep(1)
        assert await reserved(world) == []


@virtual
async def test_a_predicted_numa_placement_is_told() -> None:
    """The kubelet's own choice can be held against it."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        zones = [{"zone": "node-0", "amount": {"cpu": "4"}}]
        await request(world, await pod(world), predictedNUMAZones=zones)
        await asyncio.sleep(1)
        bound = await world.client.get(Pod, ("default", "p"))
        assert json.loads(bound.metadata.annotations["kai.scheduler/numa-placement-predicted"]) == zones


def test_reservation_pods_are_made_as_config_says() -> None:
    """Runtime class, resources and both security contexts."""
    settings = ReservationSettings(
        runtime_class="nvidia",
        resources={"memory": "64Mi"},
        pod_security_context={"fsGroup": 7},
        container_security_context={"runAsUser": 8},
    )
    made = reservation_pod(NODE, "g1", make.pod("p").typed(Pod), settings)
    spec = made["spec"]
    assert (spec["runtimeClassName"], spec["securityContext"]) == ("nvidia", {"fsGroup": 7})
    assert spec["containers"][0]["securityContext"] == {"runAsUser": 8}
    assert spec["containers"][0]["args"] == ["run", "reservation", "--no-leader-election"]
    assert spec["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1", "memory": "64Mi"}


def test_a_reservation_pod_could_do_all_that_its_image_may() -> None:
    """Without a word in Config it gains no privileges and has no capabilities."""
    made = reservation_pod(NODE, "g1", make.pod("p").typed(Pod), ReservationSettings())
    security = made["spec"]["containers"][0]["securityContext"]
    assert (security["allowPrivilegeEscalation"], security["capabilities"]) == (False, {"drop": ["ALL"]})


def test_a_reservation_of_a_fake_gpu_asks_no_driver() -> None:
    """On nodes of the fake GPU operator that operator tells the GPU."""
    fake = make.node("n1").label("run.ai/fake.gpu", "true").typed(Node)
    (container,) = reservation_pod(fake, "g1", make.pod("p").typed(Pod), ReservationSettings())["spec"]["containers"]
    assert (container["command"], "args" in container) == (["sleep", "infinity"], False)


@pytest.mark.parametrize(
    ("label", "portion", "mebibytes"),
    [("80000", "0.25", 20000), ("11441", "0.50", 5720), ("", "0.5", 0), ("x", "1", 0)],
)
def test_the_memory_of_a_portion(label: str, portion: str, mebibytes: int) -> None:
    """Whole mebibytes of what the node says its GPUs have."""
    node = make.node("n").label("nvidia.com/gpu.memory", label).build()
    assert memory_of(convert(Node, node), portion) == mebibytes


@virtual
async def test_a_reservation_outlives_a_watch_that_is_behind() -> None:
    """A request that succeeded for a pod without a node keeps its device; a pod that has ended does not."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_reservations(world)
        wanted = await pod(world)
        await world.client.create(Pod, reservation_pod(NODE, "g1", wanted, ReservationSettings()), RESERVATIONS)
        made = [each.uid for each in await reserved(world)]
        # Half of a decision, so that the binder leaves it alone.
        await request(world, wanted, decision=("d", 2), receivedResourceType="Fraction", selectedGPUGroups=["g1"])
        done = {"status": {"phase": "Succeeded"}}
        await world.client.patch(BindRequest, ("default", "p"), done, subresource="status")
        await asyncio.sleep(60)
        assert [each.uid for each in await reserved(world)] == made
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        await world.client.call("POST", "/api/v1/namespaces/default/pods/p/binding", body=binding)
        await world.client.patch(Pod, ("default", "p"), {"metadata": {"labels": {"runai-gpu-group": "g1"}}})
        await asyncio.sleep(60)
        assert [each.uid for each in await reserved(world)] == made
        await world.client.patch(Pod, ("default", "p"), {"status": {"phase": "Succeeded"}}, subresource="status")
        await asyncio.sleep(1)
        assert await reserved(world) == []


@virtual
async def test_a_pod_had_the_binder_write_and_delete_a_config_map_of_its_choice() -> None:
    """Its annotation names the map: one that belongs to no pod is left alone, and the bind fails and says why."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_reservations(world)
        theirs = {"metadata": {"name": "a-shared-gpu-0"}, "data": {"theirs": "yes"}}
        await world.client.create(ConfigMap, theirs, "default")
        await sharing(world, "a")
        await asyncio.sleep(1)
        await tell_device(world)
        await asyncio.sleep(600)
        config_map = await world.client.get(ConfigMap, ("default", "a-shared-gpu-0"))
        assert config_map.data == {"theirs": "yes"}
        phase, reason, _ = await outcome(world, "a")
        assert phase == "Failed"
        assert "ConfigMap a-shared-gpu-0 belongs to no pod" in reason


async def leaked(world: Stage) -> list[str]:
    """What a failed bind left behind."""
    pod = await world.client.get(Pod, ("default", "p"))
    left = [f"label {key}" for key in pod.metadata.labels if key.startswith("runai-gpu-group")]
    left += [f"reservation {each.name}" for each in await reserved(world)]
    maps = (await world.client.list(ConfigMap, "default")).items
    left += [f"config map {each.name}" for each in maps if "shared-gpu" in each.name]
    return left


@virtual
async def test_a_reservation_that_never_tells_its_gpu_fails_the_bind_and_goes() -> None:
    """The pod keeps no label, the reservation no device."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_reservations(world)
        await sharing(world)
        await asyncio.sleep(600)
        phase, reason, _ = await outcome(world)
        assert phase == "Failed"
        assert "told no GPU within 40 s" in reason
        assert await leaked(world) == []


@virtual
async def test_a_reservation_that_the_kubelet_refuses_fails_the_bind_at_once() -> None:
    """Somebody else took the GPU in the same moment: the reason says so, and the next try makes a new reservation."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_reservations(world)
        await sharing(world)
        await asyncio.sleep(0.5)
        (first,) = await reserved(world)
        status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no GPU is left"}
        await world.client.patch(Pod, (RESERVATIONS, first.name), {"status": status}, subresource="status")
        await asyncio.sleep(0.5)
        phase, reason, attempts = await outcome(world)
        assert (phase, attempts) == ("Failed", 1)
        assert reason.endswith("failed: UnexpectedAdmissionError: no GPU is left")
        await asyncio.sleep(2)
        await tell_device(world)
        await asyncio.sleep(2)
        assert (await outcome(world))[0] == "Succeeded"


@pytest.mark.parametrize("step", ["pods/p?label", "configmaps", "pods/p/binding"])
@virtual
async def test_an_error_at_any_step_leaves_nothing(step: str) -> None:
    """Whatever was prepared is taken back: labels, config maps, the reservation."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_reservations(world)

        def fault(sent: Request) -> Response | None:
            target = "/pods/p" if step == "pods/p?label" else f"/{step}"
            method = "PATCH" if step == "pods/p?label" else "POST"
            hit = sent.path.endswith(target) and sent.method == method and b"null" not in sent.body
            return broken("Forbidden", 403) if hit else None

        world.transport.fault = fault
        await sharing(world)
        for _ in range(30):
            await asyncio.sleep(1)
            await tell_device(world)
        phase, reason, attempts = await outcome(world)
        assert (phase, attempts) == ("Failed", 3)
        assert "broken on purpose" in reason
        assert await leaked(world) == []


async def claiming(world: Stage) -> None:
    """A pod with a device claim, and the decision about it."""
    built = make.pod("p").scheduler("kai-scheduler").build()
    built["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    wanted = await world.client.create(Pod, built, "default")
    await request(world, wanted, resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}])


@virtual
async def test_a_device_claim_is_allocated_and_reserved_for_the_pod() -> None:
    """The claim says what it got and who uses it."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await claim(world, "c")
        await claiming(world)
        await asyncio.sleep(1)
        assert await world.placed("p") == {"p": "n1"}
        live_claim = await world.client.get(ResourceClaim, ("default", "c"))
        assert [consumer.name for consumer in live_claim.status.reserved_for] == ["p"]
        assert live_claim.status.allocation is not None


@virtual
async def test_a_claim_that_went_to_others_meanwhile_fails_the_bind() -> None:
    """An allocation that differs from the decision is not overwritten."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        other = {"devices": {"results": [{**ALLOCATION["devices"]["results"][0], "device": "gpu-7"}]}}
        await claim(world, "c", allocation=other)
        await claiming(world)
        await asyncio.sleep(60)
        assert "allocated otherwise" in (await outcome(world))[1]
        assert (await world.client.get(ResourceClaim, ("default", "c"))).status.reserved_for == ()


@virtual
async def test_a_claim_is_given_back_where_the_bind_fails() -> None:
    """Neither the allocation nor the consumer stays."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await claim(world, "c")
        world.transport.fault = lambda sent: broken("Forbidden", 403) if sent.path.endswith("/binding") else None
        await claiming(world)
        await asyncio.sleep(60)
        assert (await outcome(world))[0] == "Failed"
        live_claim = await world.client.get(ResourceClaim, ("default", "c"))
        assert (live_claim.status.allocation, live_claim.status.reserved_for) == (None, ())


async def with_volume(world: Stage, claim_class: str = "local") -> None:
    built = make.pod("p").scheduler("kai-scheduler").build()
    built["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    wanted = await world.client.create(Pod, built, "default")
    await request(world, wanted)


@virtual
async def test_a_missing_volume_claim_fails_the_bind() -> None:
    """The reason names the claim."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await with_volume(world)
        await asyncio.sleep(60)
        assert (await outcome(world))[:2] == ("Failed", "claim data is not there")


@virtual
async def test_a_volume_of_the_node_is_held_for_its_claim() -> None:
    """The smallest that fits, reachable from the node; a bind that fails lets go of it."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        for name, size, node in (("far", "10Gi", "n2"), ("large", "50Gi", "n1"), ("small", "10Gi", "n1")):
            terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
            spec = {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            }
            await world.client.create(PersistentVolume, {"metadata": {"name": name}, "spec": spec})
            patch = {"status": {"phase": "Available"}}
            await world.client.patch(PersistentVolume, name, patch, subresource="status")
        wanted = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "5Gi"}},
        }
        await world.client.create(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": wanted}, "default")
        await with_volume(world)
        await asyncio.sleep(1)
        held = {each.name: each.spec.claim_ref for each in (await world.client.list(PersistentVolume)).items}
        assert held["small"] is not None
        assert held["small"].name == "data"
        assert (held["large"], held["far"]) == (None, None)
        await asyncio.sleep(1000)
        assert "was not bound within 120 s" in (await outcome(world))[1]
        released = await world.client.get(PersistentVolume, "small")
        assert released.spec.claim_ref is None

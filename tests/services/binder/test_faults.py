"""The binder's fault table: every write of every kind of bind fails, once or for good, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest

from spinney.api.core import ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Json
from spinney.api.resource import ResourceClaim
from spinney.kube.client.transport import Request, Response
from tests import make
from tests.services.binder.binding import (
    ALLOCATION,
    DECIDED,
    PARTS,
    _sharing,
    _with_claim,
    claim,
    made_volume,
    one_device,
    outcome,
    pod,
    request,
    reserved,
    tell_device,
)
from tests.services.stage import Stage, broken, stage
from tests.virtual_time import virtual


async def plain(world: Stage) -> None:
    """Nothing but the binding."""
    await request(world, await pod(world))


async def two_devices(world: Stage) -> None:
    """A part of two GPUs each."""
    await _sharing(world, "g1", "g2")


async def claimed(world: Stage) -> None:
    """Two device claims."""
    built = make.pod("p").scheduler("kai-scheduler").build()
    built["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in ("c1", "c2")]
    for name in ("c1", "c2"):
        await claim(world, name)
    wanted = await world.client.create(Pod, built, "default")
    await request(
        world,
        wanted,
        resourceClaimAllocations=[{"name": name, "allocation": ALLOCATION} for name in ("c1", "c2")],
    )


async def extended(world: Stage) -> None:
    """Devices behind an extended resource."""
    await request(world, await pod(world), extendedResourceClaimAllocation=DECIDED)


async def local_volume(world: Stage) -> None:
    """A volume that is there already."""
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/data"},
        "nodeAffinity": {
            "required": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}
                ]
            }
        },
    }
    await world.client.create(PersistentVolume, {"metadata": {"name": "v"}, "spec": spec})
    await world.client.patch(PersistentVolume, "v", {"status": {"phase": "Available"}}, subresource="status")
    await _with_claim(world, "local")


@dataclass(frozen=True)
class Case:
    """A kind of bind, and what it writes when all goes well."""

    begin: Callable[[Stage], Awaitable[None]]
    writes: Sequence[str]


POD, BINDING, STATUS = "PATCH pods/p", "POST p/binding", "PATCH p/status"
RESERVATION, MAP = "POST kai-resource-reservation/pods", "POST default/configmaps"
CASES = (
    Case(plain, (BINDING, STATUS)),
    Case(one_device, (RESERVATION, POD, MAP, MAP, BINDING, STATUS)),
    Case(two_devices, (RESERVATION, RESERVATION, POD, MAP, MAP, BINDING, STATUS)),
    Case(claimed, ("PATCH c1/status", "PATCH c2/status", BINDING, STATUS)),
    Case(extended, ("POST default/resourceclaims", "PATCH claim/status", STATUS, BINDING, STATUS)),
    Case(local_volume, ("PATCH persistentvolumes/v", BINDING, STATUS)),
    Case(made_volume, ("PATCH persistentvolumeclaims/data", BINDING, STATUS)),
)
EVERY_WRITE = [
    pytest.param(case, at, id=f"{case.begin.__name__}, {write} ({at})")
    for case in CASES
    for at, write in enumerate(case.writes)
]
# The last one tells of success: after it there is nothing to take back.
BEFORE_THE_END = [param for param in EVERY_WRITE if param.values[1] < len(param.values[0].writes) - 1]


def spelled(sent: Request) -> str:
    """A write in short."""
    parts = sent.path.split("/")
    if "extended-resources" in sent.path and parts[-1] == "status":
        return f"{sent.method} claim/status"
    return f"{sent.method} {'/'.join(parts[-2:])}"


class Faults:
    """Lets the write at one place of the good order fail: the first time, or whenever it is tried."""

    def __init__(self, order: Sequence[str], at: int, often: bool) -> None:
        self._wanted = order[at]
        # The how-manieth of its kind.
        self._nth = order[:at].count(self._wanted)
        self._often = often
        self._seen = 0
        self.hits = 0

    def __call__(self, sent: Request) -> Response | None:
        if spelled(sent) != self._wanted or _takes_back(sent):
            return None
        self._seen += 1
        if self._seen <= self._nth or (self.hits and not self._often):
            return None
        self.hits += 1
        return broken("Forbidden", 403)


def _takes_back(sent: Request) -> bool:
    """Whether a write undoes another, or tells of a failure: those are let through, they are what is looked at."""
    if b'"Succeeded"' in sent.body:
        return False
    return b":null" in sent.body or b'"Failed"' in sent.body or b"PodBound" in sent.body


async def others_play_along(world: Stage, seconds: int) -> None:
    """Time passes; the process in a reservation pod and the volume controllers do their part."""
    for _ in range(seconds):
        await asyncio.sleep(1)
        await tell_device(world)
        for volume_claim in (await world.client.list(PersistentVolumeClaim, "default")).items:
            held = any(v.spec.claim_ref is not None for v in (await world.client.list(PersistentVolume)).items)
            if held or "volume.kubernetes.io/selected-node" in volume_claim.metadata.annotations:
                patch = {"status": {"phase": "Bound"}}
                await world.client.patch(
                    PersistentVolumeClaim, ("default", volume_claim.name), patch, subresource="status"
                )


async def left_behind(world: Stage) -> list[str]:
    """What a bind made and did not take back; a volume that was bound stays bound, as Kubernetes has it."""
    pod = await world.client.get(Pod, ("default", "p"))
    left = [f"label {key}" for key in pod.metadata.labels if key.startswith("runai-gpu-group")]
    left += [f"reservation {each.name}" for each in await reserved(world)]
    left += [m.name for m in (await world.client.list(ConfigMap, "default")).items if "shared-gpu" in m.name]
    for each in (await world.client.list(ResourceClaim, "default")).items:
        if "extended" in each.name or each.status.allocation is not None or each.status.reserved_for:
            left.append(f"claim {each.name}")
    if pod.status.extended_resource_claim_status is not None:
        left.append("extended claim in status")
    return left


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.begin.__name__)
@virtual
async def test_the_table_knows_every_write(case: Case) -> None:
    """What a good bind writes, and in which order, is what the table below lets fail."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        written: list[str] = []
        world.transport.fault = lambda sent: written.append(spelled(sent)) if "/events" not in sent.path else None
        await case.begin(world)
        await others_play_along(world, 10)
        assert (await outcome(world))[0] == "Succeeded"
        assert written == list(case.writes)


@pytest.mark.parametrize(("case", "at"), EVERY_WRITE)
@virtual
async def test_a_write_that_fails_once_is_made_good(case: Case, at: int) -> None:
    """The next try succeeds, and the status says that one failed."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        world.transport.fault = fault = Faults(case.writes, at, often=False)
        await case.begin(world)
        await others_play_along(world, 30)
        assert fault.hits == 1
        assert await world.placed("p") == {"p": "n1"}
        phase, _, attempts = await outcome(world)
        # The last write is the report itself: the bind did not fail.
        assert (phase, attempts) == ("Succeeded", 0 if at == len(case.writes) - 1 else 1)


@pytest.mark.parametrize(("case", "at"), BEFORE_THE_END)
@virtual
async def test_a_write_that_always_fails_leaves_nothing(case: Case, at: int) -> None:
    """The request ends as failed with the reason; no reservation, label, map, claim or mark stays; others are bound."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        world.transport.fault = Faults(case.writes, at, often=True)
        await case.begin(world)
        await request(world, await pod(world, "other"), decision=("other", 1))
        await others_play_along(world, 30)
        phase, reason, attempts = await outcome(world)
        assert (phase, attempts) == ("Failed", 3)
        assert "broken on purpose" in reason
        assert await left_behind(world) == []
        assert await world.placed("") == {"p": "", "other": "n1"}


@pytest.mark.parametrize(("case", "at"), EVERY_WRITE)
@virtual
async def test_a_pod_that_goes_at_any_moment_leaves_nothing(case: Case, at: int) -> None:
    """Deleted just before any of the writes, the pod takes all with it, claims and reservations included."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        seen: list[str] = []

        async def at_that_moment(sent: Request) -> None:
            if "/events" in sent.path:
                return
            seen.append(spelled(sent))
            if len(seen) == at + 1:
                await world.client.delete(Pod, ("default", "p"), grace_seconds=0)

        world.transport.before = at_that_moment
        await case.begin(world)
        await others_play_along(world, 60)
        assert seen[: at + 1] == list(case.writes[: at + 1])
        assert [holder.name for holder in await reserved(world)] == []
        for each in (await world.client.list(ResourceClaim, "default")).items:
            # A pod that was bound already is the claim controller's to clean up after.
            if seen[: at + 1][-1] != STATUS:
                assert (each.name, each.status.reserved_for) == (each.name, ())


# A local volume is on one node only.
@pytest.mark.parametrize(("case", "at"), [p for p in BEFORE_THE_END if p.values[0].begin is not local_volume])
@virtual
async def test_what_could_not_be_taken_back_is_mended_by_the_next_decision(case: Case, at: int) -> None:
    """With every undoing refused as well, a second decision, for another node, ends right and nothing old stays."""
    async with stage(*PARTS) as world:
        await world.node("n1")
        await world.node("n2")
        fault = Faults(case.writes, at, often=True)

        def refused(sent: Request) -> Response | None:
            back = _takes_back(sent) and b'"Failed"' not in sent.body
            return broken("Forbidden", 403) if sent.method == "DELETE" or back else fault(sent)

        world.transport.fault = refused
        await case.begin(world)
        await others_play_along(world, 30)
        assert (await outcome(world))[::2] == ("Failed", 3)
        world.transport.fault = lambda sent: None
        await _decide_again(world)
        await others_play_along(world, 30)
        assert (await outcome(world))[0] == "Succeeded"
        assert await world.placed("p") == {"p": "n2"}
        pod = await world.client.get(Pod, ("default", "p"))
        groups = {value for key, value in pod.metadata.labels.items() if key.startswith("runai-gpu-group")}
        assert groups == ({"g9"} if case.begin in (one_device, two_devices) else set())
        assert {each.spec.node_name for each in await reserved(world)} <= {"n2"}
        for each in (await world.client.list(ResourceClaim, "default")).items:
            assert each.status.allocation is not None
            assert [result.pool for result in each.status.allocation.devices.results] == ["n2"]


async def _decide_again(world: Stage) -> None:
    """What the scheduler does about a request that failed for good: another node, other devices."""
    old: Json = await world.client.get(BindRequest.resource, ("default", "p"))
    await world.client.delete(BindRequest, ("default", "p"))
    spec: Json = {**old["spec"], "selectedNode": "n2"}
    if "selectedGPUGroups" in spec:
        spec["selectedGPUGroups"] = ["g9"]
    allocations = [spec.get("extendedResourceClaimAllocation"), *spec.get("resourceClaimAllocations", [])]
    for each in filter(None, allocations):
        for result in each["allocation"]["devices"]["results"]:
            result["pool"] = "n2"
    metadata = {key: old["metadata"][key] for key in ("name", "ownerReferences", "annotations")}
    await world.client.create(BindRequest, {"metadata": metadata, "spec": spec}, "default")

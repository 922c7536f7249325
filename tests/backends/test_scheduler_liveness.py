"""A scheduler that says nothing about pods it could place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.interface import Readiness
from spinney.backends.kai import BACKEND
from spinney.backends.scheduler_liveness import SchedulerLiveness
from spinney.embedded.cluster import Cluster
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.runtime import Runtime
from tests import make

SYNCED = Readiness(True, "Synced")
GANG = make.gang("a-0").group("w", 1).typed(PodGang)


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


def pod(*conditions: Json, **spec: object) -> Pod:
    """A pod that is free to be placed."""
    builder = make.pod("a-0-w-0").scheduler("kai-scheduler").metadata(uid="p1").spec(**spec)
    return builder.status(phase="Pending", conditions=list(conditions)).typed(Pod)


async def reason_after(seconds: float, watched: Pod, client: Client) -> tuple[str, float | None]:
    """What a gang is told after its pod was free for so long, and when to look again."""
    watch = Watch()
    liveness = SchedulerLiveness(Runtime(client=client, caches=Caches(client), clock=watch), BACKEND)
    await liveness.checked(GANG, [watched], SYNCED)
    watch.time += timedelta(seconds=seconds)
    readiness, again = await liveness.checked(GANG, [watched], SYNCED)
    return readiness.reason, again


async def test_thirty_seconds_without_a_sign_of_life_are_told() -> None:
    """No condition, no event, no lease."""
    async with Cluster() as cluster:
        assert await reason_after(10, pod(), cluster.client()) == ("Synced", 20.0)
        assert await reason_after(30, pod(), cluster.client()) == ("SchedulerSilent", 30.0)


async def test_a_word_about_a_pod_is_a_sign_of_life() -> None:
    """Unschedulable is an answer; being gated is said by the API server and tells nothing."""
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    held = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    async with Cluster() as cluster:
        assert await reason_after(60, pod(refused), cluster.client()) == ("Synced", None)
        assert (await reason_after(60, pod(held), cluster.client()))[0] == "SchedulerSilent"


async def test_pods_that_are_gated_or_placed_are_nobodys_silence() -> None:
    """Only pods that are free to be placed count."""
    async with Cluster() as cluster:
        assert await reason_after(60, pod(nodeName="n"), cluster.client()) == ("Synced", None)
        assert await reason_after(60, pod(schedulingGates=[{"name": "g"}]), cluster.client()) == ("Synced", None)


async def test_a_fresh_lease_is_a_sign_of_life() -> None:
    """Whatever namespace the scheduler keeps it in."""
    lease = {
        "metadata": {"name": "kai-scheduler"},
        "spec": {"renewTime": "2026-01-01T00:00:50.000000Z", "leaseDurationSeconds": 15},
    }
    async with Cluster() as cluster:
        client = cluster.client()
        await client.call("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", body=lease)
        assert (await reason_after(60, pod(), client))[0] == "Synced"
        assert (await reason_after(90, pod(), client))[0] == "SchedulerSilent"


async def test_an_event_of_a_scheduler_is_a_sign_of_life_and_ours_is_not() -> None:
    """The operator speaks of pods too."""
    async with Cluster() as cluster:
        client = cluster.client()
        for author, expected in (("grove-operator", "SchedulerSilent"), ("kai-scheduler", "Synced")):
            event = {
                "metadata": {"name": author},
                "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a-0-w-0", "uid": "p1"},
                "reason": "Said",
                "reportingComponent": author,
                "source": {"component": author},
            }
            await client.call("POST", "/api/v1/namespaces/default/events", body=event)
            assert (await reason_after(60, pod(), client))[0] == expected

"""Simulated kubelets on the embedded API server, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spinney.api.core import ConfigMap, Container, Event, Node, Pod
from spinney.api.meta import Json
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.cluster import Cluster
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response
from tests import make
from tests.embedded.virtual import CA, after, condition, get, on_cluster, phase, pod, run


def sleeper(name: str, *command: str, policy: str = "Never") -> make.PodBuilder:
    """A pod on the first node with a command."""
    builder = make.pod(name).on("node-00")
    builder.object["spec"]["restartPolicy"] = policy
    if command:
        builder.object["spec"]["containers"][0]["command"] = list(command)
    return builder


@on_cluster()
async def test_a_bound_pod_runs_and_one_write_says_so(cluster: Cluster) -> None:
    """Running and Ready come in the same patch, and nothing is written at rest."""
    await pod(cluster, sleeper("a").build())
    await after(3600)
    assert await phase(cluster, "a") == "Running"
    assert await condition(cluster, "a", "Ready") == "True"
    assert cluster.kubelets.writes.of("Pod") == 1


@pytest.mark.parametrize("command", [("sleep", "30"), ("sh", "-c", "sleep 30")])
@on_cluster()
async def test_sleep_ends_after_its_time_with_code_0(cluster: Cluster, command: tuple[str, ...]) -> None:
    """Not before, and with Succeeded."""
    await pod(cluster, sleeper("a", *command).build())
    await after(29.9)
    assert await phase(cluster, "a") == "Running"
    await after(0.2)
    assert await phase(cluster, "a") == "Succeeded"


@pytest.mark.parametrize(
    ("annotations", "policy", "seconds", "expected", "ready"),
    [
        ({"start-after": "10s"}, "Always", 9, "Pending", "False"),
        ({"start-after": "10s"}, "Always", 11, "Running", "True"),
        ({"start-after": "never"}, "Always", 86400, "Pending", "False"),
        ({"ready-after": "10s"}, "Always", 9, "Running", "False"),
        ({"ready-after": "10s"}, "Always", 11, "Running", "True"),
        ({"ready-after": "never"}, "Always", 86400, "Running", "False"),
        ({"run-for": "10s"}, "Never", 11, "Succeeded", "False"),
        ({"run-for": "10s", "exit-code": "3"}, "Never", 11, "Failed", "False"),
        ({"run-for": "10s", "exit-code": "3"}, "Always", 86400, "Running", "False"),
        ({"run-for": "1s", "crashes": "2"}, "Always", 60, "Running", "True"),
    ],
)
@on_cluster()
async def test_annotations_write_the_script(
    cluster: Cluster, annotations: dict[str, str], policy: str, seconds: float, expected: str, ready: str
) -> None:
    """Pods start, get ready, finish, crash, hang or never become ready as annotations say."""
    builder = sleeper("a", policy=policy)
    for key, value in annotations.items():
        builder.annotate(f"spinney.dev/{key}", value)
    await pod(cluster, builder.build())
    await after(seconds)
    assert (await phase(cluster, "a"), await condition(cluster, "a", "Ready")) == (expected, ready)


@on_cluster()
async def test_a_crash_loop_is_shown_as_one(cluster: Cluster) -> None:
    """CrashLoopBackOff, the count of restarts, and how the last run ended."""
    await pod(cluster, sleeper("a", policy="Always").annotate("spinney.dev/exit-code", "3").build())
    await after(5)
    (status,) = (await get(cluster, Pod.resource, "a"))["status"]["containerStatuses"]
    assert status["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 3


@on_cluster()
async def test_a_bad_annotation_fails_the_pod_with_a_hint(cluster: Cluster) -> None:
    """The pod's message says what to write instead."""
    await pod(cluster, sleeper("a").annotate("spinney.dev/run-for", "soon").build())
    await after(1)
    status = (await get(cluster, Pod.resource, "a"))["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidAnnotation")
    assert "write seconds" in status["message"]


def test_programs_of_init_containers_really_gate_the_start() -> None:
    """The pod waits for the coroutine that stands for the program; a failure is tried again."""
    finished = asyncio.Event()
    codes = iter([1, 0])

    async def wait(client: Client, made: Pod, container: Container) -> int:
        assert (made.name, container.args) == ("a", ("--podcliques=x:1",))
        await finished.wait()
        return next(codes)

    async def test(cluster: Cluster) -> None:
        body = sleeper("a", policy="Always").build()
        body["spec"]["initContainers"] = [
            {"name": "order", "image": "x", "command": ["/usr/bin/spinney", "initc"], "args": ["--podcliques=x:1"]}
        ]
        await pod(cluster, body)
        await after(600)
        assert await phase(cluster, "a") == "Pending"
        assert await condition(cluster, "a", "Initialized") == "False"
        finished.set()
        await after(60)
        assert await phase(cluster, "a") == "Running"

    run(test, programs={"spinney initc": wait})


def test_an_init_program_that_ended_while_its_start_was_written_was_forgotten() -> None:
    """What happens to a pod while a report on it is under way is told by the next one."""

    class Slow(ApiServer):
        """Answers a report a second after it took it."""

        async def handle(self, request: Request) -> Response:
            response = await super().handle(request)
            if request.method == "PATCH" and request.path.endswith("/status"):
                await asyncio.sleep(1)
            return response

    async def at_once(client: Client, made: Pod, container: Container) -> int:
        return 0

    async def test(cluster: Cluster) -> None:
        body = sleeper("a", policy="Always").build()
        body["spec"]["initContainers"] = [{"name": "order", "image": "x", "command": ["spinney", "initc"]}]
        await pod(cluster, body)
        await after(60)
        assert await phase(cluster, "a") == "Running"

    run(test, programs={"spinney initc": at_once}, server=Slow)


@pytest.mark.parametrize(("stop_after", "grace", "gone_after"), [("5s", 30, 5), ("never", 7, 7), (None, 30, 0)])
@on_cluster()
async def test_termination_honours_grace(
    cluster: Cluster, stop_after: str | None, grace: int, gone_after: float
) -> None:
    """A pod goes when it has stopped, at the latest when its grace period is over."""
    builder = sleeper("a")
    if stop_after:
        builder.annotate("spinney.dev/stop-after", stop_after)
    await pod(cluster, builder.build())
    await after(1)
    await cluster.client().delete(Pod, ("default", "a"), grace_seconds=grace)
    if gone_after:
        await after(gone_after - 0.5)
        assert await phase(cluster, "a") == "Running"
    await after(0.6)
    assert await phase(cluster, "a") == "gone"


@on_cluster()
async def test_a_held_pod_shows_how_it_ended(cluster: Cluster) -> None:
    """With a finalizer the pod stays, in a final phase, for whoever holds it to read."""
    body = sleeper("a").build()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await pod(cluster, body)
    await after(1)
    await cluster.client().delete(Pod, ("default", "a"))
    await after(60)
    assert await phase(cluster, "a") == "Failed"
    await cluster.client().patch(Pod, ("default", "a"), {"metadata": {"finalizers": None}})
    await after(1)
    assert await phase(cluster, "a") == "gone"


@on_cluster()
async def test_a_pod_that_does_not_fit_is_turned_away(cluster: Cluster) -> None:
    """A scheduler that gives out too much is found out by the kubelet."""
    await pod(cluster, sleeper("a").gpus(6).build())
    await pod(cluster, sleeper("b").gpus(4).build())
    await after(1)
    assert await phase(cluster, "a") == "Running"
    status = (await get(cluster, Pod.resource, "b"))["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfnvidia.com/gpu")


@on_cluster()
async def test_a_reservation_pod_tells_which_gpu_it_got(cluster: Cluster) -> None:
    """Its annotation gets the UUID of a device that no other pod of the node holds."""
    for name in ("a", "b"):
        await pod(cluster, sleeper(name).gpus(1).label("runai-gpu-group", name).build())
    await after(1)
    of_pods = [(await get(cluster, Pod.resource, name))["metadata"]["annotations"] for name in ("a", "b")]
    indexes = {annotations["run.ai/reserve_for_gpu_index"] for annotations in of_pods}
    assert len(indexes) == 2
    assert all(index.startswith("GPU-") for index in indexes)


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        ({"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}, True),
        ({"volumes": [{"name": "v", "configMap": {"name": "settings", "optional": True}}]}, False),
        ({"containers": [{"name": "m", "image": "x", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}, True),
    ],
)
@on_cluster()
async def test_a_pod_starts_when_what_it_refers_to_is_there(cluster: Cluster, spec: Json, waits: bool) -> None:
    """A ConfigMap or Secret that is not optional holds the start, and an event says which."""
    body = sleeper("a", policy="Always").build()
    body["spec"] |= spec
    await pod(cluster, body)
    await after(5)
    assert await phase(cluster, "a") == ("Pending" if waits else "Running")
    await cluster.client().create(ConfigMap, {"metadata": {"name": "settings"}}, "default")
    await after(5)
    assert await phase(cluster, "a") == "Running"
    events = (await cluster.client().list(Event, "default", fields="involvedObject.name=a")).items
    assert [event.message for event in events] == (['configmap "settings" not found'] if waits else [])


def kwok_node(name: str) -> Json:
    """A node as KWOK's users write it."""
    builder: Any = make.node(name, gpus=4).annotate("kwok.x-k8s.io/node", "fake")
    body: Json = builder.build()
    body["status"].pop("conditions")
    return body


@on_cluster()
async def test_a_node_made_for_kwok_is_simulated(cluster: Cluster) -> None:
    """It becomes ready, keeps what its user gave it, and runs pods."""
    await cluster.client().create(Node, kwok_node("fake-1"))
    await pod(cluster, make.pod("a").on("fake-1").gpus(4).build())
    await after(1)
    node = await get(cluster, Node.resource, "fake-1")
    ready = next(c for c in node["status"]["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "True"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert await phase(cluster, "a") == "Running"


@on_cluster()
async def test_a_node_of_someone_else_is_left_alone(cluster: Cluster) -> None:
    """Without either annotation nothing is done to the node or its pods."""
    await cluster.client().create(Node, make.node("real-1").build())
    await pod(cluster, make.pod("a").on("real-1").build())
    await after(30)
    assert await phase(cluster, "a") == "Pending"


@on_cluster()
async def test_a_restarted_kubelet_goes_on_where_the_old_one_was(cluster: Cluster) -> None:
    """The status is memory enough: the pod ends at its time, under the same address, and is not started twice."""
    await pod(cluster, sleeper("a", "sleep", "100").build())
    await after(50)
    before = (await get(cluster, Pod.resource, "a"))["status"]
    second = Cluster(clock=cluster.clock, chance=cluster.chance, server=cluster.server, ca_certificate=CA)
    async with second:
        await after(30)
        now = (await get(cluster, Pod.resource, "a"))["status"]
        assert (now["podIP"], now["startTime"]) == (before["podIP"], before["startTime"])
        await after(21)
        assert await phase(cluster, "a") == "Succeeded"

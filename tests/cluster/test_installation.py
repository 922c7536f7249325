"""The life of one installation on a real cluster, in order: installed, used, broken, upgraded, taken away."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.image import default_image
from spinney.api.meta import Json
from spinney.testing.cluster.cluster import RealCluster
from spinney.testing.images.spinney import cached_archives, write_image
from tests.cluster.installing import NAMESPACE, RELEASE, RUNTIME_CLASS, Installation, uids
from tests.cluster.waiting import until
from tests.make import Builder, pcs, pod

PLACE = "life"
PREVIOUS = "0.0.1-previous"
# Ready while nobody has left a file beside it; a file that outlives the container makes it fail for good.
ROUTER = """
import http.server, os, threading
if os.path.exists("/state/broken"):
    raise SystemExit(1)
def watch():
    while not os.path.exists("/state/broken"):
        threading.Event().wait(0.2)
    os._exit(1)
threading.Thread(target=watch).start()
http.server.HTTPServer(("", 8080), http.server.BaseHTTPRequestHandler).serve_forever()
"""
# A worker looks up its router and both workers by the names of the headless Service.
WORKER = """
import socket, threading
for name in ("team-0-router-0", "team-0-workers-0", "team-0-workers-1"):
    while True:
        try:
            print(name, socket.gethostbyname(f"{name}.team-0"), flush=True)
            break
        except OSError:
            threading.Event().wait(0.2)
threading.Event().wait()
"""


def container(program: str, **more: Any) -> Json:
    """A container that runs a Python program of our image."""
    return {"name": "main", "image": default_image(), "command": ["python3", "-c", program], **more}


def team() -> Json:
    """A router, and two workers with a GPU each that start after it."""
    state = {"volumes": [{"name": "state", "emptyDir": {}}], "terminationGracePeriodSeconds": 1}
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    router = container(ROUTER, readinessProbe=probe, volumeMounts=[{"name": "state", "mountPath": "/state"}])
    worker = container(WORKER, resources={"limits": {labels.GPU_RESOURCE: "1"}})
    ours: Json = {"schedulerName": "kai-scheduler", "terminationGracePeriodSeconds": 1}
    made = (
        pcs("team", PLACE)
        .clique("router", **{**ours, **state}, containers=[router])
        .clique("workers", 2, **ours, containers=[worker])
        .build()
    )
    template = made["spec"]["template"]
    template["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    template["terminationDelay"] = "5s"
    template["cliques"][1]["spec"]["startsAfter"] = ["router"]
    return made


@pytest.fixture(scope="module")
def installation(real_cluster: RealCluster) -> Installation:
    """The previous version of ours, installed by the chart."""
    archive, _ = write_image(cached_archives(), PREVIOUS)
    real_cluster.load(archive)
    archive.unlink()
    made = Installation(real_cluster)
    made.install(f"image.tag={PREVIOUS}")
    real_cluster.apply(RUNTIME_CLASS, Builder("v1", "Namespace", PLACE).build())
    return made


async def test_every_deployment_becomes_available(installation: Installation) -> None:
    """The chart's Deployments come up, and those that the platform deploys from Config and shard."""
    image = default_image().rpartition(":")[0] + f":{PREVIOUS}"
    await installation.available(image=image)


async def test_gang_starts_in_order_and_finds_its_peers(installation: Installation) -> None:
    """Workers start after their router is ready, and all find each other by name."""
    installation.cluster.apply(team())
    pods = await installation.set_ready(PLACE, "team", 3)
    (router,) = [each for name, each in pods.items() if "router" in name]
    workers = [each for name, each in pods.items() if "workers" in name]
    (ready,) = [each for each in router["status"]["conditions"] if each["type"] == "Ready"]
    for worker in workers:
        started = worker["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        assert started >= ready["lastTransitionTime"]
        said = installation.cluster.kubectl("logs", worker["metadata"]["name"], "-n", PLACE, "-c", "main").split()
        assert said[0::2] == ["team-0-router-0", "team-0-workers-0", "team-0-workers-1"]
        assert set(said[1::2]) == {each["status"]["podIP"] for each in pods.values()}
    assert installation.cluster.kubectl("get", "pcs", "team", "-n", PLACE, "--no-headers").split()[2] == "1/1"


async def test_gang_whose_container_dies_is_started_anew(installation: Installation) -> None:
    """A router that cannot come back takes its gang along, which then starts as a whole."""
    before = await installation.set_ready(PLACE, "team", 3)
    (router,) = [name for name in before if "router" in name]
    installation.cluster.kubectl("exec", router, "-n", PLACE, "-c", "main", "--", "touch", "/state/broken")

    def replaced() -> bool:
        now = installation.ready_pods(PLACE, "team")
        return len(now) == 3 and not uids(now) & uids(before)

    await until(replaced, every=0.5, describe=lambda: installation.story(PLACE))


async def test_rolling_update(installation: Installation) -> None:
    """A change of the template reaches every pod."""
    before = await installation.set_ready(PLACE, "team", 3)
    changed = team()
    for clique in changed["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["containers"][0]["env"] = [{"name": "ROUND", "value": "2"}]
    installation.cluster.apply(changed)

    def updated() -> bool:
        now = installation.ready_pods(PLACE, "team")
        return len(now) == 3 and not uids(now) & uids(before) and all(map(_is_second_round, now.values()))

    await until(updated, every=0.5, describe=lambda: installation.story(PLACE))


async def test_fractions_share_one_gpu(installation: Installation) -> None:
    """Two halves run on one GPU, which a real reservation pod holds and tells; it goes when they go."""
    tell = "import os, threading; print(os.environ['NVIDIA_VISIBLE_DEVICES'], flush=True); threading.Event().wait()"
    for name in ("half-a", "half-b"):
        made = pod(name, PLACE).annotate(labels.GPU_FRACTION, "0.5").label("kai.scheduler/queue", labels.DEFAULT_QUEUE)
        spec = {"schedulerName": "kai-scheduler", "terminationGracePeriodSeconds": 1}
        installation.cluster.apply(made.spec(containers=[container(tell)], **spec).build())

    def halves() -> list[Json]:
        return [each for each in installation.items("pods", PLACE) if each["metadata"]["name"].startswith("half-")]

    def running() -> bool:
        return [each["status"].get("phase") for each in halves()] == ["Running", "Running"]

    await until(running, every=0.3, describe=lambda: installation.story(PLACE))
    (reservation,) = installation.items("pods", labels.RESERVATION_NAMESPACE)
    gpu = reservation["metadata"]["annotations"][labels.RESERVED_GPU]
    assert gpu.startswith("GPU-")
    assert reservation["status"]["phase"] == "Running"
    assert len({each["metadata"]["labels"][labels.GPU_GROUP] for each in halves()}) == 1
    for name in ("half-a", "half-b"):
        await until(lambda name=name: installation.cluster.kubectl("logs", name, "-n", PLACE).strip() == gpu, every=0.3)
    installation.cluster.kubectl("delete", "pod", "half-a", "half-b", "-n", PLACE)
    await until(lambda: not installation.items("pods", labels.RESERVATION_NAMESPACE), every=0.3)


async def test_upgrade_disturbs_no_gang(installation: Installation) -> None:
    """All components are replaced by those of a newer image, two of each; the pods of a gang stay as they are."""
    before = await installation.set_ready(PLACE, "team", 3)
    installation.install("replicas=2")
    await installation.available(replicas=2, image=default_image())
    assert _lives(installation.ready_pods(PLACE, "team")) == _lives(before)


async def test_killed_leader_is_replaced(installation: Installation) -> None:
    """A gang created in the second in which scheduler and operator lose their leaders still runs."""
    leases = json.loads(installation.cluster.kubectl("get", "leases", "-n", NAMESPACE, "-o", "json"))["items"]
    holders = {each["spec"].get("holderIdentity", "").partition("_")[0] for each in leases}
    leaders = [each for each in installation.items("pods", NAMESPACE) if each["metadata"]["name"] in holders]
    names = [each["metadata"]["name"] for each in leaders]
    assert any("scheduler" in name for name in names)
    installation.cluster.kubectl(
        "delete", "pod", "-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false", *names
    )
    second = team()
    second["metadata"]["name"] = "late"
    for clique in second["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["containers"][0]["command"][2] = ROUTER
        clique["spec"].pop("startsAfter", None)
    await until(lambda: _is_accepted(installation, second), every=0.2)
    await installation.set_ready(PLACE, "late", 3)
    installation.cluster.kubectl("delete", "pcs", "late", "-n", PLACE)


async def test_killed_kubelet_comes_back(installation: Installation) -> None:
    """A node whose kubelet is killed is told to be not ready; with the kubelet its pods are ready again."""
    node = installation.cluster.nodes[1]
    node.kill_kubelet()
    await until(lambda: node.name not in installation.cluster.ready_nodes(), every=0.5)
    node.start_kubelet()
    await until(lambda: node.name in installation.cluster.ready_nodes(), every=0.5)
    await installation.set_ready(PLACE, "team", 3)
    await installation.available(replicas=2)


async def test_install_again_changes_nothing(installation: Installation) -> None:
    """The same values once more conflict with nobody and restart nothing."""
    before = {each["metadata"]["name"]: each["metadata"]["generation"] for each in installation.deployments()}
    installation.install("replicas=2")
    after = {each["metadata"]["name"]: each["metadata"]["generation"] for each in installation.deployments()}
    assert after == before


async def test_uninstall_leaves_workloads_running(installation: Installation) -> None:
    """Nothing of ours runs afterwards, no webhook is left, and the gang's pods run on."""
    before = await installation.set_ready(PLACE, "team", 3)
    assert len(_cluster_wide(installation)) > 10
    installation.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")
    await until(lambda: not installation.items("pods", NAMESPACE), every=0.5, describe=installation.story)
    assert _lives(installation.ready_pods(PLACE, "team")) == _lives(before)
    await until(lambda: not _cluster_wide(installation), every=0.5)
    installation.cluster.kubectl("run", "plain", "-n", PLACE, f"--image={default_image()}", "--", "--version")


def _cluster_wide(installation: Installation) -> list[str]:
    """Webhooks and rights of ours: what could still act on others after we are gone."""
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings"
    found = installation.cluster.kubectl("get", kinds, "-o", "name").split()
    ours = ("spinney", "kai-", "grove", "podgroup", "binder")
    return [name for name in found if "/system:" not in name and any(word in name for word in ours)]


def _is_second_round(found: Json) -> bool:
    return {"name": "ROUND", "value": "2"} in found["spec"]["containers"][0].get("env", [])


def _lives(pods: dict[str, Json]) -> dict[str, tuple[str, int]]:
    return {
        name: (found["metadata"]["uid"], sum(each["restartCount"] for each in found["status"]["containerStatuses"]))
        for name, found in pods.items()
    }


def _is_accepted(installation: Installation, document: Json) -> bool:
    """Whether the set is stored: while the operator has no leader, its webhook may not answer."""
    try:
        installation.cluster.apply(document)
    except Exception:
        return False
    return True

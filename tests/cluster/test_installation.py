"""The life of one installation on a real cluster, in order: installed, used, broken, upgraded, taken away."""

from __future__ import annotations

import json

import pytest

from spinney.api import labels
from spinney.api.image import default_image
from spinney.api.meta import Json
from tests.cluster.guide import Guide
from tests.cluster.installing import NAMESPACE, NEXT, Installation, lives, uids
from tests.cluster.pods import pod_until, python_pod
from tests.cluster.rights import asked, granted, is_given_on, reason, served_kinds, unused, without_right
from tests.cluster.team import PLACE, ROUTER, container, scaled, team, version, waiting
from tests.cluster.waiting import until
from tests.docs.commands import ROOT
from tests.make import Builder, pcs, pod

GROUPS = "podgroups.scheduling.run.ai"
# The namespaces of our accounts.
OURS = (NAMESPACE, labels.RESERVATION_NAMESPACE, labels.SCALE_ADJUST_NAMESPACE)
SCALE_CONFIG = "/spec/template/podCliqueScalingGroups/0/scaleConfig"
LEVELS = [{"domain": "host", "key": "kubernetes.io/hostname"}]
READER = """
import ssl, urllib.error, urllib.request
for address in {addresses}:
    for token in ("{token}", "nobody"):
        request = urllib.request.Request(f"https://{{address}}:8080/metrics")
        request.add_header("authorization", "Bearer " + token)
        try:
            print(urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=60).status)
        except urllib.error.HTTPError as error:
            print(error.code)
"""


async def test_the_five_commands_of_the_guide(installation: Installation, guide: Guide) -> None:
    """Everything comes up, what the platform deploys included; a first gang runs, and nothing is found wrong."""
    *commands, last = [command.text for command in guide.five_commands()]
    for command in commands:
        guide.type(command)
    shown = guide.type(last)
    assert "podgang.scheduler.grove.io/first-0" in shown
    assert [line.split()[2] for line in shown.splitlines() if line.startswith("pod/first-0-")] == ["Running"] * 3
    guide.type("kubectl delete podcliqueset first")
    await installation.available(image=default_image())
    assert "✗" not in guide.follow("spinney doctor")
    report = json.loads(guide.type("spinney doctor -o json"))
    assert (report["healthy"], {each["status"] for each in report["findings"]} - {"ok", "note"}) == (True, set())


async def test_the_training_example_runs_as_it_is_written(installation: Installation) -> None:
    """GPUs under `requests` only, not preemptible by priority: two gangs run, for which another makes room."""
    kubectl, place = installation.cluster.kubectl, "ml-workspace"
    low = pod("low", PLACE).label(labels.QUEUE, labels.DEFAULT_QUEUE).gpus(8).scheduler(labels.KAI_SCHEDULER)
    installation.cluster.apply(low.spec(priorityClassName="train", containers=[waiting(8)]).build())
    kubectl("wait", "pod/low", "-n", PLACE, "--for=condition=Ready", "--timeout=600s")
    kubectl("apply", "-f", str(ROOT / "examples" / "training"))
    kubectl("wait", "pcs/ml-training", "-n", place, "--for=jsonpath={.status.ready}=2/2", "--timeout=600s")
    rows = kubectl("get", GROUPS, "-n", place, "--no-headers").splitlines()
    assert [row.split()[2:5] for row in rows] == [["default-queue", "4", "high-priority"]] * 2
    assert [each["metadata"]["name"] for each in installation.items("pods", PLACE)] == []
    kubectl("patch", "pcs", "ml-training", "-n", place, "--type=merge", '--patch={"spec": {"replicas": 3}}')
    await until(lambda: len(installation.items("podgangs", place)) == 3, every=0.3)
    kubectl("delete", "pcs", "ml-training", "-n", place)
    await until(lambda: not installation.items(f"pods,podgangs,{GROUPS}", place), every=0.3)


async def test_other_ways_to_run_a_gang(installation: Installation) -> None:
    """A Job is grouped, an autoscaler follows a set and its changes, kube-scheduler places a gang by a Workload."""
    cluster = installation.cluster
    template = {"spec": {"restartPolicy": "Never", "schedulerName": "kai-scheduler", "containers": [version()]}}
    cluster.apply(
        Builder("batch/v1", "Job", "job", PLACE).spec(template=template).build(),
        Builder("grove.io/v1alpha1", "ClusterTopologyBinding", "racks").spec(levels=LEVELS).build(),
        scaled(),
        pcs("plain", PLACE).clique("a", 2, containers=[waiting()]).build(),
    )
    cluster.kubectl("wait", "job/job", "-n", PLACE, "--for=condition=Complete", "--timeout=600s")
    await installation.set_ready(PLACE, "plain", 2)
    await installation.set_ready(PLACE, "scaled", 2)
    assert len(installation.items("workloads.scheduling.k8s.io", PLACE)) == 1
    assert len(installation.items("topologies.kai.scheduler", "")) == 1
    await until(lambda: len(installation.items("hpa", PLACE)) == 1, every=0.3)
    more = [{"op": "replace", "path": f"{SCALE_CONFIG}/maxReplicas", "value": 3}]
    cluster.kubectl("patch", "pcs", "scaled", "-n", PLACE, "--type=json", f"--patch={json.dumps(more)}")
    await until(lambda: [each["spec"]["maxReplicas"] for each in installation.items("hpa", PLACE)] == [3], every=0.3)
    cluster.kubectl("delete", "job/job", "pcs/plain", "pcs/scaled", "-n", PLACE)
    cluster.kubectl("delete", "clustertopologybinding", "racks")
    await until(lambda: not installation.items(f"pods,{GROUPS},workloads.scheduling.k8s.io", PLACE), every=0.3)


async def test_metrics_are_for_those_who_may_read_them(installation: Installation) -> None:
    """Every component tells its numbers to the account that the chart lets read them, and to nobody else."""
    cluster = installation.cluster
    cluster.kubectl("create", "serviceaccount", "prometheus", "-n", NAMESPACE)
    token = cluster.kubectl("create", "token", "prometheus", "-n", NAMESPACE).strip()
    addresses = [each["status"]["podIP"] for each in installation.items("pods", NAMESPACE)]
    cluster.apply(python_pod("reader", PLACE, READER.format(token=token, addresses=addresses)))
    await pod_until(cluster, PLACE, "reader", "Succeeded")
    assert cluster.kubectl("logs", "reader", "-n", PLACE).split() == ["200", "401"] * len(addresses)
    cluster.kubectl("delete", "pod/reader", "-n", PLACE)


async def test_services_that_config_switches_off_go_and_come_back(installation: Installation) -> None:
    """Their Deployments, accounts and webhooks go, so that nobody asks whom nobody serves; then all come back."""
    services = {"admission": "admission", "queue-controller": "queueController"}

    def switch(enabled: bool | None) -> None:
        spec = {block: {"service": {"enabled": enabled}} for block in services.values()}
        patch = json.dumps({"spec": spec})
        installation.cluster.kubectl("patch", "config", labels.KAI_CONFIG, "--type=merge", f"--patch={patch}")

    def left() -> set[str]:
        kinds = "deployments,serviceaccounts,services"
        return {each["metadata"]["name"] for each in installation.items(kinds, NAMESPACE)} & set(services)

    switch(enabled=False)
    await until(lambda: not left(), every=0.5, describe=installation.story)
    # Nothing is said of it any more, as before.
    switch(enabled=None)
    await installation.available(image=default_image())


async def test_every_component_away_locks_nobody_out(installation: Installation) -> None:
    """Pods of others run, a set is refused by the name of the webhook that nobody serves; then all comes back."""
    cluster = installation.cluster
    own = [each["metadata"]["name"] for each in installation.deployments()]
    chart = [name for name in own if name.startswith("spinney-")]
    # The platform first: it would start again what it has deployed.
    for names in (chart, sorted(set(own) - set(chart))):
        cluster.kubectl("scale", "deployment", *names, "-n", NAMESPACE, "--replicas=0")
        await until(lambda names=names: not _pods_of(installation, names), every=0.3, describe=installation.story)
    cluster.apply(pod("other", PLACE).spec(containers=[version()], restartPolicy="Never").build())
    await pod_until(cluster, PLACE, "other", "Succeeded")
    with pytest.raises(Exception, match="spinney-grove"):
        cluster.apply(team())
    cluster.kubectl("scale", "deployment", *chart, "-n", NAMESPACE, "--replicas=1")
    await installation.available(image=default_image())
    cluster.kubectl("delete", "pod/other", "-n", PLACE)


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
        said = await _said(installation, worker["metadata"]["name"], 6)
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


async def test_upgrade_disturbs_no_gang(installation: Installation, guide: Guide) -> None:
    """All components are replaced by those of a newer image, two of each; the pods of a gang stay as they are."""
    before = await installation.set_ready(PLACE, "team", 3)
    guide.type(f"{guide.command('helm upgrade')} --set replicas=2,image.tag={NEXT.rpartition(':')[2]}")
    await installation.available(replicas=2, image=NEXT)
    assert lives(installation.ready_pods(PLACE, "team")) == lives(before)


async def test_killed_leader_is_replaced(installation: Installation) -> None:
    """A gang created in the second in which scheduler and operator lose their leaders still runs."""
    # After an upgrade the Lease of a pod that is gone has to expire first.
    await until(lambda: any("scheduler" in name for name in _leaders(installation)))
    installation.cluster.kubectl(
        "delete", "pod", "-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false", *_leaders(installation)
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


async def test_rollback_disturbs_no_gang(installation: Installation, guide: Guide) -> None:
    """The version before is back, with one pod of each again; the same values once more restart nothing."""
    before = await installation.set_ready(PLACE, "team", 3)
    guide.follow("helm rollback")
    await installation.available(image=default_image())
    assert lives(installation.ready_pods(PLACE, "team")) == lives(before)
    generations = _generations(installation)
    guide.follow("helm upgrade")
    assert _generations(installation) == generations


async def test_no_right_is_missing(installation: Installation) -> None:
    """Whatever components were refused they were granted a moment later: roles reach the API server by a watch."""
    rights = granted(installation.cluster, OURS)
    _, refused = asked(installation.cluster, OURS)
    assert sorted(str(request) for request in refused if not any(right.covers(request) for right in rights)) == []


async def test_no_right_is_never_used(installation: Installation) -> None:
    """What components are granted they have asked for, or there is a reason; no reason is for a right of nobody."""
    rights = granted(installation.cluster, OURS)
    requests, _ = asked(installation.cluster, OURS)
    never = [right for right in unused(rights, requests) if not is_given_on(right, rights)]
    served = served_kinds(installation.cluster)
    unexplained = [str(right) for right in never if served(right) and not reason(right)]
    assert (unexplained, without_right(rights)) == ([], [])


async def _said(installation: Installation, name: str, words: int) -> list[str]:
    """What a pod has logged, once it has said so many words."""

    def said() -> list[str]:
        return installation.cluster.kubectl("logs", name, "-n", PLACE, "-c", "main").split()

    await until(lambda: len(said()) >= words, every=0.3, describe=lambda: installation.story(PLACE))
    return said()


def _leaders(installation: Installation) -> list[str]:
    """The pods that hold a Lease."""
    leases = json.loads(installation.cluster.kubectl("get", "leases", "-n", NAMESPACE, "-o", "json"))["items"]
    holders = {each["spec"].get("holderIdentity", "").partition("_")[0] for each in leases}
    pods = [each["metadata"]["name"] for each in installation.items("pods", NAMESPACE)]
    return [name for name in pods if name in holders]


def _pods_of(installation: Installation, deployments: list[str]) -> list[str]:
    """The pods that Deployments still have."""
    pods = [each["metadata"]["name"] for each in installation.items("pods", NAMESPACE)]
    return [name for name in pods if name.rsplit("-", 2)[0] in deployments]


def _is_second_round(pod: Json) -> bool:
    return {"name": "ROUND", "value": "2"} in pod["spec"]["containers"][0].get("env", [])


def _is_accepted(installation: Installation, document: Json) -> bool:
    """Whether the set is stored: while the operator has no leader, its webhook may not answer."""
    try:
        installation.cluster.apply(document)
    except Exception:
        return False
    return True


def _generations(installation: Installation) -> dict[str, int]:
    return {each["metadata"]["name"]: each["metadata"]["generation"] for each in installation.deployments()}

"""Answers about workloads, queues, nodes and capacity, from objects of a small cluster."""

from __future__ import annotations

import pytest

from spinney.answers.capacity import capacity
from spinney.answers.explanation import explanations
from spinney.answers.model import Queue, Workload
from spinney.answers.nodes import nodes, topology
from spinney.answers.overview import overview
from spinney.answers.queues import queues
from spinney.answers.tree import tree_of
from spinney.answers.workloads import parts_of, prospects_of, workloads
from spinney.api.workloads import GROUPED
from spinney.services.podgrouper.rules import RULES
from tests import make
from tests.answers.scene import NOW, Scene, ago, event, item, owner


def one(scene: Scene, name: str) -> Workload:
    """The workload of a name."""
    return next(each for each in workloads(scene.cluster()).items if each.ref.name == name)


def a_queue(scene: Scene, name: str) -> Queue:
    """The queue of a name."""
    return next(each for each in queues(scene.cluster()).items if each.name == name)


def test_every_kind_that_the_grouper_groups_is_read() -> None:
    """A kind that is added to the grouper's rules is missed by no answer."""
    own = {("v1", "Pod"), ("grove.io/v1alpha1", "PodGangSet")}
    assert set(GROUPED) == set(RULES) - own


def test_a_running_job_says_how_much_of_it_is_placed(scene: Scene) -> None:
    """Placed, minimum and total, GPUs, queue, and when its minimum had started."""
    job = one(scene.job("train", 2, 4, on="n0"), "train")
    assert (str(job.ref), job.phase, job.queue) == ("job/train", "Running", "team")
    assert (job.placed, job.minimum, job.total, job.ready, job.gpus) == (2, 2, 2, 2, 8)
    assert (job.started, job.why, job.gangs) == (ago(3600), None, ["pg-train"])


def test_a_waiting_job_says_why_in_one_sentence(scene: Scene) -> None:
    """The blocker, what is missing, and the place in line."""
    scene.job("small", 1, 8, on="n0").job("large", 2, 8).job("larger", 3, 8)
    job = one(scene, "large")
    assert (job.phase, job.line) == ("Waiting", 1)
    assert job.why is not None
    assert (job.why.code, job.why.text) == ("NoRoom", "1 of 2 pods fit together: 2 nodes lack free GPUs.")
    assert job.why.missing == {"gpu": 8}
    assert one(scene, "larger").line == 2


def test_a_job_with_as_many_pods_as_needed_but_not_ready_is_starting(scene: Scene) -> None:
    """What its containers wait for is told."""
    scene.job("slow", 1, 1, on="n0")
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    scene.pod("slow-0")["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    job = one(scene, "slow")
    assert job.phase == "Starting"
    assert job.why is not None
    assert job.why.text == "Container main of pod slow-0: ImagePullBackOff: no such image."


@pytest.mark.parametrize(
    ("spec", "status", "phase"),
    [
        ({"suspend": True}, {}, "Suspended"),
        ({}, {"conditions": [{"type": "Complete", "status": "True"}]}, "Succeeded"),
        ({}, {"conditions": [{"type": "Failed", "status": "True"}]}, "Failed"),
        ({}, {}, "Waiting"),
    ],
)
def test_a_job_without_pods_is_listed(
    scene: Scene, spec: dict[str, bool], status: dict[str, object], phase: str
) -> None:
    """Suspended, over, or refused its pods: each has a phase."""
    scene.add(item("batch/v1", "Job", "empty").spec(**spec).status(**status))
    assert one(scene, "empty").phase == phase


def refusal(job: str, message: str) -> make.Builder:
    """The warning of the controller that could not create pods of a Job."""
    about = {"kind": "Job", "name": job, "namespace": "default", "uid": f"uid-{job}"}
    warning = {"type": "Warning", "reason": "FailedCreate", "message": message, "lastTimestamp": ago(1)}
    built = make.Builder("v1", "Event", "refusal", "default")
    built.object |= {**warning, "involvedObject": about}
    return built


def test_a_job_whose_pods_are_refused_says_what_its_controller_was_told(scene: Scene) -> None:
    """The warning about the Job is the reason, since there is no pod to ask."""
    why = one(scene.job("empty", 0).add(refusal("empty", "exceeded quota: gpus")), "empty").why
    assert why is not None
    assert (why.code, why.text) == ("FailedCreate", "Exceeded quota: gpus.")


def test_times_of_events_had_another_form_than_all_others(scene: Scene) -> None:
    """In UTC with a Z, as in the API."""
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    metadata = {"name": "e", "namespace": "default"}
    event = {"metadata": metadata, "involvedObject": about, "type": "Normal", "reason": "Pulled", "message": "done"}
    scene.add({"apiVersion": "v1", "kind": "Event", **event, "lastTimestamp": ago(1)})
    (shown,) = overview(scene.cluster()).events
    assert shown.at == ago(1).replace("Z", ".000000Z")


def test_pods_belong_to_the_workload_that_a_user_created(scene: Scene) -> None:
    """Through a ReplicaSet to its Deployment; below a CronJob each Job is one of its own; a bare pod is itself."""
    scene.add(
        item("apps/v1", "Deployment", "web"),
        item("apps/v1", "ReplicaSet", "web-1", owner("apps/v1", "Deployment", "web")),
        make.pod("web-1-a").metadata(uid="a", ownerReferences=[owner("apps/v1", "ReplicaSet", "web-1")]).on("n0"),
        item("batch/v1", "Job", "run-1", owner("batch/v1", "CronJob", "run")),
        make.pod("run-1-a").metadata(uid="b", ownerReferences=[owner("batch/v1", "Job", "run-1")]).on("n0"),
        make.pod("alone").metadata(uid="c").on("n0"),
    )
    names = [str(each.ref) for each in workloads(scene.cluster()).items]
    assert names == ["deployment/web", "job/run-1", "pod/alone"]


def test_a_workload_that_two_versions_serve_is_one(scene: Scene) -> None:
    """An MPIJob is read as v1 and as v2beta1; its pods name one of them."""
    for version in ("kubeflow.org/v2beta1", "kubeflow.org/v1"):
        scene.add(item(version, "MPIJob", "mpi"))
    reference = owner("kubeflow.org/v2beta1", "MPIJob", "mpi")
    scene.add(scene.member("mpi-worker-0", "pg-mpi", on="n0").metadata(ownerReferences=[reference]))
    assert [(each.ref.name, each.placed) for each in workloads(scene.cluster()).items] == [("mpi", 1)]


def test_a_set_whose_pods_are_refused_shows_queue_and_minimum_of_its_gangs(scene: Scene) -> None:
    """There is no pod to read them from."""
    grove, gang = "grove.io/v1alpha1", "scheduler.grove.io/v1alpha1"
    scene.add(
        item(grove, "PodCliqueSet", "set").spec(replicas=1),
        item(gang, "PodGang", "set-0", owner(grove, "PodCliqueSet", "set")),
        item("scheduling.run.ai/v2alpha2", "PodGroup", "pg-set-0", owner(gang, "PodGang", "set-0")).spec(
            minMember=3, queue="team"
        ),
    )
    workload = one(scene, "set")
    assert (workload.queue, workload.minimum, workload.phase) == ("team", 3, "Waiting")


def test_pods_that_stand_for_others_are_no_workloads(scene: Scene) -> None:
    """Reservation pods hold a GPU for those who share it."""
    scene.add(make.pod("gpu-reservation-1", "kai-resource-reservation").metadata(uid="r").on("n0"))
    assert workloads(scene.cluster()).items == []


def test_gpu_memory_counts_as_a_part_of_a_gpu(scene: Scene) -> None:
    """Before a pod has a node, of the smallest GPU around; PENDING of its queue counts it as well."""
    for node in scene.objects[:2]:
        node["metadata"]["labels"]["nvidia.com/gpu.memory"] = "80000"
    scene.add(Scene.member("half", "pg-half", 0).annotate("gpu-memory", "40000"))
    scene.add(item("scheduling.run.ai/v2alpha2", "PodGroup", "pg-half").spec(queue="team", minMember=1))
    assert one(scene, "half").gpus == 0.5
    assert a_queue(scene, "team").requested.gpu == 0.5


def test_a_queue_tells_what_it_holds_and_who_waits(scene: Scene) -> None:
    """Quota, borrowed and requested; None is unlimited."""
    scene.objects.pop()
    scene.queue("all").queue("team", "all", quota=4).job("a", 1, 8, on="n0").job("b", 2, 8)
    team = a_queue(scene, "team")
    assert (team.depth, team.parent, team.quota.gpu, team.limit.gpu) == (1, "all", 4, None)
    assert (team.allocated.gpu, team.borrowed.gpu, team.requested.gpu) == (8, 4, 16)
    assert (team.running, team.waiting, team.problem) == (1, 1, None)
    assert a_queue(scene, "all").waiting == 1


@pytest.mark.parametrize(
    ("parent", "gpu", "problem"),
    [
        ("gone", {}, "its parent gone does not exist: nothing runs in it"),
        ("", {"quota": 8, "limit": 4}, "its gpu quota (8 GPUs) is above its limit of 4: the limit holds"),
        ("", {"quota": -1, "limit": 4}, "its gpu quota (unlimited) is above its limit of 4: the limit holds"),
    ],
)
def test_a_queue_that_cannot_work_says_so(scene: Scene, parent: str, gpu: dict[str, float], problem: str) -> None:
    """A missing parent, and a quota above the limit, are told."""
    assert a_queue(scene.queue("odd", parent, **gpu), "odd").problem == problem


def test_a_node_shows_who_has_which_gpu(scene: Scene) -> None:
    """Whole GPUs, and sharers of one."""
    scene.job("whole", 1, 2, on="n0")
    scene.add(
        Scene.member("part", "pg-part", 0, "n0").annotate("gpu-fraction", "0.5").label("runai-gpu-group", "g"),
        make.pod("gpu-reservation", "kai-resource-reservation")
        .label("runai-gpu-group", "g")
        .annotate("run.ai/reserve_for_gpu_index", "3")
        .metadata(uid="r")
        .gpus(1)
        .on("n0")
        .status(phase="Running"),
    )
    node = nodes(scene.cluster()).items[0]
    used = {gpu.index: gpu.used for gpu in node.gpus if gpu.used}
    assert used == {0: 1.0, 1: 1.0, 3: 0.5}
    assert node.gpus[3].sharers[0].pod == "part"
    assert node.gpus[3].reservation == "kai-resource-reservation/gpu-reservation"
    assert (node.allocatable.gpu, node.allocated.gpu, node.problem) == (8, 2.5, None)


def test_sharers_of_a_gpu_known_by_its_uuid_were_spread_over_several(scene: Scene) -> None:
    """A reservation that names no index still holds one device for all its sharers."""
    scene.job("whole", 1, 2, on="n0")
    for name in ("a", "b"):
        sharer = Scene.member(name, f"pg-{name}", 0, "n0").annotate("gpu-fraction", "0.25")
        scene.add(sharer.label("runai-gpu-group", "g"))
    scene.add(
        make.pod("gpu-reservation", "kai-resource-reservation")
        .label("runai-gpu-group", "g")
        .annotate("run.ai/reserve_for_gpu_index", "GPU-ed9a5142-4396-5126-9eb2-cc89437c491f")
        .metadata(uid="r")
        .gpus(1)
        .on("n0")
        .status(phase="Running")
    )
    node = nodes(scene.cluster()).items[0]
    assert [[sharer.pod for sharer in gpu.sharers] for gpu in node.gpus[:4]] == [
        ["a", "b"],
        ["whole-0"],
        ["whole-0"],
        [],
    ]
    assert node.allocated.gpu == 2.5


def test_a_gang_that_may_not_be_read_had_empty_brackets_for_a_backend() -> None:
    """Pods name their gang; which backend it has is not known without it."""
    scene = Scene().nodes(1).queue("team").job("train", 1, 1, on="n0")
    scene.pod("train-0")["metadata"]["labels"] = {"grove.io/podgang": "train-0"}
    cluster = scene.cluster()
    parts = next(each for each in parts_of(cluster).values() if each.owner.ref.name == "train")
    assert [group.detail for group in tree_of(cluster, parts, prospects_of(cluster)).groups] == [""]


def test_claimed_gpus_were_counted_nowhere() -> None:
    """GPUs in resource slices: the workload that claims them had 0, and so had their node."""
    scene = Scene().nodes(1, gpus=0).queue("team").job("train", 1, 0, on="n0")
    offered = {"driver": "gpu.nvidia.com", "nodeName": "n0", "pool": {"name": "n0", "generation": 1}}
    chosen = {"request": "g", "driver": "gpu.nvidia.com", "pool": "n0"}
    request = {"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
    devices = [{"name": f"gpu-{number}"} for number in range(8)]
    allocation = {"devices": {"results": [{**chosen, "device": "gpu-0"}, {**chosen, "device": "gpu-1"}]}}
    for kind, name, members in (
        ("ResourceSlice", "n0-gpus", {"spec": {**offered, "devices": devices}}),
        ("DeviceClass", "gpu.nvidia.com", {"spec": {}}),
        (
            "ResourceClaim",
            "two",
            {
                "spec": {"devices": {"requests": [request]}},
                "status": {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "train-0"}]},
            },
        ),
    ):
        metadata = {"name": name, **({"namespace": "default"} if kind == "ResourceClaim" else {})}
        scene.add({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **members})
    scene.pod("train-0")["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimName": "two"}]
    assert one(scene, "train").gpus == 2
    (node,) = nodes(scene.cluster()).items
    assert (node.allocated.gpu, node.allocatable.gpu) == (2, 8)


def test_a_node_that_takes_no_pods_says_why(scene: Scene) -> None:
    """Cordoned is not the same as not ready."""
    scene.objects[0]["spec"] = {"unschedulable": True}
    scene.objects[1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    first, second = nodes(scene.cluster()).items
    assert (first.ready, first.cordoned, first.problem) == (True, True, "node is unschedulable")
    assert (second.ready, second.cordoned, second.problem) == (False, False, "node is not ready")


def racks() -> Scene:
    """Two racks of one node each."""
    scene = Scene().queue("team").nodes(1, rack="r0").nodes(1, rack="r1")
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    topo = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"}}
    return scene.add({**topo, "spec": {"levels": levels}})


def test_the_topology_counts_free_gpus_of_each_domain() -> None:
    """A rack with its nodes, its GPUs and those that are free."""
    domains_by_level = topology(racks().job("a", 1, 6, on="n0").cluster())
    assert domains_by_level.levels == ["rack"]
    assert [(each.name, each.nodes, each.gpus, each.free) for each in domains_by_level.domains] == [
        ("r0", 1, 8, 2),
        ("r1", 1, 8, 8),
    ]


def test_a_tenant_put_pods_and_events_into_the_workload_of_another(scene: Scene) -> None:
    """Owner references and events name any UID; those of other namespaces belong to nothing there."""
    scene.job("train", 1, 1, on="n0")
    intruder = make.pod("intruder", "theirs").metadata(uid="i", ownerReferences=[owner("batch/v1", "Job", "train")])
    intruding_event = event("Pod", "train-0", "call 555-1234")
    about = {"kind": "Pod", "name": "train-0", "namespace": "theirs", "uid": "uid-train-0"}
    intruding_event |= {"metadata": {"name": "e", "namespace": "theirs"}, "involvedObject": about}
    cluster = scene.add(intruder.on("n1"), intruding_event).cluster()
    by_ref = {
        str(parts.owner.ref): parts for parts in parts_of(cluster).values() if parts.owner.ref.namespace == "default"
    }
    assert [pod.name for pod in by_ref["job/train"].pods] == ["train-0"]
    assert tree_of(cluster, by_ref["job/train"], prospects_of(cluster)).events == []


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("no PriorityClass with name gold was found", "Create PriorityClass gold, or name one that exists."),
        (
            "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2",
            "Raise ResourceQuota small of the namespace, or ask for less.",
        ),
        ('error looking up service account default/x: serviceaccount "x" not found', "Create ServiceAccount x, or"),
    ],
)
def test_refused_pods_come_with_what_helps(scene: Scene, message: str, advice: str) -> None:
    """The usual refusals of an API server."""
    scene.job("refused", 0, 1).add(refusal("refused", f'pods "refused-x" is forbidden: {message}'))
    why = one(scene, "refused").why
    assert why is not None
    assert why.advice[0].startswith(advice)


def reasons_of(scene: Scene) -> dict[str, float]:
    """Idle GPUs by reason."""
    return {part.reason: part.gpus for part in capacity(scene.cluster()).by_reason}


def test_idle_gpus_that_nobody_asks_for_are_free(scene: Scene) -> None:
    """Used and idle add up to the total."""
    gpus = capacity(scene.job("a", 1, 6, on="n0").cluster())
    assert (gpus.total, gpus.used, gpus.idle) == (16, 6, 10)
    assert reasons_of(scene) == {"free": 10}


def test_idle_gpus_are_told_by_what_keeps_others_from_them(scene: Scene) -> None:
    """Too few on one node, no cores beside them, or a cordoned node."""
    scene.objects[1]["spec"] = {"unschedulable": True}
    scene.job("a", 1, 6, on="n0").job("b", 1, 4)
    assert reasons_of(scene) == {"fragmentation": 2, "cordoned": 8}
    scene.job("c", 1, 1)
    scene.pod("c-0")["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100"
    assert reasons_of(scene) == {"cpu": 2, "cordoned": 8}


def test_idle_gpus_beyond_a_queues_limit(scene: Scene) -> None:
    """The queue is what stands between a gang and free GPUs."""
    scene.queue("small", limit=2).job("b", 1, 4, queue="small")
    assert reasons_of(scene) == {"quota": 16}
    share = next(each for each in capacity(scene.cluster()).by_queue if each.name == "small")
    assert [part.reason for part in share.by_reason] == ["quota"]


def test_idle_gpus_in_too_small_domains() -> None:
    """A gang that must share a rack finds enough GPUs, but not in one."""
    kept = {"preemptibility": "non-preemptible"}
    scene = racks().job("a", 1, 4, on="n0", **kept).job("b", 1, 4, on="n1", **kept)
    scene.job("together", 2, 4, topologyConstraint={"topology": "t", "requiredTopologyLevel": "rack"})
    gpus = capacity(scene.cluster())
    assert reasons_of(scene) == {"topology": 8}
    assert [(share.name, share.idle) for share in gpus.by_rack] == [("r0", 4), ("r1", 4)]


def test_the_overview_counts_workloads_by_phase(scene: Scene) -> None:
    """And says how many GPUs wait."""
    counts = overview(scene.job("a", 1, 8, on="n0").job("b", 2, 8).cluster())
    assert counts.workloads == {"Running": 1, "Waiting": 1}
    assert (counts.gpus.total, counts.gpus.used, counts.gpus.waiting) == (16, 8, 16)
    assert counts.at == NOW.isoformat().replace("+00:00", "Z")


def test_a_job_with_some_pods_refused_says_how_many_are_missing_and_why(scene: Scene) -> None:
    """Two of three pods exist and the quota refuses the third: that is the blocker, not the size of the gang."""
    scene.job("part", 2, 1, minMember=3)
    job = next(each for each in scene.objects if each["kind"] == "Job" and each["metadata"]["name"] == "part")
    job["spec"]["parallelism"] = 3
    message = 'pods "part-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
    scene.add(refusal("part", message))
    why = one(scene, "part").why
    assert why is not None
    assert why.text.startswith('1 pod is missing: Pods "part-x" is forbidden: exceeded quota: small')
    assert why.advice == ["Raise ResourceQuota small of the namespace, or ask for less."]


def _elastic(scene: Scene) -> Scene:
    """A running gang that needs one pod, has two, and wants a third."""
    scene.job("elastic", 3, 4, on="n0", minMember=1)
    surplus = scene.pod("elastic-2")
    del surplus["spec"]["nodeName"]
    surplus["status"] = {"phase": "Pending"}
    return scene


@pytest.mark.parametrize(
    ("limit", "blocker", "advice"),
    [
        (-1, "no node takes the pod: 1 node lacks free GPUs.", "Free or add room for 1 more pod with 4 GPUs"),
        (8, "queue team holds 8 of its limit of 8 GPUs and the gang asks for 4.", "Raise the limit of queue team by"),
    ],
)
def test_a_running_elastic_gang_says_why_its_surplus_waits(limit: int, blocker: str, advice: str) -> None:
    """It runs, and what it asks for beyond its minimum has a blocker with numbers, and advice that was tried."""
    scene = _elastic(Scene().nodes(1).queue("team", limit=limit))
    assert one(scene, "elastic").phase == "Running"
    (explanation,) = explanations(scene.cluster(), "job", "elastic", "default")
    assert explanation.why is not None
    assert explanation.why.text == f"1 pod beyond the minimum waits: {blocker}"
    assert explanation.why.advice[0].startswith(advice)
    assert explanation.advice_tried


def test_advice_did_not_say_that_others_take_the_room_first() -> None:
    """Whoever waits longer takes the room first: it is said once how much is missing, and that it needs more."""
    scene = Scene().nodes(2).queue("team").job("runs", 2, 8, on="n0")
    scene.job("first", 2, 8).job("second", 2, 8).job("third", 3, 8)
    (explanation,) = explanations(scene.cluster(), "job", "third", "default")
    assert explanation.why is not None
    assert [step.partition(" room")[0] for step in explanation.why.advice] == [
        "Free or add",
        "Others that wait take some of that",
    ]


def test_a_pod_that_asked_for_2_60_gpus_filled_the_memory_of_the_dashboard(scene: Scene) -> None:
    """What no node has is shown on no more devices than the node has, until the kubelet refuses the pod."""
    scene.add(make.pod("greedy").gpus(2**60).on("n0"))
    scene.add(make.node("huge", gpus=2**60))
    shown = {node.name: node for node in nodes(scene.cluster()).items}
    assert [device.used for device in shown["n0"].gpus] == [1.0] * 8
    assert len(shown["huge"].gpus) == 4096

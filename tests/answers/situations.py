"""Forty situations in which a gang waits: what is so, what the first line must name, and what the advice must say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.answers.scene import Scene

Json = dict[str, Any]


class Situation(NamedTuple):
    """A cluster in which job `waits` waits, the words that name its blocker, and those of the advice."""

    name: str
    build: Callable[[Scene], Scene]
    blocker: str
    advice: str
    # False where only time, or somebody else, helps.
    curable: bool = True


def _spec(scene: Scene, **members: Any) -> Scene:
    for item in scene.objects:
        if item["kind"] == "Pod" and item["metadata"]["name"].startswith("waits-"):
            item["spec"].update(members)
    return scene


def _node(scene: Scene, name: str = "n0", **spec: Any) -> Scene:
    for item in scene.objects:
        if item["kind"] == "Node" and item["metadata"]["name"] == name:
            item.setdefault("spec", {}).update(spec)
    return scene


def _condition(scene: Scene, kind: str, status: str) -> Scene:
    for item in scene.objects:
        if item["kind"] == "Node":
            item["status"]["conditions"].insert(0, {"type": kind, "status": status})
            item["status"]["conditions"] = [
                each for each in item["status"]["conditions"] if kind != "Ready" or each["status"] == status
            ]
    return scene


def _cpu(scene: Scene, cores: str) -> Scene:
    for item in scene.objects:
        if item["kind"] == "Pod" and item["metadata"]["name"].startswith("waits-"):
            item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cores
    return scene


def _memory(scene: Scene, amount: str) -> Scene:
    for item in scene.objects:
        if item["kind"] == "Pod" and item["metadata"]["name"].startswith("waits-"):
            item["spec"]["containers"][0]["resources"]["requests"]["memory"] = amount
    return scene


def _base(nodes: int = 2, **gpu: float) -> Scene:
    return Scene().nodes(nodes).queue("team", **gpu)


def _racks(count: int = 2, per_rack: int = 1, labelled: bool = True) -> Scene:
    scene = Scene().queue("team")
    for rack in range(count):
        scene.nodes(per_rack, **({"rack": f"r{rack}"} if labelled else {}))
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    return scene.add(
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "t"},
            "spec": {"levels": levels},
        }
    )


def _rack(level: str = "rack", topology: str = "t") -> Json:
    return {"topologyConstraint": {"topology": topology, "requiredTopologyLevel": level}}


_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
KEPT = {"preemptibility": "non-preemptible"}
_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}]
        }
    }
}
_LIKE_NOBODY = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def _volume(**source: Any) -> Json:
    return {"volumes": [{"name": "v", **source}]}


def _shared(annotation: str, value: str, memory: str = "") -> Callable[[Scene], Scene]:
    def build(_: Scene) -> Scene:
        scene = _base(1)
        if memory:
            scene.objects[0]["metadata"]["labels"]["nvidia.com/gpu.memory"] = memory
        scene.job("full", 1, 8, on="n0", **KEPT).job("waits", 1, 0)
        scene.pod("waits-0")["metadata"]["annotations"][annotation] = value
        return scene

    return build


SITUATIONS: tuple[Situation, ...] = (
    Situation(
        "no GPUs are free",
        lambda _: _base(1).job("full", 1, 8, on="n0", **KEPT).job("waits", 1, 4),
        "1 node lacks free GPUs",
        "room for 1 more pod with 4 GPUs",
    ),
    Situation(
        "half of a gang fits",
        lambda _: _base(2).job("full", 1, 8, on="n0", **KEPT).job("waits", 2, 8),
        "1 of 2 pods fit together",
        "room for 1 more pod",
    ),
    Situation(
        "a pod is larger than any node",
        lambda _: _base(2).job("waits", 1, 16),
        "no node is large enough for 16 GPUs",
        "add nodes for 1 more pod",
    ),
    Situation(
        "no cores are free", lambda _: _cpu(_base(1).job("waits", 1, 1), "65"), "no node is large enough", "65 cores"
    ),
    Situation(
        "no memory is free",
        lambda _: _memory(_base(1).job("waits", 1, 1), "600Gi"),
        "no node is large enough",
        "GB of memory",
    ),
    Situation(
        "cores are taken by others",
        lambda _: _cpu(_cpu_taken(_base(1)).job("waits", 1, 1), "40"),
        "lacks free CPU cores",
        "40 cores",
    ),
    Situation("there are no nodes", lambda _: _base(0).job("waits", 1, 1), "no node", "add nodes"),
    Situation(
        "nodes are cordoned",
        lambda _: _node(_base(1), unschedulable=True).job("waits", 1, 1),
        "1 node with room is cordoned",
        "uncordon the node",
    ),
    Situation(
        "nodes are cordoned, with the taint that Kubernetes gives them",
        lambda _: _node(_base(1), unschedulable=True, taints=[_CORDON]).job("waits", 1, 1),
        "1 node with room is cordoned",
        "uncordon the node",
    ),
    Situation(
        "a gang needs more than one cordoned node",
        lambda _: _node(_node(_base(2), unschedulable=True), "n1", unschedulable=True).job("waits", 2, 8),
        "2 nodes with room are cordoned",
        "uncordon enough of 2 nodes",
    ),
    Situation(
        "the selector fits no node, and nodes are cordoned",
        lambda _: _spec(_node(_base(2), unschedulable=True).job("waits", 1, 1), nodeSelector={"gpu": "h100"}),
        "2 nodes with room are ruled out by the pod's node selector",
        "relax the pod's node selector",
    ),
    Situation(
        "the nodes that the selector fits are full, and another is cordoned",
        lambda _: _chosen_full(),
        "1 node lacks free GPUs",
        "on one node that its node selector and affinity allow",
    ),
    Situation(
        "a taint is on one node, and the others are full",
        lambda _: _tainted_beside_full(),
        "1 node with room is tainted with team",
        "tolerate the taint team",
    ),
    Situation(
        "a host port is taken",
        lambda _: _port(_port(_base(1).job("runs", 1, 1, on="n0", **KEPT), "runs-0").job("waits", 1, 1), "waits-0"),
        "ruled out by rules about other pods",
        "relax the pod's rules about other pods",
    ),
    Situation(
        "pods like it keep it away",
        lambda _: _apart(_base(1).job("runs", 1, 1, on="n0", **KEPT).job("waits", 1, 1)),
        "ruled out by rules about other pods",
        "relax the pod's rules about other pods",
    ),
    Situation(
        "the surplus of an elastic gang waits",
        lambda _: _surplus(_base(1).job("waits", 3, 4, on="n0", minMember=1)),
        "1 pod beyond the minimum waits: no node takes the pod: 1 node lacks free GPUs",
        "room for 1 more pod with 4 GPUs",
    ),
    Situation(
        "the surplus of an elastic gang is above the limit",
        lambda _: _surplus(_base(2, limit=8).job("waits", 3, 4, on="n0", minMember=1)),
        "1 pod beyond the minimum waits: queue team holds 8 of its limit of 8 GPUs",
        "raise the limit of queue team by 4 GPUs",
    ),
    Situation(
        "nodes are not ready",
        lambda _: _condition(_base(1), "Ready", "False").job("waits", 1, 1),
        "is not ready",
        "repair the node",
    ),
    Situation(
        "nodes are under pressure",
        lambda _: _condition(_base(1), "MemoryPressure", "True").job("waits", 1, 1),
        "is under MemoryPressure",
        "repair the node",
    ),
    Situation(
        "a taint is not tolerated",
        lambda _: _node(_base(1), taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}]).job("waits", 1, 1),
        "tainted with team=x",
        "tolerate the taint team",
    ),
    Situation(
        "a node selector fits no node",
        lambda _: _spec(_base(1).job("waits", 1, 1), nodeSelector={"gpu": "h100"}),
        "ruled out by the pod's node selector",
        "relax the pod's node selector",
    ),
    Situation(
        "node affinity fits no node",
        lambda _: _spec(_base(2).job("waits", 1, 1), affinity=_AFFINITY),
        "2 nodes with room are ruled out by the pod's node selector or affinity",
        "label one of 2 nodes",
    ),
    Situation(
        "pod affinity fits no node",
        lambda _: _spec(_base(1).job("waits", 1, 1), affinity=_LIKE_NOBODY),
        "ruled out by rules about other pods",
        "relax the pod's rules about other pods",
    ),
    Situation(
        "a config map is missing",
        lambda _: _spec(_base(1).job("waits", 1, 1), **_volume(configMap={"name": "settings"})),
        'Configmap "settings" not found'.lower(),
        "create configmap settings",
    ),
    Situation(
        "a volume claim is missing",
        lambda _: _spec(_base(1).job("waits", 1, 1), **_volume(persistentVolumeClaim={"claimName": "data"})),
        'persistentvolumeclaim "data" not found',
        "create persistentvolumeclaim data",
    ),
    Situation(
        "pod slots are used up",
        lambda _: _pod_slots(_base(1)).job("waits", 1, 1),
        "at their limit of pods",
        "free pod slots",
    ),
    Situation(
        "the queue is at its limit",
        lambda _: _base(2, limit=4).job("runs", 1, 4, on="n0").job("waits", 1, 2),
        "queue team holds 4 of its limit of 4 GPUs and the gang asks for 2",
        "raise the limit of queue team by 2 GPUs",
    ),
    Situation(
        "the gang alone is above the limit",
        lambda _: _base(2, limit=4).job("waits", 1, 8),
        "queue team holds 0 of its limit of 4 GPUs",
        "raise the limit of queue team by 4 GPUs",
    ),
    Situation(
        "the queue above is at its limit",
        lambda _: Scene().nodes(2).queue("all", limit=4).queue("team", "all").job("waits", 1, 8),
        "queue all holds 0 of its limit of 4 GPUs",
        "raise the limit of queue all by 4 GPUs",
    ),
    Situation(
        "limits of both queues",
        lambda _: Scene().nodes(2).queue("all", limit=4).queue("team", "all", limit=2).job("waits", 1, 8),
        "queue team holds 0 of its limit of 2 GPUs",
        "raise the limit of queue all",
    ),
    Situation(
        "not preemptible and over quota",
        lambda _: _base(2, quota=2).job("waits", 1, 4, **KEPT),
        "quota of 2 GPUs",
        "raise the quota of queue team by 2 GPUs",
    ),
    Situation(
        "not preemptible by priority",
        lambda _: _base(2, quota=0).add(_class("high", 1000)).job("waits", 1, 1, priorityClassName="high"),
        "quota of 0 GPUs",
        "raise the quota of queue team by 1 GPU",
    ),
    Situation(
        "limit and no room",
        lambda _: _base(1, limit=4).job("waits", 1, 16),
        "limit of 4 GPUs",
        "no node is large enough",
    ),
    Situation(
        "the queue does not exist",
        lambda _: Scene().nodes(1).queue("other").job("waits", 1, 1),
        "queue team does not exist",
        "create queue team",
    ),
    Situation(
        "the parent queue does not exist",
        lambda _: Scene().nodes(1).queue("team", "gone").job("waits", 1, 1),
        "gone",
        "create queue gone",
    ),
    Situation(
        "the queue holds other queues",
        lambda _: _base(1).queue("below", "team").job("waits", 1, 1),
        "queue team holds other queues",
        "name a queue that has none below it",
    ),
    Situation(
        "no rack is large enough",
        lambda _: _racks().job("waits", 2, 8, **_rack()),
        "2 pods must share one rack",
        "the largest rack holds 1 of 2 pods",
    ),
    Situation(
        "the racks are too full",
        lambda _: (
            _racks().job("a", 1, 4, on="n0", **KEPT).job("b", 1, 4, on="n1", **KEPT).job("waits", 2, 4, **_rack())
        ),
        "2 pods must share one rack, and the best (",
        "free room for 1 more there",
    ),
    Situation(
        "no node is in a rack",
        lambda _: _racks(labelled=False).job("waits", 1, 1, **_rack()),
        "no node is in one",
        "label them",
    ),
    Situation(
        "the topology does not exist",
        lambda _: _racks(labelled=True).job("waits", 1, 1, **_rack(topology="other")),
        "topology other does not exist",
        "create topology other",
    ),
    Situation(
        "the level does not exist",
        lambda _: _racks().job("waits", 1, 1, **_rack(level="row")),
        "topology t has no level row",
        "add level row to topology t",
    ),
    Situation(
        "pods of the gang are missing",
        lambda _: _base(1).job("waits", 1, 1, minMember=3),
        "needs 3 pods to start and 1 may be placed",
        "2 more pods must exist",
    ),
    Situation(
        "some pods are gated",
        lambda _: _gated(_base(1).job("waits", 2, 1), "waits-1"),
        "needs 2 pods to start and 1 may be placed, 1 held by scheduling gates",
        "without a scheduling gate",
    ),
    Situation(
        "parts of a GPU are taken",
        _shared("gpu-fraction", "0.5"),
        "lacks free GPUs",
        "room for 1 more pod with 0.5 GPUs",
    ),
    Situation(
        "GPU memory is taken",
        _shared("gpu-memory", "40000", "80000"),
        "no node has room for 40000 MiB of a GPU",
        "40000 MiB of a GPU",
    ),
    Situation(
        "GPU memory is not known",
        lambda _: _memory_unknown(),
        "silent about the memory of their GPUs",
        "label the node",
    ),
    Situation("the preemption delay runs", lambda _: _delayed(), "lacks free GPUs", "room for 1 more pod"),
    Situation(
        "victims may not be evicted",
        lambda _: (
            _base(1)
            .add(_class("low", 10))
            .job("low", 1, 8, on="n0", priorityClassName="low", **KEPT)
            .job("waits", 1, 8)
        ),
        "lacks free GPUs",
        "free or add room",
    ),
    Situation(
        "a subgroup finds no room", lambda _: _subgroups(), "1 of 2 pods of workers fit together", "room for 1 more pod"
    ),
)


def _chosen_full() -> Scene:
    scene = Scene().queue("team").nodes(1, gpu="h100").nodes(1)
    _node(scene, "n1", unschedulable=True).job("full", 1, 8, on="n0", **KEPT)
    return _spec(scene.job("waits", 1, 1), nodeSelector={"gpu": "h100"})


def _tainted_beside_full() -> Scene:
    scene = _node(_base(3), "n2", taints=[{"key": "team", "value": "", "effect": "NoSchedule"}])
    return scene.job("a", 1, 8, on="n0", **KEPT).job("b", 1, 8, on="n1", **KEPT).job("waits", 1, 1)


def _port(scene: Scene, pod: str) -> Scene:
    scene.pod(pod)["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return scene


def _apart(scene: Scene) -> Scene:
    alone = {"labelSelector": {"matchLabels": {"app": "one"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    for name in ("runs-0", "waits-0"):
        scene.pod(name)["metadata"].setdefault("labels", {})["app"] = "one"
    return _spec(scene, affinity=rule)


def _surplus(scene: Scene) -> Scene:
    waiting = scene.pod("waits-2")
    del waiting["spec"]["nodeName"]
    waiting["status"] = {"phase": "Pending"}
    return scene


def _cpu_taken(scene: Scene) -> Scene:
    scene.job("runs", 1, 0, on="n0", **KEPT)
    scene.pod("runs-0")["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "60"}}
    return scene


def _pod_slots(scene: Scene) -> Scene:
    scene.objects[0]["status"]["allocatable"]["pods"] = "1"
    return scene.job("runs", 1, 1, on="n0", **KEPT)


def _class(name: str, value: int) -> Json:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _gated(scene: Scene, name: str) -> Scene:
    scene.pod(name)["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    return scene


def _memory_unknown() -> Scene:
    scene = _base(1).job("waits", 1, 0)
    scene.pod("waits-0")["metadata"]["annotations"]["gpu-memory"] = "40000"
    return scene


def _delayed() -> Scene:
    scene = _base(1).add(_class("low", 10), _class("mid", 90))
    scene.job("low", 1, 8, on="n0", priorityClassName="low")
    scene.job("waits", 1, 8, priorityClassName="mid", preemptionDelay="1h")
    return scene


def _subgroups() -> Scene:
    groups = [{"name": "master", "minMember": 1}, {"name": "workers", "minMember": 2}]
    scene = _base(2).job("waits", 3, 8, minMember=None, minSubGroup=2, subGroups=groups)
    for number, group in enumerate(("master", "workers", "workers")):
        scene.pod(f"waits-{number}")["metadata"].setdefault("labels", {})["kai.scheduler/subgroup-name"] = group
    return scene

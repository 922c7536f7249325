"""What gang scheduling needs of the API: scheduling gates, Workloads, workload references."""

from __future__ import annotations

from tests import make
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Api, Json

GATE = "example.com/hold"


def workloads(namespace: str) -> str:
    """The Workloads of a namespace."""
    return f"/apis/scheduling.k8s.io/v1alpha1/namespaces/{namespace}/workloads"


def workload(*groups: Json) -> Json:
    """A Workload with pod groups."""
    return {"metadata": {"name": "w"}, "spec": {"podGroups": list(groups)}}


async def test_gated_pod(api: Api, namespace: str) -> None:
    """A gated pod says so in its status from the start."""
    body = (await api.post(pods(namespace), make.pod("a", namespace).gate(GATE).build())).ok()
    assert body["spec"]["schedulingGates"] == [{"name": GATE}]
    (condition,) = body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


async def test_gate_removal(api: Api, namespace: str) -> None:
    """Gates come off one by one or all at once; removing one counts as a new generation."""
    await api.post(pods(namespace), make.pod("a", namespace).gate(GATE).gate("example.com/other").build())
    body = (await api.json_patch(f"{pods(namespace)}/a", {"op": "remove", "path": "/spec/schedulingGates/0"})).ok()
    assert body["spec"]["schedulingGates"] == [{"name": "example.com/other"}]
    assert body["metadata"]["generation"] == 2
    body = (await api.json_patch(f"{pods(namespace)}/a", {"op": "remove", "path": "/spec/schedulingGates"})).ok()
    assert "schedulingGates" not in body["spec"]


async def test_ungated_pod_is_bound(api: Api, namespace: str) -> None:
    """Once its gates are gone a pod can be bound."""
    await api.post(pods(namespace), make.pod("a", namespace).gate(GATE).build())
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert (await api.post(f"{pods(namespace)}/a/binding", binding)).code == 409
    await api.merge(f"{pods(namespace)}/a", {"spec": {"schedulingGates": None}})
    assert (await api.post(f"{pods(namespace)}/a/binding", binding)).code == 201


async def test_gated_pod_can_be_narrowed(api: Api, namespace: str) -> None:
    """While it is gated, a pod's node selector may be added to, and affinity terms narrowed."""
    await api.post(pods(namespace), make.pod("a", namespace).gate(GATE).build())
    body = (await api.merge(f"{pods(namespace)}/a", {"spec": {"nodeSelector": {"rack": "r1"}}})).ok()
    assert body["spec"]["nodeSelector"] == {"rack": "r1"}
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    body = (await api.merge(f"{pods(namespace)}/a", {"spec": {"affinity": affinity}})).ok()
    assert body["spec"]["affinity"] == affinity


async def test_allowed_changes(api: Api, namespace: str) -> None:
    """Of a pod's spec, images, tolerations and the deadline may change."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    toleration = {"key": "k", "operator": "Exists"}
    assert (
        await api.strategic(f"{pods(namespace)}/a", {"spec": {"containers": [{"name": "main", "image": "other"}]}})
    ).code == 200
    assert (
        await api.json_patch(f"{pods(namespace)}/a", {"op": "add", "path": "/spec/tolerations/-", "value": toleration})
    ).code == 200
    assert (await api.merge(f"{pods(namespace)}/a", {"spec": {"activeDeadlineSeconds": 60}})).code == 200
    assert (await api.merge(f"{pods(namespace)}/a", {"spec": {"activeDeadlineSeconds": 90}})).code == 422


async def test_workload(api: Api, namespace: str) -> None:
    """A Workload holds its groups as they were given, without a generation or status."""
    groups = ({"name": "g", "policy": {"gang": {"minCount": 3}}}, {"name": "h", "policy": {"basic": {}}})
    body = (await api.post(workloads(namespace), workload(*groups))).ok()
    assert (body["kind"], body["apiVersion"]) == ("Workload", "scheduling.k8s.io/v1alpha1")
    assert body["spec"]["podGroups"] == list(groups)
    assert "status" not in body
    stored = (await api.get(f"{workloads(namespace)}/w")).ok()
    assert stored["metadata"]["uid"] == body["metadata"]["uid"]


async def test_workload_controller(api: Api, namespace: str) -> None:
    """A Workload may name its controller, once."""
    wanted = workload({"name": "g", "policy": {"gang": {"minCount": 1}}})
    (await api.post(workloads(namespace), wanted)).ok()
    reference = {"apiGroup": "batch", "kind": "Job", "name": "j"}
    body = (await api.merge(f"{workloads(namespace)}/w", {"spec": {"controllerRef": reference}})).ok()
    assert body["spec"]["controllerRef"] == reference


async def test_workload_metadata(api: Api, namespace: str) -> None:
    """Labels, annotations and owners of a Workload may change."""
    (await api.post(workloads(namespace), workload({"name": "g", "policy": {"gang": {"minCount": 1}}}))).ok()
    body = (await api.merge(f"{workloads(namespace)}/w", {"metadata": {"labels": {"a": "b"}}})).ok()
    assert body["metadata"]["labels"] == {"a": "b"}


async def test_workload_apply(api: Api, namespace: str) -> None:
    """A Workload can be applied; its groups are keyed by name."""
    wanted = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload"} | workload(
        {"name": "g", "policy": {"gang": {"minCount": 1}}}
    )
    body = (await api.apply(f"{workloads(namespace)}/w", wanted, "one")).ok()
    (entry,) = body["metadata"]["managedFields"]
    assert 'k:{"name":"g"}' in entry["fieldsV1"]["f:spec"]["f:podGroups"]


async def test_workload_reference(api: Api, namespace: str) -> None:
    """A pod keeps the reference to its Workload, group and replica, whether the Workload is there or not."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["workloadRef"] = {"name": "w", "podGroup": "g", "podGroupReplicaKey": "1"}
    body = (await api.post(pods(namespace), wanted)).ok()
    assert body["spec"]["workloadRef"] == {"name": "w", "podGroup": "g", "podGroupReplicaKey": "1"}


async def test_reference_of_templates(api: Api, namespace: str) -> None:
    """A job's template may carry the reference too."""
    reference = {"name": "w", "podGroup": "g"}
    spec = {"restartPolicy": "Never", "workloadRef": reference, "containers": [{"name": "m", "image": "x"}]}
    wanted = {"metadata": {"name": "j"}, "spec": {"suspend": True, "template": {"spec": spec}}}
    body = (await api.post(f"/apis/batch/v1/namespaces/{namespace}/jobs", wanted)).ok()
    assert body["spec"]["template"]["spec"]["workloadRef"] == reference

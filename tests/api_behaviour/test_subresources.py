"""Status, scale, binding, eviction and the like: the paths behind an object."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.deployments import deployment, deployments
from tests.api_behaviour.evictions import budget, ready_pod
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster


async def test_status_changes_only_status(api: Api, namespace: str) -> None:
    """A write to /status changes the status and nothing else."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    patch = {"metadata": {"labels": {"x": "y"}}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    body = (await api.merge(f"{pods(namespace)}/a/status", patch)).ok()
    assert body["status"]["phase"] == "Running"
    assert "nodeName" not in body["spec"]


async def test_conditions_of_pods_show_when_they_were_probed(api: Api, namespace: str) -> None:
    """A pod's condition has a lastProbeTime even where nobody gave it one, and keeps it through later writes."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await api.strategic(f"{pods(namespace)}/a/status", {"status": {"conditions": [ready]}})
    initialized = {**ready, "type": "Initialized", "lastProbeTime": None}
    body = (await api.strategic(f"{pods(namespace)}/a/status", {"status": {"conditions": [initialized]}})).ok()
    assert {each["type"]: each["lastProbeTime"] for each in body["status"]["conditions"]} == {
        "Ready": None,
        "Initialized": None,
    }


async def test_main_path_keeps_status(api: Api, namespace: str) -> None:
    """A write to the object leaves its status alone."""
    await api.post(deployments(namespace), deployment(paused=True))
    body = (await api.merge(f"{deployments(namespace)}/a", {"status": {"replicas": 5}})).ok()
    assert body["status"].get("replicas") is None


async def test_status_ignored_on_create(api: Api, namespace: str) -> None:
    """A status on creation is dropped."""
    wanted = make.pod("a", namespace).build() | {"status": {"phase": "Failed"}}
    assert (await api.post(pods(namespace), wanted)).ok()["status"]["phase"] == "Pending"


async def test_status_generation(api: Api, namespace: str) -> None:
    """A status change does not count as a new generation."""
    await api.post(deployments(namespace), deployment(paused=True))
    body = (await api.merge(f"{deployments(namespace)}/a/status", {"status": {"observedGeneration": 1}})).ok()
    assert body["metadata"]["generation"] == 1


async def test_get_status(api: Api, namespace: str) -> None:
    """/status reads as the whole object."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    body = (await api.get(f"{pods(namespace)}/a/status")).ok()
    assert (body["kind"], "spec" in body) == ("Pod", True)


async def test_put_status(api: Api, namespace: str) -> None:
    """/status may be replaced as well."""
    made = (await api.post(pods(namespace), make.pod("a", namespace).build())).ok()
    made["status"] = {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}
    made["spec"]["nodeName"] = "elsewhere"
    body = (await api.put(f"{pods(namespace)}/a/status", made)).ok()
    assert (body["status"]["podIP"], body["spec"].get("nodeName")) == ("10.1.2.3", None)


async def test_scale(api: Api, namespace: str) -> None:
    """A workload's scale shows wanted and present replicas and the selector."""
    made = (await api.post(deployments(namespace), deployment(paused=True))).ok()
    body = (await api.get(f"{deployments(namespace)}/a/scale")).ok()
    assert (body["kind"], body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (body["spec"], body["status"]) == ({}, {"replicas": 0, "selector": "app=a"})
    assert body["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize("way", ["put", "merge", "strategic"])
async def test_scaling(api: Api, namespace: str, way: str) -> None:
    """Replicas are set by replacing or patching the scale; the generation moves on."""
    await api.post(deployments(namespace), deployment(paused=True))
    path = f"{deployments(namespace)}/a/scale"
    wanted = {"metadata": {"name": "a", "namespace": namespace}, "spec": {"replicas": 2}}
    answer = await getattr(api, way)(path, wanted)
    assert answer.ok()["spec"] == {"replicas": 2}
    scaled = (await api.get(f"{deployments(namespace)}/a")).ok()
    assert (scaled["spec"]["replicas"], scaled["metadata"]["generation"]) == (2, 2)


async def test_scale_conflict(api: Api, namespace: str) -> None:
    """A scale carries the version of its object."""
    await api.post(deployments(namespace), deployment(paused=True))
    wanted = {"metadata": {"name": "a", "namespace": namespace, "resourceVersion": "1"}, "spec": {"replicas": 2}}
    (await api.put(f"{deployments(namespace)}/a/scale", wanted)).refused(409, "Conflict")


async def test_binding(api: Api, namespace: str) -> None:
    """A binding puts the pod on the node and says so in a condition; 201 with a Status."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    wanted = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }
    answer = await api.post(f"{pods(namespace)}/a/binding", wanted)
    assert (answer.code, answer.ok()["status"]) == (201, "Success")
    pod = (await api.get(f"{pods(namespace)}/a")).ok()
    assert pod["spec"]["nodeName"] == "n"
    (condition,) = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert condition["status"] == "True"


async def test_binding_annotations(api: Api, namespace: str) -> None:
    """Annotations of a binding go to the pod; labels of the node's topology would too."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    wanted = {"metadata": {"name": "a", "annotations": {"x": "y"}}, "target": {"kind": "Node", "name": "n"}}
    (await api.post(f"{pods(namespace)}/a/binding", wanted)).ok()
    assert (await api.get(f"{pods(namespace)}/a")).ok()["metadata"]["annotations"] == {"x": "y"}


async def test_binding_topology_labels(api: Api, cluster: Cluster, namespace: str) -> None:
    """A bound pod gets the zone and region of its node as labels."""
    node = cluster.unique("node")
    wanted = (
        make.node(node).label("topology.kubernetes.io/zone", "z").label("topology.kubernetes.io/region", "r").build()
    )
    await api.post("/api/v1/nodes", wanted)

    async def bound() -> Answer:
        name = cluster.unique("pod")
        await api.post(pods(namespace), make.pod(name, namespace).build())
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        (await api.post(f"{pods(namespace)}/{name}/binding", binding)).ok()
        return await api.get(f"{pods(namespace)}/{name}")

    # Admission takes a moment to notice a new node; a pod that is bound before goes without.
    answer = await api.repeat(bound, lambda answer: "labels" in answer.ok()["metadata"])
    labels = answer.ok()["metadata"]["labels"]
    assert labels == {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
    await api.delete(f"/api/v1/nodes/{node}")


async def test_old_bindings(api: Api, namespace: str) -> None:
    """The old bindings resource binds as well."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    wanted = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    (await api.post(f"/api/v1/namespaces/{namespace}/bindings", wanted)).ok()
    assert (await api.get(f"{pods(namespace)}/a")).ok()["spec"]["nodeName"] == "n"


async def test_binding_dry_run(api: Api, namespace: str) -> None:
    """A binding can be tried."""
    await api.post(pods(namespace), make.pod("a", namespace).build())
    wanted = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    (await api.post(f"{pods(namespace)}/a/binding", wanted, dryRun="All")).ok()
    assert "nodeName" not in (await api.get(f"{pods(namespace)}/a")).ok()["spec"]


async def test_binding_of_deleted_pod(api: Api, namespace: str) -> None:
    """A pod that is being deleted cannot be bound."""
    wanted = make.pod("a", namespace).build()
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(pods(namespace), wanted)
    await api.delete(f"{pods(namespace)}/a")
    answer = await api.post(
        f"{pods(namespace)}/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    )
    answer.refused(
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods/binding "a": pod a is being deleted, cannot be assigned to a host',
    )
    await api.merge(f"{pods(namespace)}/a", {"metadata": {"finalizers": None}})


async def test_eviction(api: Api, namespace: str) -> None:
    """An eviction without a budget deletes the pod; 201 with a Status."""
    await ready_pod(api, namespace, "a")
    wanted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": namespace}}
    answer = await api.post(f"{pods(namespace)}/a/eviction", wanted)
    assert (answer.code, answer.ok()["status"]) == (201, "Success")
    pod = (await api.get(f"{pods(namespace)}/a")).ok()
    assert pod["metadata"]["deletionTimestamp"]
    (condition,) = [each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "EvictionByEvictionAPI")
    assert condition["message"] == "Eviction API: evicting"


async def test_eviction_dry_run(api: Api, namespace: str) -> None:
    """An eviction can be tried."""
    await ready_pod(api, namespace, "a")
    wanted = {"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}}
    (await api.post(f"{pods(namespace)}/a/eviction", wanted)).ok()
    assert "deletionTimestamp" not in (await api.get(f"{pods(namespace)}/a")).ok()["metadata"]


async def test_budget_status(api: Api, namespace: str) -> None:
    """A budget's status counts the pods it covers."""
    for name in ("a", "b", "c"):
        await ready_pod(api, namespace, name)
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    await api.post(path, budget("p", minAvailable=2))
    answer = await api.until(f"{path}/p", lambda answer: answer.ok()["status"].get("currentHealthy") == 3)
    status = answer.ok()["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)
    assert status["observedGeneration"] == 1
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )


async def test_budget_percentage_of_bare_pods(api: Api, namespace: str) -> None:
    """A percentage is of what controllers want; pods without one count for nothing."""
    await ready_pod(api, namespace, "a")
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    await api.post(path, budget("p", minAvailable="50%"))
    answer = await api.until(f"{path}/p", lambda answer: answer.ok()["status"].get("observedGeneration") == 1)
    status = answer.ok()["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (0, 0, 0)


async def test_eviction_refused(api: Api, namespace: str) -> None:
    """An eviction that a budget does not allow is 429 and says which budget."""
    await ready_pod(api, namespace, "a")
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    await api.post(path, budget("p", minAvailable=1))
    await api.until(f"{path}/p", lambda answer: answer.ok()["status"].get("currentHealthy") == 1)
    answer = await api.post(f"{pods(namespace)}/a/eviction", {"metadata": {"name": "a"}})
    body = answer.refused(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    assert body["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget p needs 1 healthy pods and has 1 currently"}
    ]
    assert (await api.get(f"{pods(namespace)}/a")).code == 200


async def test_eviction_counts_down(api: Api, namespace: str) -> None:
    """Each eviction uses up a disruption at once, before the controller has counted again."""
    for name in ("a", "b"):
        await ready_pod(api, namespace, name)
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    await api.post(path, budget("p", minAvailable=1))
    await api.until(f"{path}/p", lambda answer: answer.ok()["status"].get("disruptionsAllowed") == 1)
    first = await api.post(f"{pods(namespace)}/a/eviction", {"metadata": {"name": "a"}})
    second = await api.post(f"{pods(namespace)}/b/eviction", {"metadata": {"name": "b"}})
    assert (first.code, second.code) == (201, 429)


async def test_eviction_under_two_budgets(api: Api, namespace: str) -> None:
    """A pod under two budgets cannot be evicted."""
    await ready_pod(api, namespace, "a")
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    for name in ("p", "q"):
        await api.post(path, budget(name, maxUnavailable=1))
    answer = await api.post(f"{pods(namespace)}/a/eviction", {"metadata": {"name": "a"}})
    assert answer.code in (400, 500)
    assert (
        answer.message
        == "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


async def test_eviction_of_pending_pod(api: Api, namespace: str) -> None:
    """A pod that does not run yet is evicted whatever the budget says."""
    await api.post(pods(namespace), make.pod("a", namespace).label("app", "a").build())
    await api.post(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", budget("p", minAvailable=1))
    assert (await api.post(f"{pods(namespace)}/a/eviction", {"metadata": {"name": "a"}})).code == 201


async def test_token(api: Api, namespace: str, cluster: Cluster) -> None:
    """A service account's token is made on request and lets its bearer in."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    body = (await api.post(path, {"spec": {"expirationSeconds": 3600}})).ok()
    assert (body["kind"], body["spec"]["expirationSeconds"]) == ("TokenRequest", 3600)
    bearer = Api(cluster.token_transport(body["status"]["token"]))
    review = (await bearer.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).ok()
    user = review["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{namespace}:default"
    assert sorted(user["groups"]) == [
        "system:authenticated",
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
    ]


async def test_finalize_namespace(api: Api, cluster: Cluster) -> None:
    """A namespace's finalizers are changed through /finalize only."""
    name = cluster.unique("fin")
    made = (await api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
    made["spec"] = {"finalizers": []}
    assert (await api.put(f"/api/v1/namespaces/{name}", made)).ok()["spec"] == {"finalizers": ["kubernetes"]}


async def test_metadata_through_status(api: Api, namespace: str) -> None:
    """A write to a deployment's status may annotate it, but not label it, and is no new generation."""
    await api.post(deployments(namespace), deployment(paused=True))
    patch = {"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}}
    meta = (await api.merge(f"{deployments(namespace)}/a/status", patch, dryRun="All")).ok()["metadata"]
    assert (meta.get("labels"), meta["annotations"]["x"], meta["generation"]) == (None, "y", 1)


async def test_the_right_to_a_claims_status_changed_its_labels_and_finalizers(api: Api, namespace: str) -> None:
    """Who writes the status of a ResourceClaim writes nothing else."""
    claims = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    (await api.post(claims, {"metadata": {"name": "a"}, "spec": {}})).ok()
    metadata = {"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["example.com/hold"]}
    metadata_after = (await api.merge(f"{claims}/a/status", {"metadata": metadata})).ok()["metadata"]
    assert not metadata_after.keys() & metadata.keys()


def scale(replicas: object, **metadata: str) -> Json:
    """The scale of the deployment `a`."""
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a", **metadata},
        "spec": {"replicas": replicas},
    }


async def test_an_applied_scale_is_owned(api: Api, namespace: str) -> None:
    """Who applies a scale owns the replicas of the object, and takes them from others by force only."""
    path = f"{deployments(namespace)}/a"
    await api.post(deployments(namespace), deployment(paused=True))
    (await api.merge(f"{path}/scale", {"spec": {"replicas": 3}}, fieldManager="hand")).ok()
    (await api.apply(f"{path}/scale", scale(5), "robot")).refused(
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "hand" with subresource "scale" using autoscaling/v1: '
        ".spec.replicas",
    )
    (await api.apply(f"{path}/scale", scale(5), "robot", force="true")).ok()
    entries = (await api.get(path)).ok()["metadata"]["managedFields"]
    owners = [
        (entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource"))
        for entry in entries
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    ]
    assert owners == [("robot", "Apply", "apps/v1", "scale")]
    object_ = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 7}}
    (await api.apply(path, object_, "other")).refused(
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "robot" with subresource "scale": .spec.replicas',
    )


async def test_a_scale_is_checked_like_any_object(api: Api, namespace: str) -> None:
    """Its namespace, its UID and its fields count."""
    path = f"{deployments(namespace)}/a/scale"
    await api.post(deployments(namespace), deployment(paused=True))
    elsewhere = "the namespace of the provided object does not match the namespace sent on the request"
    (await api.put(path, scale(2, namespace="other"))).refused(400, "BadRequest", elsewhere)
    other = "11111111-1111-1111-1111-111111111111"
    wrong = (await api.put(path, scale(2, uid=other))).refused(409, "Conflict")
    assert f"Precondition failed: UID in precondition: {other}, UID in object meta: " in wrong["message"]
    unknown = await api.merge(path, {"spec": {"foo": 1}})
    assert (unknown.code, unknown.warnings) == (200, '299 - "unknown field \\"spec.foo\\""')
    (await api.put(path, scale(-1))).refused(
        422,
        "Invalid",
        'Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    )

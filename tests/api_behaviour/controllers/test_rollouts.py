"""Workloads in trouble and in change: refused pods, pods that leave, pauses, revisions, claims of sets."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Json
from tests.api_behaviour.paths import pods
from tests.api_behaviour.quotas import enforced
from tests.api_behaviour.wire import Answer, Api
from tests.api_behaviour.workloads import apps, condition, count, is_true, listed, set_phase, workload

REVISION = "deployment.kubernetes.io/revision"


async def events(api: Api, namespace: str, kind: str, reason: str) -> set[str]:
    """What was told of objects of a kind for a reason, once something was."""
    query = {"fieldSelector": f"involvedObject.kind={kind},reason={reason}"}
    path = f"/api/v1/namespaces/{namespace}/events"
    answer = await api.until(path, lambda answer: bool(answer.body["items"]), **query)
    return {item["message"] for item in answer.ok()["items"]}


async def test_refused_pods(api: Api, namespace: str) -> None:
    """A replica set whose pods are refused says why, and no longer once they are not."""
    await enforced(api, namespace, {"hard": {"pods": "1"}})
    (await api.post(apps(namespace, "replicasets"), workload("ReplicaSet", replicas=2))).ok()
    path = f"{apps(namespace, 'replicasets')}/w"
    body = (await api.until(path, is_true("ReplicaFailure"))).ok()
    refused = condition(body, "ReplicaFailure")
    assert refused is not None
    assert refused["reason"] == "FailedCreate"
    why = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    assert refused["message"].startswith('pods "w-')
    assert refused["message"].endswith(why)
    messages = await events(api, namespace, "ReplicaSet", "FailedCreate")
    assert all(message.startswith('Error creating: pods "w-') for message in messages)
    (await api.merge(path, {"spec": {"replicas": 1}})).ok()
    await api.until(path, lambda answer: condition(answer.body, "ReplicaFailure") is None)


async def test_refused_pods_of_a_deployment(api: Api, namespace: str) -> None:
    """A deployment says it, too."""
    await enforced(api, namespace, {"hard": {"pods": "1"}})
    (await api.post(apps(namespace, "deployments"), workload("Deployment", replicas=2))).ok()
    body = (await api.until(f"{apps(namespace, 'deployments')}/w", is_true("ReplicaFailure"))).ok()
    assert condition(body, "ReplicaFailure")["reason"] == "FailedCreate"  # type: ignore[index]  # it was waited for


async def test_pod_leaves(api: Api, namespace: str) -> None:
    """A pod that a replica set selects no longer is let go and replaced."""
    (await api.post(apps(namespace, "replicasets"), workload("ReplicaSet", replicas=1))).ok()
    (pod,) = await listed(api, pods(namespace), 1)
    path = f"{pods(namespace)}/{pod['metadata']['name']}"
    (await api.merge(path, {"metadata": {"labels": {"app": "other"}}})).ok()
    await listed(api, pods(namespace), 2)
    await api.until(path, lambda answer: "ownerReferences" not in answer.body["metadata"])


async def test_back_to_an_old_revision(api: Api, namespace: str) -> None:
    """A replica set that becomes the newest again remembers which revisions it was."""
    path = f"{apps(namespace, 'deployments')}/w"
    (await api.post(apps(namespace, "deployments"), workload("Deployment", replicas=0))).ok()

    def revision(number: str) -> Callable[[Answer], bool]:
        return lambda answer: answer.body["metadata"].get("annotations", {}).get(REVISION) == number

    await api.until(path, revision("1"))
    for number, image in (("2", "other"), ("3", "busybox")):
        containers = [{"name": "main", "image": image}]
        (await api.strategic(path, {"spec": {"template": {"spec": {"containers": containers}}}})).ok()
        await api.until(path, revision(number))
    sets = await listed(api, apps(namespace, "replicasets"), 2)
    annotations = {item["metadata"]["annotations"][REVISION]: item["metadata"]["annotations"] for item in sets}
    assert annotations["3"]["deployment.kubernetes.io/revision-history"] == "1"
    assert "deployment.kubernetes.io/revision-history" not in annotations["2"]


async def test_paused_in_the_middle(api: Api, namespace: str) -> None:
    """A deployment that is paused while it rolls out grows in proportion."""
    path = f"{apps(namespace, 'deployments')}/w"
    (await api.post(apps(namespace, "deployments"), workload("Deployment", replicas=2))).ok()
    for pod in await listed(api, pods(namespace), 2):
        await set_phase(api, namespace, pod["metadata"]["name"], "Running")
    await api.until(path, lambda answer: answer.body["status"].get("availableReplicas") == 2)
    containers = [{"name": "main", "image": "other"}]
    (await api.strategic(path, {"spec": {"template": {"spec": {"containers": containers}}}})).ok()
    await api.until(path, lambda answer: answer.body["status"].get("updatedReplicas") == 1)
    (await api.merge(path, {"spec": {"paused": True, "replicas": 6}})).ok()
    # Six and a quarter more, shared as two to one.
    await listed(api, pods(namespace), 8)
    sets = (await api.get(apps(namespace, "replicasets"))).ok()["items"]
    assert sorted(item["spec"]["replicas"] for item in sets) == [3, 5]


def stateful(**spec: object) -> Json:
    """A stateful set with a claim for each pod."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return workload(
        "StatefulSet",
        serviceName="s",
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
        **spec,
    )


async def test_claims_go_with_their_set(api: Api, namespace: str) -> None:
    """Claims belong to the set where they shall go with it."""
    retention = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    body = stateful(replicas=1, persistentVolumeClaimRetentionPolicy=retention)
    (await api.post(apps(namespace, "statefulsets"), body)).ok()
    await listed(api, pods(namespace), 1)
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    claim = (await api.until(f"{claims}/data-w-0", lambda answer: "ownerReferences" in answer.body["metadata"])).ok()
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("StatefulSet", "w", True)
    (await api.delete(f"{apps(namespace, 'statefulsets')}/w")).ok()
    await api.until(claims, count(0))


async def test_what_a_set_tells(api: Api, namespace: str) -> None:
    """A stateful set tells of the pods and claims that it makes, and marks its pods and revisions."""
    (await api.post(apps(namespace, "statefulsets"), stateful(replicas=1))).ok()
    (pod,) = await listed(api, pods(namespace), 1)
    assert (pod["metadata"]["name"], pod["metadata"]["generateName"]) == ("w-0", "w-")
    wanted = {
        "Create Claim data-w-0 Pod w-0 in StatefulSet w success",
        "Create Pod w-0 in StatefulSet w successful",
    }
    path = f"/api/v1/namespaces/{namespace}/events"

    def told(answer: Answer) -> bool:
        return wanted <= {item["message"] for item in answer.body["items"]}

    await api.until(path, told)
    (revision,) = await listed(api, apps(namespace, "controllerrevisions"), 1)
    name = revision["metadata"]["name"]
    assert revision["metadata"]["labels"] == {"app": "a", "controller.kubernetes.io/hash": name.removeprefix("w-")}
    assert pod["metadata"]["labels"]["controller-revision-hash"] == name


async def test_claim_without_a_volume(api: Api, namespace: str) -> None:
    """A claim that no volume fits and no class makes one for says so."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    (await api.post(claims, {"metadata": {"name": "a"}, "spec": spec})).ok()
    why = "no persistent volumes available for this claim and no storage class is set"
    assert await events(api, namespace, "PersistentVolumeClaim", "FailedBinding") == {why}


async def test_cause_of_a_change(api: Api, namespace: str) -> None:
    """What people note on a deployment stands on its newest replica set, too, but not what tools note."""
    path = f"{apps(namespace, 'deployments')}/w"
    body = workload("Deployment", replicas=0)
    body["metadata"]["annotations"] = {"note": "one", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    (await api.post(apps(namespace, "deployments"), body)).ok()
    (made,) = await listed(api, apps(namespace, "replicasets"), 1)
    assert made["metadata"]["annotations"]["note"] == "one"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in made["metadata"]["annotations"]
    (await api.merge(path, {"metadata": {"annotations": {"kubernetes.io/change-cause": "two"}}})).ok()

    def noted(answer: Answer) -> bool:
        (item,) = answer.body["items"]
        return bool(item["metadata"]["annotations"].get("kubernetes.io/change-cause") == "two")

    await api.until(apps(namespace, "replicasets"), noted)

"""What the controllers of a cluster do, seen through its API; the test writes pods' states as a kubelet would."""

from __future__ import annotations

import base64

import pytest

from tests import make
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Answer, Api, Json
from tests.api_behaviour.workloads import CONTAINERS, apps, condition, is_true, job, jobs, listed, set_phase, workload
from tests.worlds import Cluster


async def test_deployment(api: Api, namespace: str) -> None:
    """A deployment makes a replica set by its template's hash, which makes the pods."""
    made = (await api.post(apps(namespace, "deployments"), workload("Deployment", replicas=2))).ok()
    (owned,) = await listed(api, apps(namespace, "replicasets"), 1)
    digest = owned["metadata"]["labels"]["pod-template-hash"]
    assert owned["metadata"]["name"] == f"w-{digest}"
    assert owned["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "w",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert owned["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert owned["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"] == "2"
    first, second = await listed(api, pods(namespace), 2)
    for pod in (first, second):
        assert pod["metadata"]["generateName"] == f"w-{digest}-"
        assert pod["metadata"]["labels"] == {"app": "a", "pod-template-hash": digest}
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"


async def test_deployment_status(api: Api, namespace: str) -> None:
    """A deployment counts its pods and says when enough are available."""
    path = apps(namespace, "deployments")
    await api.post(path, workload("Deployment", replicas=2))
    for pod in await listed(api, pods(namespace), 2):
        await set_phase(api, namespace, pod["metadata"]["name"], "Running")
    deployment = (await api.until(f"{path}/w", lambda answer: answer.ok()["status"].get("availableReplicas") == 2)).ok()
    status = deployment["status"]
    assert (status["replicas"], status["updatedReplicas"], status["readyReplicas"]) == (2, 2, 2)
    assert status["observedGeneration"] == deployment["metadata"]["generation"]
    available = (await api.until(f"{path}/w", is_true("Available"))).ok()
    assert (condition(available, "Available") or {})["reason"] == "MinimumReplicasAvailable"


async def test_deployment_rollout(api: Api, namespace: str) -> None:
    """A new template makes a new replica set and revision; the old one goes to zero as the new pods get ready."""
    path = apps(namespace, "deployments")
    await api.post(path, workload("Deployment", replicas=1))
    (old,) = await listed(api, pods(namespace), 1)
    await set_phase(api, namespace, old["metadata"]["name"], "Running")
    await api.until(f"{path}/w", lambda answer: answer.ok()["status"].get("availableReplicas") == 1)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "new"}]}}}}
    (await api.strategic(f"{path}/w", patch)).ok()
    both = await listed(api, pods(namespace), 2)
    (new,) = [pod for pod in both if pod["metadata"]["name"] != old["metadata"]["name"]]
    await set_phase(api, namespace, new["metadata"]["name"], "Running")
    await api.until(f"{pods(namespace)}/{old['metadata']['name']}", lambda answer: answer.code == 404)
    sets = await listed(api, apps(namespace, "replicasets"), 2)
    assert sorted(each["spec"]["replicas"] for each in sets) == [0, 1]
    revisions = [each["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for each in sets]
    assert sorted(revisions) == ["1", "2"]


async def test_deployment_recreate(api: Api, namespace: str) -> None:
    """The strategy Recreate takes the old pods down before it makes new ones."""
    path = apps(namespace, "deployments")
    await api.post(path, workload("Deployment", replicas=1, strategy={"type": "Recreate"}))
    (old,) = await listed(api, pods(namespace), 1)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "new"}]}}}}
    (await api.strategic(f"{path}/w", patch)).ok()
    await api.until(f"{pods(namespace)}/{old['metadata']['name']}", lambda answer: answer.code == 404)
    (new,) = await listed(api, pods(namespace), 1)
    assert new["spec"]["containers"][0]["image"] == "new"


async def test_deployment_scale(api: Api, namespace: str) -> None:
    """Scaling adds and removes pods of the same replica set."""
    path = apps(namespace, "deployments")
    await api.post(path, workload("Deployment", replicas=1))
    await listed(api, pods(namespace), 1)
    for number in (3, 0):
        (await api.merge(f"{path}/w/scale", {"spec": {"replicas": number}})).ok()
        await listed(api, pods(namespace), number)
    assert len(await listed(api, apps(namespace, "replicasets"), 1)) == 1


async def test_replica_set_replaces(api: Api, namespace: str) -> None:
    """A replica set replaces a pod that is gone or has failed."""
    await api.post(apps(namespace, "replicasets"), workload("ReplicaSet", replicas=2))
    first, second = await listed(api, pods(namespace), 2)
    (await api.delete(f"{pods(namespace)}/{first['metadata']['name']}")).ok()

    def replaced(answer: Answer) -> bool:
        names = {item["metadata"]["name"] for item in answer.ok()["items"]}
        return len(names) == 2 and first["metadata"]["name"] not in names

    await api.until(pods(namespace), replaced)
    await set_phase(api, namespace, second["metadata"]["name"], "Failed", code=1)
    await api.until(
        pods(namespace),
        lambda answer: len([1 for item in answer.ok()["items"] if item["status"]["phase"] == "Pending"]) == 2,
    )


async def test_replica_set_adopts(api: Api, namespace: str) -> None:
    """A pod that matches and belongs to nobody is adopted."""
    (await api.post(pods(namespace), make.pod("stray", namespace).label("app", "a").build())).ok()
    # A set that hears of the pod too late makes one of its own, and of two takes away the one that does not run.
    await set_phase(api, namespace, "stray", "Running")
    made = (await api.post(apps(namespace, "replicasets"), workload("ReplicaSet", replicas=1))).ok()
    answer = await api.until(f"{pods(namespace)}/stray", lambda answer: "ownerReferences" in answer.ok()["metadata"])
    assert answer.ok()["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    await listed(api, pods(namespace), 1)


async def test_stateful_set(api: Api, namespace: str) -> None:
    """A stateful set makes its pods in order, each when the one before is ready."""
    await api.post(apps(namespace, "statefulsets"), workload("StatefulSet", replicas=2, serviceName="s"))
    (first,) = await listed(api, pods(namespace), 1)
    assert first["metadata"]["name"] == "w-0"
    labels = first["metadata"]["labels"]
    assert (labels["statefulset.kubernetes.io/pod-name"], labels["apps.kubernetes.io/pod-index"]) == ("w-0", "0")
    assert labels["controller-revision-hash"].startswith("w-")
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("w-0", "s")
    await set_phase(api, namespace, "w-0", "Running")
    names = [pod["metadata"]["name"] for pod in await listed(api, pods(namespace), 2)]
    assert names == ["w-0", "w-1"]


async def test_stateful_set_parallel(api: Api, namespace: str) -> None:
    """With the policy Parallel all are made at once."""
    wanted = workload("StatefulSet", replicas=3, serviceName="s", podManagementPolicy="Parallel")
    await api.post(apps(namespace, "statefulsets"), wanted)
    names = [pod["metadata"]["name"] for pod in await listed(api, pods(namespace), 3)]
    assert names == ["w-0", "w-1", "w-2"]


async def test_stateful_set_scale_down(api: Api, namespace: str) -> None:
    """Scaling down takes the highest number first."""
    wanted = workload("StatefulSet", replicas=3, serviceName="s", podManagementPolicy="Parallel")
    await api.post(apps(namespace, "statefulsets"), wanted)
    await listed(api, pods(namespace), 3)
    (await api.merge(f"{apps(namespace, 'statefulsets')}/w/scale", {"spec": {"replicas": 1}})).ok()
    (left,) = await listed(api, pods(namespace), 1)
    assert left["metadata"]["name"] == "w-0"


async def test_stateful_set_claims(api: Api, namespace: str) -> None:
    """Every pod of a stateful set has a claim of its own from the templates."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await api.post(
        apps(namespace, "statefulsets"),
        workload("StatefulSet", replicas=1, serviceName="s", volumeClaimTemplates=[claim]),
    )
    (pod,) = await listed(api, pods(namespace), 1)
    (volume_claim,) = await listed(api, f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", 1)
    assert volume_claim["metadata"]["name"] == "data-w-0"
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    assert volumes["data"] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-w-0"}}


async def test_job(api: Api, namespace: str) -> None:
    """A job's pods carry its labels, owner and a finalizer that lasts until they are counted."""
    made = (await api.post(jobs(namespace), job())).ok()
    (pod,) = await listed(api, pods(namespace), 1)
    meta = pod["metadata"]
    assert meta["generateName"] == "j-"
    assert meta["labels"]["batch.kubernetes.io/job-name"] == "j"
    assert meta["labels"]["batch.kubernetes.io/controller-uid"] == made["metadata"]["uid"]
    assert meta["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert (meta["ownerReferences"][0]["kind"], meta["ownerReferences"][0]["controller"]) == ("Job", True)


async def test_job_completes(api: Api, namespace: str) -> None:
    """A job is complete when enough pods have succeeded; the pods stay, without the finalizer."""
    await api.post(jobs(namespace), job(completions=2, parallelism=2))
    for pod in await listed(api, pods(namespace), 2):
        await set_phase(api, namespace, pod["metadata"]["name"], "Succeeded")
    live_job = (await api.until(f"{jobs(namespace)}/j", is_true("Complete"))).ok()
    assert (live_job["status"]["succeeded"], live_job["status"].get("active", 0)) == (2, 0)
    assert live_job["status"]["completionTime"] >= live_job["status"]["startTime"]
    assert [each["type"] for each in live_job["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    for pod in await listed(api, pods(namespace), 2):
        assert "finalizers" not in pod["metadata"]


async def test_job_parallelism(api: Api, namespace: str) -> None:
    """Not more pods than the parallelism are active at once."""
    await api.post(jobs(namespace), job(completions=3, parallelism=1))
    (first,) = await listed(api, pods(namespace), 1)
    await set_phase(api, namespace, first["metadata"]["name"], "Succeeded")
    await listed(api, pods(namespace), 2)
    live_job = (
        await api.until(f"{jobs(namespace)}/j", lambda answer: answer.ok()["status"].get("succeeded") == 1)
    ).ok()
    assert live_job["status"]["active"] == 1


async def test_job_fails(api: Api, namespace: str) -> None:
    """A job without retries fails with its pod."""
    await api.post(jobs(namespace), job(backoffLimit=0))
    (pod,) = await listed(api, pods(namespace), 1)
    await set_phase(api, namespace, pod["metadata"]["name"], "Failed", code=1)
    live_job = (await api.until(f"{jobs(namespace)}/j", is_true("Failed"))).ok()
    failed = condition(live_job, "Failed") or {}
    assert (failed["reason"], failed["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    assert live_job["status"]["failed"] == 1


async def test_indexed_job(api: Api, namespace: str) -> None:
    """An indexed job gives each pod its number: name, annotation, label and host name."""
    await api.post(jobs(namespace), job(completionMode="Indexed", completions=2, parallelism=2))
    indexed = await listed(api, pods(namespace), 2)
    indexes = sorted(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in indexed)
    assert indexes == ["0", "1"]
    for pod in indexed:
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        assert pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == index
        assert pod["metadata"]["name"].startswith(f"j-{index}-")
        assert pod["spec"]["hostname"] == f"j-{index}"
        assert [each["name"] for each in pod["spec"]["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]
        await set_phase(api, namespace, pod["metadata"]["name"], "Succeeded")
    done = (await api.until(f"{jobs(namespace)}/j", is_true("Complete"))).ok()
    assert done["status"]["completedIndexes"] == "0,1"


async def test_suspended_job(api: Api, namespace: str) -> None:
    """A suspended job has no pods until it is resumed."""
    await api.post(jobs(namespace), job(suspend=True))
    await api.until(f"{jobs(namespace)}/j", is_true("Suspended"))
    assert await listed(api, pods(namespace), 0) == []
    (await api.merge(f"{jobs(namespace)}/j", {"spec": {"suspend": False}})).ok()
    await listed(api, pods(namespace), 1)
    (await api.merge(f"{jobs(namespace)}/j", {"spec": {"suspend": True}})).ok()
    await listed(api, pods(namespace), 0)


async def test_job_ttl(api: Api, namespace: str) -> None:
    """A finished job with a time to live of zero goes at once."""
    await api.post(jobs(namespace), job(ttlSecondsAfterFinished=0))
    (pod,) = await listed(api, pods(namespace), 1)
    await set_phase(api, namespace, pod["metadata"]["name"], "Succeeded")
    await api.until(f"{jobs(namespace)}/j", lambda answer: answer.code == 404)


async def test_node_not_ready(api: Api, cluster: Cluster) -> None:
    """A node that is not ready is tainted, so that nothing new comes and what is there leaves in time."""
    name, well = cluster.unique("sick"), cluster.unique("well")
    # Where most nodes of a zone are sick, Kubernetes takes itself for the one that is, and evicts nothing: these two
    # have a zone of their own, whatever nodes other tests have left.
    key, zone = "topology.kubernetes.io/zone", cluster.unique("zone")
    (await api.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {key: zone}}})).ok()
    (await api.post("/api/v1/nodes", make.node(well).label(key, zone).build())).ok()
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Test",
        "message": "x",
        "lastHeartbeatTime": "2099-01-01T00:00:00Z",
    }
    (await api.merge(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}})).ok()

    def tainted(answer: Answer) -> bool:
        taints = answer.ok()["spec"].get("taints", [])
        return {"NoSchedule", "NoExecute"} <= {
            each["effect"] for each in taints if each["key"] == "node.kubernetes.io/not-ready"
        }

    await api.until(f"/api/v1/nodes/{name}", tainted)
    (
        await api.merge(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [{**condition, "status": "True"}]}})
    ).ok()
    await api.until(f"/api/v1/nodes/{name}", lambda answer: not answer.ok()["spec"].get("taints"))
    for each in (name, well):
        (await api.delete(f"/api/v1/nodes/{each}")).ok()


async def test_cordon_taint(api: Api, cluster: Cluster) -> None:
    """A cordoned node is tainted as unschedulable."""
    name = cluster.unique("cordoned")
    (await api.post("/api/v1/nodes", make.node(name).build())).ok()
    (await api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})).ok()
    answer = await api.until(
        f"/api/v1/nodes/{name}",
        lambda answer: (
            "node.kubernetes.io/unschedulable" in [each["key"] for each in answer.ok()["spec"].get("taints", [])]
        ),
    )
    (taint,) = [each for each in answer.ok()["spec"]["taints"] if each["key"] == "node.kubernetes.io/unschedulable"]
    assert taint["effect"] == "NoSchedule"
    (await api.delete(f"/api/v1/nodes/{name}")).ok()


async def test_static_volume(api: Api, cluster: Cluster, namespace: str) -> None:
    """A claim without a class is bound to a volume that fits, and both say so."""
    name = cluster.unique("pv")
    amount = {"storage": "1Gi"}
    volume = {
        "capacity": amount,
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
        "claimRef": {"namespace": namespace, "name": "c"},
    }
    (await api.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})).ok()
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": amount},
        "storageClassName": "",
        "volumeName": name,
    }
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    made = (await api.post(path, {"metadata": {"name": "c"}, "spec": claim})).ok()
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert made["status"] == {"phase": "Pending"}
    bound = (await api.until(f"{path}/c", lambda answer: answer.ok()["status"]["phase"] == "Bound")).ok()
    assert (bound["spec"]["volumeName"], bound["status"]["capacity"]) == (name, amount)
    live_volume = (
        await api.until(f"/api/v1/persistentvolumes/{name}", lambda answer: answer.ok()["status"]["phase"] == "Bound")
    ).ok()
    assert live_volume["spec"]["claimRef"]["uid"] == made["metadata"]["uid"]


async def test_claim_waits_for_consumer(api: Api, cluster: Cluster, namespace: str) -> None:
    """A claim of a class that waits for its first consumer stays pending."""
    name = cluster.unique("wait")
    storage_class = {
        "metadata": {"name": name},
        "provisioner": "example.com/none",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    (await api.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)).ok()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": name}
    (
        await api.post(
            f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": claim}
        )
    ).ok()
    events = await api.until(
        f"/api/v1/namespaces/{namespace}/events",
        lambda answer: bool(answer.ok()["items"]),
        fieldSelector="involvedObject.name=c,reason=WaitForFirstConsumer",
    )
    assert events.ok()["items"][0]["message"] == "waiting for first consumer to be created before binding"


async def test_resource_claim_from_template(api: Api, namespace: str) -> None:
    """A pod that names a claim template gets a claim of its own, and its status says which."""
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}
    dra = f"/apis/resource.k8s.io/v1/namespaces/{namespace}"
    (
        await api.post(
            f"{dra}/resourceclaimtemplates", {"metadata": {"name": "t"}, "spec": {"spec": {"devices": devices}}}
        )
    ).ok()
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    (await api.post(pods(namespace), wanted)).ok()
    (claim,) = await listed(api, f"{dra}/resourceclaims", 1)
    assert claim["metadata"]["generateName"] == "a-gpu-"
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    answer = await api.until(f"{pods(namespace)}/a", lambda answer: "resourceClaimStatuses" in answer.ok()["status"])
    expected = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
    assert answer.ok()["status"]["resourceClaimStatuses"] == expected


async def test_token_secret(api: Api, namespace: str) -> None:
    """A secret of the token type is filled for its account."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    meta = {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}}
    (await api.post(path, {"metadata": meta, "type": "kubernetes.io/service-account-token"})).ok()
    answer = await api.until(f"{path}/t", lambda answer: "token" in (answer.ok().get("data") or {}))
    assert set(answer.ok()["data"]) == {"ca.crt", "namespace", "token"}
    # The token names no audience, and a review of it said that it was meant for nobody.
    token = base64.b64decode(answer.ok()["data"]["token"]).decode()
    review = (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})).ok()
    assert review["status"]["authenticated"]
    assert review["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:default"


async def test_budget_of_deployment(api: Api, namespace: str) -> None:
    """A percentage budget counts what the pods' controllers want."""
    await api.post(apps(namespace, "deployments"), workload("Deployment", replicas=3))
    for pod in await listed(api, pods(namespace), 3):
        await set_phase(api, namespace, pod["metadata"]["name"], "Running")
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": "50%"}
    (await api.post(path, {"metadata": {"name": "b"}, "spec": spec})).ok()
    answer = await api.until(f"{path}/b", lambda answer: answer.ok()["status"].get("currentHealthy") == 3)
    status = answer.ok()["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [({"maxUnavailable": 1}, 2, 1), ({"maxUnavailable": "34%"}, 1, 2), ({"minAvailable": 5}, 5, 0)],
)
async def test_budget_bounds(api: Api, namespace: str, spec: Json, desired: int, allowed: int) -> None:
    """A budget may say how many must be there or how many may be missing."""
    await api.post(apps(namespace, "replicasets"), workload("ReplicaSet", replicas=3))
    for pod in await listed(api, pods(namespace), 3):
        await set_phase(api, namespace, pod["metadata"]["name"], "Running")
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    (
        await api.post(path, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec}})
    ).ok()
    answer = await api.until(f"{path}/b", lambda answer: answer.ok()["status"].get("currentHealthy") == 3)
    status = answer.ok()["status"]
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)


async def test_paused_deployment(api: Api, namespace: str) -> None:
    """A paused deployment rolls nothing out and says that it is paused."""
    path = apps(namespace, "deployments")
    await api.post(path, workload("Deployment", replicas=1, paused=True))
    deployment = (await api.until(f"{path}/w", lambda answer: condition(answer.ok(), "Progressing") is not None)).ok()
    paused = condition(deployment, "Progressing") or {}
    assert (paused["status"], paused["reason"], paused["message"]) == (
        "Unknown",
        "DeploymentPaused",
        "Deployment is paused",
    )
    assert (await api.get(apps(namespace, "replicasets"))).ok()["items"] == []


async def test_daemon_set(api: Api, cluster: Cluster, namespace: str) -> None:
    """A DaemonSet makes a pod for each of its nodes, which can go nowhere else."""
    name = cluster.unique("node")
    (await api.post("/api/v1/nodes", make.node(name).label("only", name).build())).ok()
    body = workload("DaemonSet")
    body["spec"]["template"]["spec"] = {
        "containers": CONTAINERS,
        "nodeSelector": {"only": name},
        "tolerations": [{"operator": "Exists"}],
    }
    (await api.post(apps(namespace, "daemonsets"), body)).ok()
    (pod,) = await listed(api, pods(namespace), 1)
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert affinity["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    ]
    assert {"app", "controller-revision-hash", "pod-template-generation"} <= pod["metadata"]["labels"].keys()
    answer = await api.until(
        f"{apps(namespace, 'daemonsets')}/w", lambda answer: answer.body["status"]["currentNumberScheduled"] == 1
    )
    assert answer.ok()["status"]["desiredNumberScheduled"] == 1
    await api.delete(f"/api/v1/nodes/{name}")

"""What the server fills in: defaults of fields, first statuses, and what it drops because it is empty."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.deployments import deployment, deployments
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api, Json


async def test_pod_defaults(api: Api, namespace: str) -> None:
    """A pod gets the defaults of Kubernetes."""
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", make.pod("a", namespace).build())).ok()
    spec = body["spec"]
    expected = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert {key: spec.get(key) for key in expected} == expected
    (container,) = spec["containers"]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"] == {}
    assert body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_pod_tolerations(api: Api, namespace: str) -> None:
    """A pod tolerates a node's failure for five minutes."""
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", make.pod("a", namespace).build())).ok()
    assert body["spec"]["tolerations"] == [
        {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for trouble in ("not-ready", "unreachable")
    ]


async def test_pod_token_volume(api: Api, namespace: str) -> None:
    """A pod gets its service account's token as a projected volume, mounted in every container."""
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", make.pod("a", namespace).build())).ok()
    (volume,) = body["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    (mount,) = body["spec"]["containers"][0]["volumeMounts"]
    assert mount == {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }


async def test_no_token_volume(api: Api, namespace: str) -> None:
    """A pod that wants no token gets none."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["automountServiceAccountToken"] = False
    assert "volumes" not in (await api.post(f"/api/v1/namespaces/{namespace}/pods", wanted)).ok()["spec"]


PULLS = {"busybox": "Always", "busybox:latest": "Always", "busybox:1.36": "IfNotPresent", "host:5000/busybox": "Always"}


@pytest.mark.parametrize("image", PULLS)
async def test_pull_policy(api: Api, namespace: str, image: str) -> None:
    """An image with a fixed tag is pulled once."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["containers"][0]["image"] = image
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", wanted)).ok()
    assert body["spec"]["containers"][0]["imagePullPolicy"] == PULLS[image]


QOS: dict[str, tuple[Json, str]] = {
    "none": ({}, "BestEffort"),
    "requests": ({"requests": {"cpu": "1"}}, "Burstable"),
    "equal": ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    "limits-only": ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    "half": ({"limits": {"cpu": "1"}}, "Burstable"),
    "extended-only": ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
}


@pytest.mark.parametrize("case", QOS)
async def test_quality_of_service(api: Api, namespace: str, case: str) -> None:
    """The class of service follows from requests and limits."""
    resources, expected = QOS[case]
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["containers"][0]["resources"] = resources
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", wanted)).ok()
    assert body["status"]["qosClass"] == expected


async def test_limits_become_requests(api: Api, namespace: str) -> None:
    """A limit without a request is also the request; quantities are written in their canonical form."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 2}}
    body = (await api.post(f"/api/v1/namespaces/{namespace}/pods", wanted)).ok()
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"}
    assert body["spec"]["containers"][0]["resources"] == {"limits": amounts, "requests": amounts}


async def test_priority_class(api: Api, namespace: str) -> None:
    """A pod's class is resolved to its number on creation."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"]["priorityClassName"] = "system-cluster-critical"
    await api.until("/api/v1/namespaces/kube-system/serviceaccounts/default", lambda answer: answer.code == 200)
    body = (
        await api.post(
            "/api/v1/namespaces/kube-system/pods", {**wanted, "metadata": {"generateName": "p-"}}, dryRun="All"
        )
    ).ok()
    assert body["spec"]["priority"] == 2000000000


async def test_own_priority_class(api: Api, namespace: str) -> None:
    """A class of the user's carries value and preemption policy to the pod."""
    name = f"pc-{namespace}"
    wanted = {"metadata": {"name": name}, "value": 77, "preemptionPolicy": "Never", "description": "x"}
    (await api.post("/apis/scheduling.k8s.io/v1/priorityclasses", wanted)).ok()
    pod = make.pod("a", namespace).build()
    pod["spec"]["priorityClassName"] = name
    pods = f"/api/v1/namespaces/{namespace}/pods"
    # Admission takes a moment to notice a new class, and refuses the pod until then.
    made = await api.repeat(lambda: api.post(pods, pod), lambda answer: answer.code != 403)
    spec = made.ok()["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (77, "Never")
    (await api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).ok()


@pytest.mark.parametrize(
    ("name", "value"), [("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)]
)
async def test_system_classes(api: Api, name: str, value: int) -> None:
    """The two system classes are there."""
    assert (await api.get(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).ok()["value"] == value


async def test_deployment_defaults(api: Api, namespace: str) -> None:
    """A deployment gets strategy, history limit and deadline."""
    spec = (await api.post(deployments(namespace), deployment())).ok()["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert spec["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


async def test_job_defaults(api: Api, namespace: str) -> None:
    """A job gets a selector by its UID and the labels for it."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}}
    body = (
        await api.post(
            f"/apis/batch/v1/namespaces/{namespace}/jobs",
            {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template}},
        )
    ).ok()
    spec, uid = body["spec"], body["metadata"]["uid"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["podReplacementPolicy"], spec["manualSelector"]) == (
        "NonIndexed",
        "TerminatingOrFailed",
        False,
    )
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }


async def test_service_defaults(api: Api, namespace: str) -> None:
    """A service gets an address and its ports' defaults."""
    body = (
        await api.post(
            f"/api/v1/namespaces/{namespace}/services",
            {"metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
        )
    ).ok()
    spec = body["spec"]
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert spec["clusterIP"].startswith("10.0.0.")
    assert (spec["type"], spec["sessionAffinity"], spec["clusterIPs"]) == ("ClusterIP", "None", [spec["clusterIP"]])
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"], spec["internalTrafficPolicy"]) == (
        ["IPv4"],
        "SingleStack",
        "Cluster",
    )
    assert body["status"] == {"loadBalancer": {}}


async def test_headless_service(api: Api, namespace: str) -> None:
    """A headless service keeps None."""
    spec = {"clusterIP": "None", "selector": {"app": "a"}}
    body = (await api.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "a"}, "spec": spec})).ok()
    assert (body["spec"]["clusterIP"], body["spec"]["clusterIPs"]) == ("None", ["None"])


async def test_node_defaults(api: Api, namespace: str) -> None:
    """A node registers not ready: the taint is put on by admission."""
    name = f"node-{namespace}"
    body = (await api.post("/api/v1/nodes", {"metadata": {"name": name}})).ok()
    assert body["spec"] == {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    assert "status" in body
    await api.delete(f"/api/v1/nodes/{name}")


async def test_statefulset_defaults(api: Api, namespace: str) -> None:
    """A stateful set updates by rolling, in order."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "x"}]}}
    spec = {"replicas": 0, "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = (
        await api.post(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", {"metadata": {"name": "a"}, "spec": spec})
    ).ok()
    assert body["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert (body["spec"]["podManagementPolicy"], body["spec"]["revisionHistoryLimit"]) == ("OrderedReady", 10)


async def test_autoscaler_defaults(api: Api, namespace: str) -> None:
    """An autoscaler without metrics looks at CPU, and keeps at least one replica."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    spec = (
        await api.post(path, {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}})
    ).ok()["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ]


async def test_empty_values_are_dropped(api: Api, namespace: str) -> None:
    """Empty maps and lists of optional fields are not kept."""
    wanted = make.config_map("a")
    wanted["metadata"] |= {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    meta = (await api.post(maps(namespace), wanted)).ok()["metadata"]
    assert not {"labels", "annotations", "finalizers", "ownerReferences"} & set(meta)


SELECTED = {"selector": {"matchLabels": {"a": "b"}}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "x"}]}}
ALWAYS: dict[str, tuple[str, Json, Json]] = {
    "stateful-set": (
        "/apis/apps/v1/namespaces/{ns}/statefulsets",
        {"spec": {"replicas": 0, "serviceName": "s", "template": TEMPLATE, **SELECTED}},
        {"replicas": 0, "availableReplicas": 0},
    ),
    "replica-set": (
        "/apis/apps/v1/namespaces/{ns}/replicasets",
        {"spec": {"replicas": 0, "template": TEMPLATE, **SELECTED}},
        {"replicas": 0},
    ),
    "budget": (
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        {"spec": {"minAvailable": 1, **SELECTED}},
        {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    ),
    "deployment": ("/apis/apps/v1/namespaces/{ns}/deployments", {"spec": {"template": TEMPLATE, **SELECTED}}, {}),
    "job": (
        "/apis/batch/v1/namespaces/{ns}/jobs",
        {"spec": {"suspend": True, "template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
        {},
    ),
}


@pytest.mark.parametrize("case", ALWAYS)
async def test_first_status(api: Api, namespace: str, case: str) -> None:
    """A new object's status has the counts that are always there, as zeros, and nothing else."""
    path, body, status = ALWAYS[case]
    made = (await api.post(path.replace("{ns}", namespace), {"metadata": {"name": "a"}, **body}, dryRun="All")).ok()
    assert made["status"] == status


async def test_zeros_are_dropped(api: Api, namespace: str) -> None:
    """Optional members that are empty, zero or false are not kept, unless they say something."""
    wanted = make.pod("a", namespace).build()
    wanted["spec"] |= {"hostNetwork": False, "hostname": "", "schedulerName": "", "automountServiceAccountToken": False}
    wanted["spec"]["containers"][0] |= {"stdin": False, "workingDir": "", "env": [{"name": "A", "value": ""}]}
    spec = (await api.post(f"/api/v1/namespaces/{namespace}/pods", wanted)).ok()["spec"]
    assert not {"hostNetwork", "hostname"} & set(spec)
    assert (spec["schedulerName"], spec["automountServiceAccountToken"]) == ("default-scheduler", False)
    (container,) = spec["containers"]
    assert not {"stdin", "workingDir"} & set(container)
    assert container["env"] == [{"name": "A"}]


async def test_empty_class_is_kept(api: Api, namespace: str) -> None:
    """An empty storage class is a choice, and stays."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    made = (await api.post(path, {"metadata": {"name": "a"}, "spec": spec}, dryRun="All")).ok()
    assert made["spec"]["storageClassName"] == ""

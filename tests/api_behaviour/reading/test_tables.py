"""What `kubectl get` shows of built-in kinds in many states; cells that hold an age read AGE, old ones YEARS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api_behaviour.media_types import TABLE
from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster

LONG_AGO = "2001-01-01T00:00:00Z"


@dataclass(frozen=True)
class Row:
    """An object, the status that is written to it, and its cells; None where a cell may be anything."""

    path: str
    cells: list[Any]
    body: Json
    status: Json | None = None


def pod(cells: list[Any], status: Json, inits: tuple[Json, ...] = (), **spec: Any) -> Row:
    """A pod with two containers, and what the table says of its readiness, state and restarts."""
    containers = [{"name": name, "image": "busybox"} for name in ("a", "b")]
    body = {"spec": {"containers": containers, "initContainers": list(inits), **spec}}
    return Row("/api/v1/namespaces/{ns}/pods", ["x", *cells], body, status)


def state(name: str, restarts: int = 0, **rest: Any) -> Json:
    """One container's status."""
    container_fields = {key: rest.pop(key) for key in ("ready", "started", "lastState") if key in rest}
    return {
        "name": name,
        "image": "busybox",
        "imageID": "",
        "restartCount": restarts,
        "state": rest,
        **container_fields,
    }


def holds(*kinds: str) -> list[Json]:
    """Conditions that hold."""
    return [{"type": kind, "status": "True"} for kind in kinds]


INIT: Json = {"name": "i", "image": "busybox"}
BESIDE: Json = {"name": "s", "image": "busybox", "restartPolicy": "Always"}
DONE: Json = {"exitCode": 0, "reason": "Completed"}
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "a", "b": "c"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]},
}
PODS = {
    "one-of-two-done": pod(
        ["1/2", "NotReady", "0", "AGE", "<none>", "<none>", "<none>", "<none>"],
        {"phase": "Running", "containerStatuses": [state("a", terminated=DONE), state("b", running={}, ready=True)]},
    ),
    "one-of-two-done-and-ready": pod(
        ["1/2", "Running"],
        {
            "phase": "Running",
            "conditions": holds("Ready"),
            "containerStatuses": [state("a", terminated=DONE), state("b", running={}, ready=True)],
        },
    ),
    "one-done-one-failed": pod(
        ["0/2", "Error"],
        {
            "phase": "Running",
            "containerStatuses": [
                state("a", terminated=DONE),
                state("b", terminated={"exitCode": 1, "reason": "Error"}),
            ],
        },
    ),
    "ready-but-waiting": pod(
        ["0/2", "ImagePullBackOff"],
        {
            "phase": "Pending",
            "containerStatuses": [state("a", waiting={"reason": "ImagePullBackOff"}, ready=True), state("b")],
        },
    ),
    "restarted": pod(
        ["1/2", "Running", "3 (YEARS ago)"],
        {
            "phase": "Running",
            "containerStatuses": [
                state("a", 2, running={}, lastState={"terminated": {"exitCode": 1, "finishedAt": LONG_AGO}}),
                state("b", 1, running={}, ready=True),
            ],
        },
    ),
    "init-restarts": pod(
        ["0/2", "Init:CrashLoopBackOff", "4"],
        {
            "phase": "Pending",
            "initContainerStatuses": [state("i", 4, waiting={"reason": "CrashLoopBackOff"})],
            "containerStatuses": [state("a", waiting={"reason": "PodInitializing"}), state("b")],
        },
        (INIT,),
    ),
    "after-init": pod(
        ["1/2", "Running", "1"],
        {
            "phase": "Running",
            "initContainerStatuses": [state("i", 4, terminated=DONE)],
            "containerStatuses": [state("a", 1, running={}, ready=True)],
        },
        (INIT,),
    ),
    "sidecar": pod(
        ["2/3", "Running", "3"],
        {
            "phase": "Running",
            "initContainerStatuses": [state("s", 2, running={}, ready=True, started=True)],
            "containerStatuses": [state("a", 1, running={}, ready=True)],
        },
        (BESIDE,),
    ),
    "sidecar-starts": pod(
        ["0/3", "Init:0/1", "2"],
        {"phase": "Pending", "initContainerStatuses": [state("s", 2, running={}, started=False)]},
        (BESIDE,),
    ),
    "initialized-for-sure": pod(
        ["1/3", "Running", "2"],
        {
            "phase": "Running",
            "conditions": holds("Initialized", "Ready"),
            "initContainerStatuses": [state("s", 2, terminated={"exitCode": 1}, started=False)],
            "containerStatuses": [state("a", running={}, ready=True), state("b", terminated=DONE)],
        },
        (BESIDE,),
    ),
    "gates": pod(
        ["0/2", "Running", "0", "AGE", "1.2.3.4", "<none>", "n", "1/2"],
        {
            "phase": "Running",
            "podIP": "1.2.3.4",
            "podIPs": [{"ip": "1.2.3.4"}],
            "nominatedNodeName": "n",
            "conditions": holds("example.com/one"),
        },
        readinessGates=[{"conditionType": "example.com/one"}, {"conditionType": "example.com/two"}],
    ),
}

SERVICES = "/api/v1/namespaces/{ns}/services"
BALANCED: Json = {"loadBalancer": {"ingress": [{"ip": "5.5.5.5"}, {"hostname": "x.example"}, {"ip": "1.1.1.1"}]}}
EVENTS = "/api/v1/namespaces/{ns}/events"
ABOUT: Json = {"kind": "Pod", "namespace": "{ns}", "name": "p"}
EVENT: Json = {"reason": "Because", "type": "Normal", "message": " two \nlines ", "involvedObject": ABOUT}
NEW_EVENT: Json = {
    "eventTime": "2001-01-01T00:00:00.000000Z",
    "reportingComponent": "example.com/who",
    "reportingInstance": "where",
    "action": "Act",
}
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
BACKEND: Json = {"service": {"name": "s", "port": {"number": 80}}}
NETWORK = {
    "service": Row(
        SERVICES,
        ["x", "ClusterIP", None, "<none>", "80/TCP,53/UDP", "AGE", "a=1,b=2"],
        {
            "spec": {
                "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}],
                "selector": {"b": "2", "a": "1"},
            }
        },
    ),
    "headless": Row(SERVICES, ["x", "ClusterIP", "None", "<none>", "<none>"], {"spec": {"clusterIP": "None"}}),
    "external-addresses": Row(
        SERVICES,
        ["x", "ClusterIP", None, "9.9.9.9,8.8.8.8"],
        {"spec": {"ports": [{"port": 80}], "externalIPs": ["9.9.9.9", "8.8.8.8"]}},
    ),
    "external-name": Row(
        SERVICES,
        ["x", "ExternalName", "<none>", "x.example", "<none>"],
        {"spec": {"type": "ExternalName", "externalName": "x.example"}},
    ),
    "balancer-waits": Row(
        SERVICES, ["x", "LoadBalancer", None, "<pending>"], {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    ),
    "balancer": Row(
        SERVICES,
        ["x", "LoadBalancer", None, "1.1.1.1,5.5.5.5,x.example,9.9.9.9"],
        {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}], "externalIPs": ["9.9.9.9"]}},
        BALANCED,
    ),
    "endpoints": Row(
        "/api/v1/namespaces/{ns}/endpoints",
        ["x", "1.1.1.1:1,1.1.1.2:1,1.1.1.1:2 + 1 more...", "AGE"],
        {
            "subsets": [
                {
                    "addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}],
                    "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}],
                }
            ]
        },
    ),
    "slice": Row(
        SLICES,
        ["x", "IPv4", "1,2,3 + 1 more...", "1.1.1.1,1.1.1.2,1.1.1.3 + 2 more...", "AGE"],
        {
            "addressType": "IPv4",
            "ports": [{"name": f"p{number}", "port": number} for number in (1, 2, 3, 4)],
            "endpoints": [{"addresses": [f"1.1.1.{number}"]} for number in (1, 2, 3, 4, 5)],
        },
    ),
    "ingress": Row(
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        ["x", "c", "a.example,b.example,d.example + 2 more...", "1.1.1.1,5.5.5.5,x.example", "80, 443", "AGE"],
        {
            "spec": {
                "ingressClassName": "c",
                "tls": [{"hosts": ["a.example"]}],
                "rules": [
                    {
                        "host": f"{name}.example",
                        "http": {"paths": [{"pathType": "Prefix", "path": "/", "backend": BACKEND}]},
                    }
                    for name in "abdef"
                ],
            }
        },
        BALANCED,
    ),
    "old-event": Row(
        EVENTS,
        ["YEARS", "Normal", "Because", "pod/p", "", "who, where", "two \nlines", "YEARS", 7, "x"],
        EVENT
        | {
            "firstTimestamp": LONG_AGO,
            "lastTimestamp": LONG_AGO,
            "count": 7,
            "source": {"component": "who", "host": "where"},
        },
    ),
    "new-event": Row(
        EVENTS,
        ["YEARS", "Normal", "Because", "pod/p", "", "example.com/who, where", "two \nlines", "YEARS", 1, "x"],
        EVENT | NEW_EVENT,
    ),
}

SCALERS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"


def scaler(cells: list[Any], metrics: list[Json], current: list[Json]) -> Row:
    """An autoscaler with metrics and their current values."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {"spec": {"scaleTargetRef": reference, "maxReplicas": 5, "metrics": metrics}}
    status = {"currentReplicas": 3, "desiredReplicas": 3, "currentMetrics": current}
    return Row(SCALERS, ["x", "Deployment/d", *cells, "1", 5], body, status)


def resource(name: str, **values: Any) -> Json:
    """A metric of a resource: its target or its current value."""
    return {"type": "Resource", "resource": {"name": name, **values}}


WORKLOADS = {
    "job": Row(
        "/apis/batch/v1/namespaces/{ns}/jobs",
        ["x", "Running", "2/5", "YEARS", "AGE", "a,b", "one,two"],
        {"spec": {"managedBy": "example.com/me", "parallelism": 3, "completions": 5, "template": TEMPLATE}},
        {"startTime": LONG_AGO, "succeeded": 2},
    ),
    "job-of-work-queue": Row(
        "/apis/batch/v1/namespaces/{ns}/jobs",
        ["x", "Running", "0/1 of 3", "", "AGE", "a,b", "one,two"],
        {"spec": {"managedBy": "example.com/me", "parallelism": 3, "template": TEMPLATE}},
    ),
    "suspended-job": Row(
        "/apis/batch/v1/namespaces/{ns}/jobs",
        ["x", "Suspended", "0/1", "", "AGE", "a,b", "one,two"],
        {"spec": {"managedBy": "example.com/me", "suspend": True, "template": TEMPLATE}},
        {"conditions": holds("Suspended")},
    ),
    "cron-job": Row(
        "/apis/batch/v1/namespaces/{ns}/cronjobs",
        ["x", "@yearly", "Europe/Berlin", "True", 0, "<none>", "AGE", "a,b", "one,two", "<none>"],
        {
            "spec": {
                "schedule": "@yearly",
                "timeZone": "Europe/Berlin",
                "suspend": True,
                "jobTemplate": {"spec": {"template": TEMPLATE}},
            }
        },
    ),
    "no-metrics-yet": scaler(
        ["cpu: <unknown>/50%"], [resource("cpu", target={"type": "Utilization", "averageUtilization": 50})], []
    ),
    "metrics": scaler(
        ["memory: 50Mi/100Mi, cpu: 40%/50% + 1 more..."],
        [
            resource("memory", target={"type": "AverageValue", "averageValue": "100Mi"}),
            resource("cpu", target={"type": "Utilization", "averageUtilization": 50}),
            {
                "type": "Pods",
                "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}},
            },
        ],
        [
            resource("memory", current={"averageValue": "50Mi"}),
            resource("cpu", current={"averageUtilization": 40, "averageValue": "1"}),
        ],
    ),
    "lease": Row("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", ["x", "", "AGE"], {"spec": {}}),
}
ROWS = {**PODS, **NETWORK, **WORKLOADS}


def read(cells: list[Any]) -> list[Any]:
    """Cells, with young ages as AGE, and those of long ago, which grow too, as YEARS."""
    years = [re.sub(r"\b\d+y\b", "YEARS", cell) if isinstance(cell, str) else cell for cell in cells]
    return ["AGE" if isinstance(cell, str) and re.fullmatch(r"\d+s|\dm\d*s?", cell) else cell for cell in years]


def placed(value: Any, namespace: str) -> Any:
    """The same, in a namespace."""
    if isinstance(value, dict):
        return {key: placed(item, namespace) for key, item in value.items()}
    if isinstance(value, list):
        return [placed(item, namespace) for item in value]
    return value.replace("{ns}", namespace) if isinstance(value, str) else value


async def made(api: Api, row: Row, namespace: str, name: str = "x") -> str:
    """Make the object of a row; its path."""
    path = row.path.replace("{ns}", namespace)
    (await api.post(path, {**placed(row.body, namespace), "metadata": {"name": name}})).ok()
    if row.status is not None:
        (await api.merge(f"{path}/{name}/status", {"status": row.status})).ok()
    return f"{path}/{name}"


@pytest.mark.parametrize("case", ROWS)
async def test_row(api: Api, namespace: str, case: str) -> None:
    """The cells say of an object what kubectl shows of it."""
    row = ROWS[case]
    path = await made(api, row, namespace)
    (shown,) = (await api.with_headers(accept=TABLE).get(path)).ok()["rows"]
    cells = read(shown["cells"])[: len(row.cells)]
    assert [None if wanted is None else cell for cell, wanted in zip(cells, row.cells, strict=True)] == row.cells


ENDED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


@pytest.mark.parametrize("phase", [*ENDED, "Running"])
async def test_row_of_an_ended_pod(api: Api, namespace: str, phase: str) -> None:
    """The row of a pod that ended is marked as completed."""
    path = await made(api, pod([], {"phase": phase}), namespace)
    (row,) = (await api.with_headers(accept=TABLE).get(path)).ok()["rows"]
    wanted = [{"type": "Completed", "status": "True", "reason": phase, "message": ENDED.get(phase)}]
    assert row.get("conditions") == (wanted if phase in ENDED else None)


NODE: Json = {
    "conditions": [{"type": "Ready", "status": "True"}],
    "addresses": [{"type": "InternalIP", "address": "2.2.2.2"}, {"type": "InternalIP", "address": "3.3.3.3"}],
    "nodeInfo": {
        **dict.fromkeys(
            ("machineID", "systemUUID", "bootID", "kubeProxyVersion", "operatingSystem", "architecture"), ""
        ),
        "kernelVersion": "6.1",
        "osImage": "",
        "containerRuntimeVersion": "none://1",
        "kubeletVersion": "v1.35.4",
    },
}
CLUSTER_WIDE = {
    "node": Row(
        "/api/v1/nodes",
        [
            "Ready,SchedulingDisabled",
            "old,worker",
            "AGE",
            "v1.35.4",
            "2.2.2.2",
            "<none>",
            "<unknown>",
            "6.1",
            "none://1",
        ],
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "old"}},
            "spec": {"unschedulable": True},
            "status": NODE,
        },
    ),
    "volume": Row(
        "/api/v1/persistentvolumes",
        ["1Gi", "RWO,ROX,RWX", "Retain", None, "", "old", "<unset>"],
        {
            "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"],
                "hostPath": {"path": "/x"},
            },
        },
    ),
}


@pytest.mark.parametrize("case", CLUSTER_WIDE)
async def test_row_of_no_namespace(api: Api, cluster: Cluster, case: str) -> None:
    """So do the cells of what is in no namespace."""
    row, name = CLUSTER_WIDE[case], cluster.unique("row")
    metadata = {**row.body.get("metadata", {}), "name": name}
    (await api.post(row.path, {**row.body, "metadata": metadata})).ok()
    (shown,) = (await api.with_headers(accept=TABLE).get(f"{row.path}/{name}")).ok()["rows"]
    await api.delete(f"{row.path}/{name}")
    cells = read(shown["cells"])[1 : len(row.cells) + 1]
    assert shown["cells"][0] == name
    assert [None if wanted is None else cell for cell, wanted in zip(cells, row.cells, strict=True)] == row.cells

"""Resource quotas: what a namespace may hold, and what it holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests import make
from tests.api_behaviour.quotas import enforced, noticed, path
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster


async def quota(api: Api, namespace: str, **hard: str) -> Json:
    """A quota, once what it limits is counted."""
    named = {key.replace("_", "."): value for key, value in hard.items()}
    (await api.post(path(namespace, "resourcequotas"), {"metadata": {"name": "q"}, "spec": {"hard": named}})).ok()
    answer = await api.until(
        f"{path(namespace, 'resourcequotas')}/q", lambda answer: "used" in (answer.ok().get("status") or {})
    )
    status: Json = answer.ok()["status"]
    assert status["hard"] == named
    await noticed(api, namespace)
    return status


def pod(namespace: str, name: str, **requests: str) -> Json:
    """A pod that asks for resources."""
    return make.pod(name, namespace).resources(requests=requests).build()


async def test_status(api: Api, namespace: str) -> None:
    """A quota's status follows what is made and deleted."""
    assert (await quota(api, namespace, pods="2", requests_cpu="4"))["used"] == {"pods": "0", "requests.cpu": "0"}
    (await api.post(path(namespace, "pods"), pod(namespace, "a", cpu="500m"))).ok()
    address = f"{path(namespace, 'resourcequotas')}/q"
    await api.until(address, lambda answer: answer.ok()["status"]["used"] == {"pods": "1", "requests.cpu": "500m"})
    (await api.delete(f"{path(namespace, 'pods')}/a")).ok()
    await api.until(address, lambda answer: answer.ok()["status"]["used"] == {"pods": "0", "requests.cpu": "0"})


async def test_exceeded(api: Api, namespace: str) -> None:
    """What goes beyond is forbidden, with what was asked for, what is used and the limit."""
    await quota(api, namespace, pods="5", requests_cpu="1")
    (await api.post(path(namespace, "pods"), pod(namespace, "a", cpu="2"))).refused(
        403,
        "Forbidden",
        'pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, '
        "limited: requests.cpu=1",
    )


async def test_must_be_said(api: Api, namespace: str) -> None:
    """Where requests are limited, a container that makes none is forbidden."""
    await quota(api, namespace, requests_cpu="1")
    (await api.post(path(namespace, "pods"), pod(namespace, "a"))).refused(
        403, "Forbidden", 'pods "a" is forbidden: failed quota: q: must specify requests.cpu for: main'
    )


async def test_counts(api: Api, namespace: str) -> None:
    """Objects of any kind can be counted."""
    await quota(api, namespace, secrets="1")
    (await api.post(path(namespace, "secrets"), {"metadata": {"name": "a"}})).ok()
    (await api.post(path(namespace, "secrets"), {"metadata": {"name": "b"}})).refused(
        403,
        "Forbidden",
        'secrets "b" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1',
    )


async def forbidden(act: Callable[[], Awaitable[Answer]], api: Api) -> str:
    """Why something is forbidden, once the server that has to know of the quota does."""
    return (await api.repeat(act, lambda answer: answer.code == 403)).message


def scoped(scope: str, operator: str = "", *values: str, **hard: str) -> Json:
    """A quota that holds for some objects only."""
    limits = {name.replace("__", "/").replace("_", "."): amount for name, amount in hard.items()}
    if not operator:
        return {"hard": limits, "scopes": [scope]}
    expression = {"scopeName": scope, "operator": operator, **({"values": list(values)} if values else {})}
    return {"hard": limits, "scopeSelector": {"matchExpressions": [expression]}}


SMALL = {"cpu": "1m", "memory": "1Mi"}
ELSEWHERE = [{"topologyKey": "kubernetes.io/hostname", "namespaceSelector": {}}]
# A scope, and for a pod without anything, with requests, with a deadline, of a class, with affinity: does it hold?
SCOPES: dict[str, tuple[Json, str]] = {
    "terminating": (scoped("Terminating", pods="0"), "deadline"),
    "not-terminating": (scoped("NotTerminating", pods="0"), "bare requests class affinity"),
    "best-effort": (scoped("BestEffort", pods="0"), "bare deadline class affinity"),
    "not-best-effort": (scoped("NotBestEffort", pods="0"), "requests"),
    "class-in": (scoped("PriorityClass", "In", "system-node-critical", "other", pods="0"), ""),
    "class-not-in": (
        scoped("PriorityClass", "NotIn", "system-node-critical", pods="0"),
        "bare requests deadline class affinity",
    ),
    "class": (scoped("PriorityClass", "Exists", pods="0"), "class"),
    "no-class": (scoped("PriorityClass", "DoesNotExist", pods="0"), "bare requests deadline affinity"),
    "affinity": (scoped("CrossNamespacePodAffinity", pods="0"), "affinity"),
}


@pytest.mark.parametrize("case", SCOPES)
async def test_scope(api: Api, cluster: Cluster, namespace: str, case: str) -> None:
    """A quota with a scope holds for the pods that it covers."""
    spec, covered = SCOPES[case]
    name = cluster.unique("quota")
    (await api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 1})).ok()
    await enforced(api, namespace, spec)
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ELSEWHERE}}
    wanted = {
        "bare": pod(namespace, "bare"),
        "requests": pod(namespace, "requests", **SMALL),
        "deadline": pod(namespace, "deadline"),
        "class": pod(namespace, "class"),
        "affinity": pod(namespace, "affinity"),
    }
    wanted["deadline"]["spec"]["activeDeadlineSeconds"] = 60
    wanted["class"]["spec"]["priorityClassName"] = name
    wanted["affinity"]["spec"]["affinity"] = affinity
    pods = path(namespace, "pods")
    if covered:
        first = wanted[covered.split()[0]]
        await forbidden(lambda: api.post(pods, first, dryRun="All"), api)
    refused = [key for key, body in wanted.items() if (await api.post(pods, body)).code == 403]
    await api.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
    assert " ".join(refused) == covered


async def test_scope_in_status(api: Api, namespace: str) -> None:
    """Only what the scope covers is counted."""
    address = await enforced(api, namespace, scoped("BestEffort", pods="2"))
    (await api.post(path(namespace, "pods"), pod(namespace, "a"))).ok()
    (await api.post(path(namespace, "pods"), pod(namespace, "b", **SMALL))).ok()
    await api.until(address, lambda answer: answer.ok()["status"]["used"] == {"pods": "1"})


def claim(name: str, size: str, storage_class: str, **spec: str) -> Json:
    """A claim of a size and class."""
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": {**body, "storageClassName": storage_class, **spec}}


async def test_storage_classes(api: Api, namespace: str) -> None:
    """Claims and their sizes are limited by storage class as well."""
    gold = "gold.storageclass.storage.k8s.io"
    hard = {f"{gold}/requests.storage": "5Gi", f"{gold}/persistentvolumeclaims": "1"}
    await enforced(api, namespace, {"hard": hard})
    claims = path(namespace, "persistentvolumeclaims")
    why = await forbidden(lambda: api.post(claims, claim("a", "6Gi", "gold"), dryRun="All"), api)
    assert why == (
        f'persistentvolumeclaims "a" is forbidden: exceeded quota: q, requested: {gold}/requests.storage=6Gi, '
        f"used: {gold}/requests.storage=0, limited: {gold}/requests.storage=5Gi"
    )
    (await api.post(claims, claim("a", "6Gi", "other"))).ok()
    (await api.post(claims, claim("b", "1Gi", "gold"))).ok()
    await forbidden(lambda: api.post(claims, claim("c", "1Gi", "gold"), dryRun="All"), api)


async def test_attributes_class(api: Api, namespace: str) -> None:
    """Claims can be limited by the class of their attributes."""
    spec = scoped("VolumeAttributesClass", "In", "fast", persistentvolumeclaims="0")
    await enforced(api, namespace, spec)
    claims = path(namespace, "persistentvolumeclaims")
    fast = claim("b", "1Gi", "x", volumeAttributesClassName="fast")
    await forbidden(lambda: api.post(claims, fast, dryRun="All"), api)
    (await api.post(claims, claim("a", "1Gi", "x"))).ok()


async def test_node_ports(api: Api, namespace: str) -> None:
    """Ports on nodes are counted, also where a service changes its type."""
    hard = {"services.nodeports": "2", "services.loadbalancers": "0"}
    await enforced(api, namespace, {"hard": hard})
    services = path(namespace, "services")
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    (await api.post(services, {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": ports}})).ok()
    (await api.post(services, {"metadata": {"name": "b"}, "spec": {"ports": ports[:1]}})).ok()
    grown = {"spec": {"type": "NodePort"}}
    assert await forbidden(lambda: api.merge(f"{services}/b", grown, dryRun="All"), api) == (
        'services "b" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=2, '
        "limited: services.nodeports=2"
    )
    balancer = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": ports[:1]}
    await forbidden(lambda: api.post(services, {"metadata": {"name": "c"}, "spec": balancer}, dryRun="All"), api)


async def test_ended_pods(api: Api, namespace: str) -> None:
    """A pod that has ended takes no resources, but still a place among all pods."""
    hard = {"pods": "1", "count/pods": "2"}
    address = await enforced(api, namespace, {"hard": hard})
    (await api.post(path(namespace, "pods"), pod(namespace, "a"))).ok()
    (await api.merge(f"{path(namespace, 'pods')}/a/status", {"status": {"phase": "Succeeded"}})).ok()
    await api.until(address, lambda answer: answer.ok()["status"]["used"] == {"pods": "0", "count/pods": "1"})

"""What stands behind a service: its Endpoints and EndpointSlices; the test writes pods' states as a kubelet would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster

SERVICE_NAME = "kubernetes.io/service-name"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.fixture
async def node(cluster: Cluster, api: Api) -> AsyncIterator[str]:
    """A node that nobody runs, in zone a; it goes with the test."""
    name = cluster.unique("node")
    labels = {"topology.kubernetes.io/zone": "a"}
    (await api.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})).ok()
    yield name
    (await api.delete(f"/api/v1/nodes/{name}")).ok()


async def pod(api: Api, namespace: str, name: str, node: str, address: str, ready: bool = True, **spec: Any) -> str:
    """A pod of app=a with an address, and with a port called http."""
    container = {"name": "main", "image": "busybox", "ports": [{"name": "http", "containerPort": 8080}]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    toleration = {"operator": "Exists"}
    body = {"nodeName": node, "containers": [container], "tolerations": [toleration], **spec}
    made = (await api.post(path, {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": body})).ok()
    condition = {**READY, "status": str(ready)}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
    (await api.merge(f"{path}/{name}/status", {"status": status})).ok()
    return str(made["metadata"]["uid"])


async def service(api: Api, namespace: str, **spec: Any) -> Json:
    """A service s of app=a."""
    body = {"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    metadata = {"name": "s", "labels": {"team": "x"}}
    return (await api.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": metadata, "spec": body})).ok()


async def endpoints(api: Api, namespace: str, holds: Any) -> Json:
    """The Endpoints of s once they are as wanted."""
    path = f"/api/v1/namespaces/{namespace}/endpoints/s"
    return (await api.until(path, lambda answer: answer.code == 200 and holds(answer.body))).ok()


async def slices(api: Api, namespace: str, holds: Any) -> list[Json]:
    """The slices of s once they are as wanted."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    answer = await api.until(path, lambda answer: holds(answer.ok()["items"]), labelSelector=f"{SERVICE_NAME}=s")
    return list(answer.ok()["items"])


async def only_slice(api: Api, namespace: str, holds: Any) -> Json:
    """The slice of s once it is the only one and as wanted."""
    (only,) = await slices(api, namespace, lambda items: len(items) == 1 and holds(items))
    return only


def addresses(of: list[Json]) -> list[str]:
    """All addresses of slices."""
    return sorted(address for each in of for entry in each["endpoints"] or () for address in entry["addresses"])


async def test_a_service_without_pods_has_empty_endpoints_and_one_empty_slice(api: Api, namespace: str) -> None:
    """Both are there from the start, with the service's labels; the slice goes with the service."""
    made = await service(api, namespace)
    live = await endpoints(api, namespace, lambda body: True)
    assert "subsets" not in live
    assert live["metadata"]["labels"] == {"team": "x", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    trigger = {"endpoints.kubernetes.io/last-change-trigger-time": made["metadata"]["creationTimestamp"]}
    assert live["metadata"]["annotations"] == trigger
    only = await only_slice(api, namespace, lambda items: True)
    metadata = only["metadata"]
    assert (only["addressType"], only["endpoints"], only["ports"]) == ("IPv4", None, None)
    assert metadata["labels"] == {
        "team": "x",
        SERVICE_NAME: "s",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert (metadata["generateName"], metadata["generation"], metadata["annotations"]) == ("s-", 1, trigger)
    owner = {"apiVersion": "v1", "kind": "Service", "name": "s", "uid": made["metadata"]["uid"]}
    assert metadata["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]


async def test_pods_appear_with_their_ports_and_readiness(api: Api, namespace: str, node: str) -> None:
    """A named port is looked up in each pod; a pod that is not ready is told apart."""
    ready = await pod(api, namespace, "ready", node, "10.1.0.1")
    waiting = await pod(api, namespace, "waiting", node, "10.1.0.2", ready=False)
    await service(api, namespace)

    def reference(name: str, uid: str) -> Json:
        return {"kind": "Pod", "namespace": namespace, "name": name, "uid": uid}

    wanted = {
        "addresses": [{"ip": "10.1.0.1", "nodeName": node, "targetRef": reference("ready", ready)}],
        "notReadyAddresses": [{"ip": "10.1.0.2", "nodeName": node, "targetRef": reference("waiting", waiting)}],
        "ports": [{"port": 8080, "protocol": "TCP"}],
    }
    # A controller may hear of the service first, and of one pod after the other.
    await endpoints(api, namespace, lambda body: body.get("subsets") == [wanted])
    only = await only_slice(api, namespace, lambda items: len(addresses(items)) == 2)
    assert only["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert sorted(only["endpoints"], key=lambda entry: str(entry["addresses"])) == [
        {
            "addresses": ["10.1.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": reference("ready", ready),
            "nodeName": node,
            "zone": "a",
        },
        {
            "addresses": ["10.1.0.2"],
            "conditions": {"ready": False, "serving": False, "terminating": False},
            "targetRef": reference("waiting", waiting),
            "nodeName": node,
            "zone": "a",
        },
    ]


async def test_a_headless_service_may_publish_pods_that_are_not_ready(api: Api, namespace: str, node: str) -> None:
    """Without ports, with a pod's host name, and ready whatever the pod says."""
    await pod(api, namespace, "p", node, "10.1.0.1", ready=False, hostname="h", subdomain="s")
    await service(api, namespace, clusterIP="None", ports=[], publishNotReadyAddresses=True)
    live = await endpoints(api, namespace, lambda body: body.get("subsets"))
    (subset,) = live["subsets"]
    assert list(subset) == ["addresses"]
    assert (subset["addresses"][0]["ip"], subset["addresses"][0]["hostname"]) == ("10.1.0.1", "h")
    assert live["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    only = await only_slice(api, namespace, lambda items: addresses(items) == ["10.1.0.1"])
    assert only["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert only["ports"] is None
    (entry,) = only["endpoints"]
    assert (entry["hostname"], entry["conditions"]["ready"], entry["conditions"]["serving"]) == ("h", True, False)


async def test_pods_with_other_numbers_for_a_port_are_grouped_apart(api: Api, namespace: str, node: str) -> None:
    """One subset and one slice for each set of ports."""
    await pod(api, namespace, "a", node, "10.1.0.1")
    other = {"name": "main", "image": "busybox", "ports": [{"name": "http", "containerPort": 9090}]}
    await pod(api, namespace, "b", node, "10.1.0.2", containers=[other])
    await service(api, namespace)
    live = await endpoints(api, namespace, lambda body: len(body.get("subsets") or ()) == 2)
    assert {each["addresses"][0]["ip"]: each["ports"][0]["port"] for each in live["subsets"]} == {
        "10.1.0.1": 8080,
        "10.1.0.2": 9090,
    }
    both = await slices(api, namespace, lambda items: len(addresses(items)) == 2)
    assert {each["endpoints"][0]["addresses"][0]: each["ports"][0]["port"] for each in both} == {
        "10.1.0.1": 8080,
        "10.1.0.2": 9090,
    }


async def test_endpoints_follow_pods_and_services(api: Api, namespace: str, node: str) -> None:
    """A pod that ends or changes its labels leaves; a pod on its way out serves on; labels of a service are copied."""
    for number, name in enumerate(("ends", "leaves", "goes", "stays")):
        await pod(api, namespace, name, node, f"10.1.0.{number}")
    await service(api, namespace)
    before = await only_slice(api, namespace, lambda items: len(addresses(items)) == 4)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    (await api.merge(f"{pods}/ends/status", {"status": {"phase": "Succeeded"}})).ok()
    unready = {**READY, "status": "False"}
    (await api.merge(f"{pods}/ends/status", {"status": {"conditions": [unready]}})).ok()
    (await api.merge(f"{pods}/leaves", {"metadata": {"labels": {"app": "b"}}})).ok()
    (await api.delete(f"{pods}/goes")).ok()
    (await api.merge(f"/api/v1/namespaces/{namespace}/services/s", {"metadata": {"labels": {"team": "y"}}})).ok()

    def settled(items: list[Json]) -> bool:
        terminating = [e for each in items for e in each["endpoints"] or () if e["conditions"]["terminating"]]
        labels = [each["metadata"]["labels"]["team"] for each in items]
        return addresses(items) == ["10.1.0.2", "10.1.0.3"] and len(terminating) == 1 and labels == ["y"]

    after = await only_slice(api, namespace, settled)
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["metadata"]["generation"] > before["metadata"]["generation"]
    by_address = {entry["addresses"][0]: entry["conditions"] for entry in after["endpoints"]}
    assert by_address["10.1.0.2"] == {"ready": False, "serving": True, "terminating": True}

    def followed(body: Json) -> bool:
        listed = [each["ip"] for subset in body.get("subsets") or () for each in subset.get("addresses") or ()]
        return body["metadata"]["labels"]["team"] == "y" and listed == ["10.1.0.3"]

    await endpoints(api, namespace, followed)


async def test_no_endpoints_without_a_selector(api: Api, namespace: str) -> None:
    """What somebody wrote for a service without a selector, or for an external name, is left alone."""
    await service(api, namespace, selector=None)
    path = f"/api/v1/namespaces/{namespace}"
    own = {"metadata": {"name": "s"}, "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 1}]}]}
    (await api.post(f"{path}/endpoints", own)).ok()
    external = {"metadata": {"name": "e"}, "spec": {"type": "ExternalName", "externalName": "example.com"}}
    (await api.post(f"{path}/services", external)).ok()
    last = {"metadata": {"name": "last"}, "spec": {"selector": {"app": "z"}, "ports": [{"port": 1}]}}
    (await api.post(f"{path}/services", last)).ok()
    await api.until(f"{path}/endpoints/last", lambda answer: answer.code == 200)
    names = [item["metadata"]["name"] for item in (await api.get(f"{path}/endpoints")).ok()["items"]]
    assert names == ["last", "s"]
    kept = (await api.get(f"{path}/endpoints/s")).ok()
    assert kept["subsets"][0]["addresses"] == [{"ip": "10.9.9.9"}]


async def test_everything_goes_with_the_service(api: Api, namespace: str, node: str) -> None:
    """Deleting a service deletes both, and what somebody deletes comes back as long as the service is there."""
    await pod(api, namespace, "p", node, "10.1.0.1")
    await service(api, namespace)
    first = await only_slice(api, namespace, lambda items: addresses(items) == ["10.1.0.1"])
    old = await endpoints(api, namespace, lambda body: body.get("subsets"))
    name = first["metadata"]["name"]
    (await api.delete(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}")).ok()
    (await api.delete(f"/api/v1/namespaces/{namespace}/endpoints/s")).ok()
    uid = first["metadata"]["uid"]
    await slices(api, namespace, lambda items: addresses(items) and items[0]["metadata"]["uid"] != uid)
    await endpoints(api, namespace, lambda body: body["metadata"]["uid"] != old["metadata"]["uid"])
    (await api.delete(f"/api/v1/namespaces/{namespace}/services/s")).ok()
    await api.until(f"/api/v1/namespaces/{namespace}/endpoints/s", lambda answer: answer.code == 404)
    await slices(api, namespace, lambda items: not items)

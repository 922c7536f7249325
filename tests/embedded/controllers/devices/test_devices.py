"""Resource claims and slices on the embedded cluster, in virtual time."""

from __future__ import annotations

import pytest

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.core import Node, Pod
from spinney.api.crd import crds
from spinney.api.meta import Json, convert
from spinney.api.nvidia import ComputeDomain
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.devices.compute_domains import ComputeDomains
from spinney.embedded.controllers.devices.resource_slices import GPU_DRIVER, plan_slices
from spinney.embedded.nodes.profile import Profile
from tests import make
from tests.embedded.virtual import FirstNode, after, get, on_cluster, pod

REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
TEMPLATE: Json = {"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": [REQUEST]}}}}


def claiming(name: str, policy: str = "Always") -> Json:
    """A pod that claims a device by a template."""
    body = make.pod(name).build()
    body["spec"]["restartPolicy"] = policy
    body["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimTemplateName": "one-gpu"}]
    return body


async def claims(cluster: Cluster) -> list[ResourceClaim]:
    """All claims."""
    return (await cluster.client().list(ResourceClaim, "default")).items


@on_cluster()
async def test_a_claim_is_made_for_each_pod_that_names_a_template(cluster: Cluster) -> None:
    """Also where the template comes later; the pod's status says its name; it goes with the pod."""
    FirstNode(cluster)
    await pod(cluster, claiming("a"))
    await after(1)
    assert await claims(cluster) == []
    await cluster.client().create(ResourceClaimTemplate, TEMPLATE, "default")
    await after(1)
    (claim,) = await claims(cluster)
    assert claim.name.startswith("a-device-")
    assert claim.spec.devices.requests[0].name == "gpu"
    (status,) = (await get(cluster, Pod.resource, "a"))["status"]["resourceClaimStatuses"]
    assert status == {"name": "device", "resourceClaimName": claim.name}
    await cluster.client().delete(Pod, ("default", "a"))
    await after(1)
    assert await claims(cluster) == []


@on_cluster()
async def test_a_claim_without_users_gives_its_devices_back(cluster: Cluster) -> None:
    """A claim of its own lives on, without allocation, when the last pod that used it is gone."""
    FirstNode(cluster)
    client = cluster.client()
    await client.create(ResourceClaim, {"metadata": {"name": "mine"}, "spec": TEMPLATE["spec"]["spec"]}, "default")
    await pod(cluster, make.pod("a").build())
    await after(1)
    uid = (await get(cluster, Pod.resource, "a"))["metadata"]["uid"]
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "node-00", "device": "gpu-0"}
    user = {"resource": "pods", "name": "a", "uid": uid}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    await client.patch(ResourceClaim, ("default", "mine"), {"status": status}, subresource="status")
    await after(1)
    assert (await claims(cluster))[0].status.reserved_for
    await client.delete(Pod, ("default", "a"))
    await after(1)
    (claim,) = await claims(cluster)
    assert claim.status.reserved_for == ()
    assert claim.status.allocation is None


@on_cluster(nodes=Profile(count=1, racks=1, devices="dra"))
async def test_nodes_publish_their_devices(cluster: Cluster) -> None:
    """GPUs that no device plugin offers, and on every GPU node the channels of compute domains."""
    await after(1)
    slices = (await cluster.client().list(ResourceSlice)).items
    counts = {(each.spec.node_name, each.spec.driver): len(each.spec.devices) for each in slices}
    assert counts == {
        ("node-00", "compute-domain.nvidia.com"): 4,
        ("node-00", "gpu.nvidia.com"): 8,
    }


@pytest.mark.parametrize(("said", "published"), [("many", 0), ("-1", 0), ("4", 4), ("9" * 18, 128), ("9" * 20, 0)])
def test_an_odd_count_of_gpus_brought_the_cluster_down(said: str, published: int) -> None:
    """A user's own simulated node may carry any label: no number is no devices, and a slice holds 128 at most."""
    built = make.node("odd", 0).label("nvidia.com/gpu.count", said).annotate("kwok.x-k8s.io/node", "fake").build()
    built["status"]["allocatable"].pop("nvidia.com/gpu", None)
    slices = plan_slices(convert(Node, built))
    devices = [each for piece in slices for each in piece["spec"]["devices"] if piece["spec"]["driver"] == GPU_DRIVER]
    assert len(devices) == published


@on_cluster()
async def test_slices_go_with_their_node(cluster: Cluster) -> None:
    """No devices of a machine that is gone."""
    await after(1)
    await cluster.commands.remove("node-00")
    await after(1)
    slices = (await cluster.client().list(ResourceSlice)).items
    assert {each.spec.node_name for each in slices} == {"node-01"}


@on_cluster()
async def test_a_compute_domain_gets_its_claim_template(cluster: Cluster) -> None:
    """As NVIDIA's driver makes it: pods of the domain claim a channel from it, and the domain is ready."""
    client = cluster.client()
    for definition in crds(("resource.nvidia.com",)):
        await client.create(CustomResourceDefinition, definition)
    await cluster.start_controller(ComputeDomains)
    channel = {"resourceClaimTemplate": {"name": "train-channel"}}
    domain = {"metadata": {"name": "train"}, "spec": {"numNodes": 2, "channel": channel}}
    await client.create(ComputeDomain.resource, domain, "default")
    await after(1)
    template = await get(cluster, ResourceClaimTemplate.resource, "train-channel")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "compute-domain-default-channel.nvidia.com"
    assert (await get(cluster, ComputeDomain.resource, "train"))["status"]["status"] == "Ready"
    await client.delete(ComputeDomain, ("default", "train"))
    await after(1)
    assert await get(cluster, ResourceClaimTemplate.resource, "train-channel") == {}

"""StatefulSets and volumes on the embedded cluster, in virtual time."""

from __future__ import annotations

from typing import Any

from spinney.api.apps import StatefulSet
from spinney.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.meta import Json
from spinney.api.storage import StorageClass
from spinney.embedded.cluster import Cluster
from tests import make
from tests.embedded.virtual import FirstNode, after, get, on_cluster, pod


def template(image: str = "one", **annotations: str) -> Json:
    """A pod template."""
    scripted = {f"spinney.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": {"app": "db"}, "annotations": scripted}, "spec": {"containers": containers}}


async def create(cluster: Cluster, **spec: Any) -> None:
    """Create a StatefulSet."""
    base = {"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template()}
    body = {"metadata": {"name": "db"}, "spec": {**base, **spec}}
    await cluster.client().create(StatefulSet.resource, body, "default")


async def pods(cluster: Cluster) -> dict[str, Pod]:
    """All pods by name."""
    return {pod.name: pod for pod in (await cluster.client().list(Pod, "default")).items}


@on_cluster()
async def test_an_update_goes_from_the_last_to_the_first_and_respects_the_partition(cluster: Cluster) -> None:
    """Pods below the partition keep their revision; the rest are replaced under their old names."""
    FirstNode(cluster)
    await create(cluster, replicas=3)
    await after(5)
    before = await pods(cluster)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    patch = {"spec": {"template": template("two"), "updateStrategy": strategy}}
    await cluster.client().patch(StatefulSet, ("default", "db"), patch)
    await after(30)
    now = await pods(cluster)
    assert [now[name].spec.containers[0].image for name in sorted(now)] == ["one", "two", "two"]
    assert now["db-0"].uid == before["db-0"].uid

    await cluster.client().patch(
        StatefulSet, ("default", "db"), {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}
    )
    await after(30)
    status = (await get(cluster, StatefulSet.resource, "db"))["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["updatedReplicas"] == status["readyReplicas"] == 3


@on_cluster()
async def test_scaling_down_takes_the_last_ones_and_keeps_their_claims(cluster: Cluster) -> None:
    """Claims stay for the day the set grows again."""
    FirstNode(cluster)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await create(cluster, replicas=3, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": spec}])
    await after(5)
    by_name = await pods(cluster)
    assert by_name["db-2"].spec.volumes[0].persistent_volume_claim is not None
    assert by_name["db-2"].spec.volumes[0].persistent_volume_claim.claim_name == "data-db-2"
    await cluster.client().patch(StatefulSet, ("default", "db"), {"spec": {"replicas": 1}})
    await after(10)
    assert set(await pods(cluster)) == {"db-0"}
    claims = (await cluster.client().list(PersistentVolumeClaim, "default")).items
    assert {claim.name for claim in claims} == {"data-db-0", "data-db-1", "data-db-2"}


async def storage_class(cluster: Cluster, mode: str) -> None:
    """The class of simulated volumes."""
    body = {"metadata": {"name": "sim"}, "provisioner": "spinney.dev/simulated", "volumeBindingMode": mode}
    await cluster.client().create(StorageClass.resource, body)


async def claim(cluster: Cluster, name: str = "data", size: str = "10Gi", kind: str = "sim") -> None:
    """A claim."""
    spec = {"storageClassName": kind, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    await cluster.client().create(PersistentVolumeClaim, {"metadata": {"name": name}, "spec": spec}, "default")


async def claim_phase(cluster: Cluster, name: str = "data") -> str:
    """Pending or Bound."""
    return str((await get(cluster, PersistentVolumeClaim.resource, name))["status"].get("phase", "Pending"))


@on_cluster()
async def test_an_immediate_claim_gets_a_volume_at_once_and_gives_it_back(cluster: Cluster) -> None:
    """A volume of its size is made; when the claim goes, so does the volume."""
    await storage_class(cluster, "Immediate")
    await claim(cluster)
    await after(1)
    assert await claim_phase(cluster) == "Bound"
    (volume,) = (await cluster.client().list(PersistentVolume)).items
    assert (volume.spec.capacity["storage"], volume.status.phase) == ("10Gi", "Bound")
    await cluster.client().delete(PersistentVolumeClaim, ("default", "data"))
    await after(1)
    assert (await cluster.client().list(PersistentVolume)).items == []


@on_cluster()
async def test_a_late_claim_waits_for_its_first_consumer(cluster: Cluster) -> None:
    """Once a scheduler has chosen a node, the volume is made there and only reachable from there."""
    await storage_class(cluster, "WaitForFirstConsumer")
    await claim(cluster)
    await after(60)
    assert await claim_phase(cluster) == "Pending"
    patch = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-01"}}}
    await cluster.client().patch(PersistentVolumeClaim, ("default", "data"), patch)
    await after(1)
    assert await claim_phase(cluster) == "Bound"
    (volume,) = (await cluster.client().list(PersistentVolume)).items
    affinity = volume.spec.node_affinity
    assert affinity is not None
    assert affinity.required is not None
    assert affinity.required.node_selector_terms[0].match_expressions[0].values == ("node-01",)


@on_cluster()
async def test_a_claim_takes_the_smallest_volume_that_fits(cluster: Cluster) -> None:
    """Of volumes that are there already; what is too small is left."""
    for name, size in (("small", "5Gi"), ("right", "10Gi"), ("large", "100Gi")):
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "hostPath": {"path": "/data"},
        }
        await cluster.client().create(PersistentVolume, {"metadata": {"name": name}, "spec": spec})
    await after(1)
    await claim(cluster, kind="manual", size="8Gi")
    await after(1)
    assert (await get(cluster, PersistentVolumeClaim.resource, "data"))["spec"]["volumeName"] == "right"
    phases = {each.name: each.status.phase for each in (await cluster.client().list(PersistentVolume)).items}
    assert phases == {"small": "Available", "right": "Bound", "large": "Available"}


@on_cluster()
async def test_a_claim_in_use_stays_until_its_pod_is_gone(cluster: Cluster) -> None:
    """Deleting it first only marks it."""
    await storage_class(cluster, "Immediate")
    await claim(cluster)
    body = make.pod("a").on("node-00").build()
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await pod(cluster, body)
    await after(1)
    await cluster.client().delete(PersistentVolumeClaim, ("default", "data"))
    await after(60)
    assert (await get(cluster, PersistentVolumeClaim.resource, "data"))["metadata"]["deletionTimestamp"]
    await cluster.client().delete(Pod, ("default", "a"))
    await after(1)
    assert await get(cluster, PersistentVolumeClaim.resource, "data") == {}


@on_cluster()
async def test_an_ephemeral_volume_gets_a_claim_that_goes_with_its_pod(cluster: Cluster) -> None:
    """Named after pod and volume, and owned by the pod."""
    await storage_class(cluster, "Immediate")
    spec = {
        "storageClassName": "sim",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    body = make.pod("a").on("node-00").build()
    body["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]
    await pod(cluster, body)
    await after(1)
    assert await claim_phase(cluster, "a-scratch") == "Bound"
    await cluster.client().delete(Pod, ("default", "a"))
    await after(1)
    assert await get(cluster, PersistentVolumeClaim.resource, "a-scratch") == {}

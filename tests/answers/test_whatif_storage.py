"""What-if with volumes and device claims: the copy knows where they can be reached, as the scheduler does."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.answers.defrag import defrag
from spinney.answers.model import WhatIf
from spinney.answers.whatif.changes import Create, DrainNode
from spinney.answers.whatif.difference import whatif
from spinney.sim.expansion import expand
from tests.answers.scene import Scene

Json = dict[str, Any]
LATE = "WaitForFirstConsumer"


def volume(name: str, node: str, claim: str = "") -> Json:
    """A volume of a node's own disk, free or bound to a claim."""
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
    }
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    phase = {"phase": "Bound" if claim else "Available"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": phase,
    }


def claim(name: str, storage_class: str = "local", bound_to: str = "") -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
        **({"volumeName": bound_to} if bound_to else {}),
    }
    metadata = {"name": name, "namespace": "default", **({"uid": f"uid-{name}"} if bound_to else {})}
    status = {"phase": "Bound" if bound_to else "Pending"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def storage_class(name: str = "local", provisioner: str = "kubernetes.io/no-provisioner", mode: str = LATE) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def job(**spec: Any) -> Json:
    """A Job of one pod with a GPU."""
    marks = {"labels": {"kai.scheduler/queue": "team"}}
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {"schedulerName": "kai-scheduler", "restartPolicy": "Never", "containers": [container], **spec}
    template = {"metadata": marks, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "new", **marks},
        "spec": {"template": template},
    }


def with_claim(name: str = "data") -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def asked(scene: Scene, *documents: Json) -> WhatIf:
    return whatif(scene.cluster(), [Create(objects=list(documents))], expand)


@pytest.fixture
def scene() -> Scene:
    return Scene().nodes(3).queue("team").add(storage_class())


def nodes(answer: WhatIf) -> list[str]:
    (start,) = answer.starts
    return list(start.nodes)


def test_a_new_pod_goes_where_its_bound_volume_is(scene: Scene) -> None:
    """The claim is there already, and its volume is on n2."""
    scene.add(volume("disk", "n2", "data"), claim("data", bound_to="disk"))
    assert nodes(asked(scene, job(**with_claim()))) == ["n2"]


def test_a_claim_that_waits_for_its_consumer_goes_where_a_free_volume_is(scene: Scene) -> None:
    """The claim comes with the Job; the cluster has one free volume, on n1."""
    scene.add(volume("disk", "n1"))
    assert nodes(asked(scene, claim("data"), job(**with_claim()))) == ["n1"]


def test_a_claim_that_does_not_exist_is_the_reason_to_wait(scene: Scene) -> None:
    """As the scheduler will say."""
    answer = asked(scene, job(**with_claim()))
    assert not answer.starts
    assert 'persistentvolumeclaim "data" not found' in answer.still_waiting[0].why.text


def test_what_a_provisioner_will_do_is_assumed_and_said(scene: Scene) -> None:
    """A volume that is made before the pod is placed could be anywhere."""
    scene.add(storage_class("fast", "csi.example.com", "Immediate"))
    answer = asked(scene, claim("data", "fast"), job(**with_claim()))
    assert len(answer.starts) == 1
    assert answer.assumed == ["The volume that is provisioned for claim data can be reached from every node."]


def test_a_pod_that_is_drained_stays_with_its_local_volume(scene: Scene) -> None:
    """It finds no other node, though others have room."""
    scene.add(volume("disk", "n0", "data"), claim("data", bound_to="disk")).job("runs", 1, 1, on="n0")
    scene.pod("runs-0")["spec"].update(with_claim())
    answer = whatif(scene.cluster(), [DrainNode(node="n0")])
    (gone,) = answer.evicted
    assert not answer.moved
    assert "it waits" in gone.text


def test_defragmentation_leaves_pods_with_their_local_volumes(scene: Scene) -> None:
    """Each of two nodes is used in part; only the pod without a volume may go to the other."""
    scene.add(volume("disk", "n0", "data"), claim("data", bound_to="disk"))
    scene.job("tied", 1, 2, on="n0").job("free", 1, 4, on="n1")
    scene.pod("tied-0")["spec"].update(with_claim())
    assert [(move.pod, move.to) for move in defrag(scene.cluster(), 10).moves] == [("default/free-0", "n0")]


DRIVER = "gpu.nvidia.com"


def devices(node: str, count: int) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(count)],
        },
    }


def test_a_claim_of_devices_goes_where_they_are() -> None:
    """The template is the cluster's own; only n1 offers devices of its class."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    template = {"spec": {"devices": {"requests": [request]}}}
    scene = Scene().nodes(2, gpus=0).queue("team")
    scene.add(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": {}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu", "namespace": "default"},
            "spec": template,
        },
        devices("n1", 2),
    )
    wanted = job(
        containers=[{"name": "c", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    )
    assert nodes(asked(scene, wanted)) == ["n1"]
    wanted["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "other"
    answer = asked(scene, wanted)
    assert "waiting for the resource claim" in answer.still_waiting[0].why.text.lower()

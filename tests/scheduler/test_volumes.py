"""Where storage lets a pod run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.meta import Json, convert
from spinney.api.storage import StorageClass
from spinney.scheduler.volumes import Reach, Storage, reach_of
from tests import make


class Known:
    """A cache of some objects."""

    def __init__(self, of: type[Any], *objects: Json) -> None:
        self.objects = {found["metadata"]["name"]: convert(of, found) for found in objects}

    def get(self, name: str, namespace: str = "") -> Any:
        return self.objects.get(name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.objects.values())


def claim(volume: str = "", storage_class: str = "local") -> Json:
    wanted = {"requests": {"storage": "5Gi"}}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": wanted,
        "volumeName": volume,
    }
    return {"metadata": {"name": "data"}, "spec": spec}


def volume(name: str, node: str, size: str = "10Gi") -> Json:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def storage_class(name: str, provisioner: str, mode: str = "WaitForFirstConsumer", **more: Any) -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


ZONE_A = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
CLASSES = (
    storage_class("local", "kubernetes.io/no-provisioner"),
    storage_class("csi", "csi.example.com"),
    storage_class("zonal", "csi.example.com", allowedTopologies=ZONE_A),
    storage_class("now", "csi.example.com", mode="Immediate"),
)


def reach(claims: list[Json], offered: list[Json], **spec: Any) -> Reach:
    built = make.pod("p").build()
    built["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    built["spec"].update(spec)
    nodes = (make.node("n1").label("zone", "a").build(), make.node("n2").label("zone", "b").build())
    storage = Storage(
        Known(PersistentVolumeClaim, *claims),
        Known(PersistentVolume, *offered),
        Known(StorageClass, *CLASSES),
        Known(Node, *nodes),
        lambda namespace, name: name == "present",
    )
    return reach_of(convert(Pod, built), storage)


@pytest.mark.parametrize(
    ("claims", "volumes", "wanted"),
    [
        ([claim("v")], [volume("v", "n2")], Reach(frozenset({"n2"}))),
        ([claim()], [volume("v", "n1"), volume("small", "n2", "1Gi")], Reach(frozenset({"n1"}))),
        ([claim()], [], Reach(frozenset())),
        ([claim(storage_class="csi")], [], Reach()),
        ([claim(storage_class="zonal")], [], Reach(frozenset({"n1"}))),
        ([claim(storage_class="now")], [], Reach(impossible="pod has unbound immediate PersistentVolumeClaims")),
        ([], [], Reach(impossible='persistentvolumeclaim "data" not found')),
        ([claim("v")], [], Reach(impossible='persistentvolume "v" not found')),
    ],
    ids=["bound", "local", "no volume left", "provisioned", "zonal", "immediate", "no claim", "no volume"],
)
def test_where_volumes_can_be_reached(claims: list[Json], volumes: list[Json], wanted: Reach) -> None:
    """Bound volumes pin, free ones offer, provisioners allow; what is missing is a reason that no node cures."""
    assert reach(claims, volumes) == wanted


def test_a_missing_config_map_keeps_a_pod_waiting() -> None:
    """Unless it is optional, or the binder makes it."""
    mounts = [{"name": "c", "configMap": {"name": "missing"}}]
    assert reach([], [], volumes=mounts).impossible == 'configmap "missing" not found'
    assert reach([], [], volumes=[{"name": "c", "configMap": {"name": "present"}}]) == Reach()
    assert reach([], [], volumes=[{"name": "c", "configMap": {"name": "missing", "optional": True}}]) == Reach()

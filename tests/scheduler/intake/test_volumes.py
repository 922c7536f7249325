"""Where storage lets a pod run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.meta import Json, convert
from spinney.api.missing import Lack, Missing
from spinney.api.storage import CsiNode, StorageClass, VolumeAttachment
from spinney.api.volumes import Reach, Storage, attached_by, attached_to, reach_of
from spinney.scheduler.intake.cluster_objects import node_spec
from spinney.scheduler.state.problems import NoRoom
from spinney.scheduler.state.refusal import Code, Refusal
from tests import make
from tests.scheduler.clusters import Cluster, outcome, statuses


class Known:
    """A cache of some objects."""

    def __init__(self, of: type[Any], *objects: Json) -> None:
        self.objects = {document["metadata"]["name"]: convert(of, document) for document in objects}

    def get(self, key: tuple[str, str] | str) -> Any:
        return self.objects.get(key if isinstance(key, str) else key[1])

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
    return {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}


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
    return reach_of(*pod_and_storage(claims, offered, **spec))


def pod_and_storage(claims: list[Json], offered: list[Json], **spec: Any) -> tuple[Pod, Storage]:
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
    return convert(Pod, built), storage


@pytest.mark.parametrize(
    ("claims", "volumes", "wanted"),
    [
        ([claim("v")], [volume("v", "n2")], Reach(frozenset({"n2"}))),
        ([claim()], [volume("v", "n1"), volume("small", "n2", "1Gi")], Reach(frozenset({"n1"}))),
        ([claim()], [], Reach(frozenset())),
        ([claim(storage_class="csi")], [], Reach()),
        ([claim(storage_class="zonal")], [], Reach(frozenset({"n1"}))),
        ([claim(storage_class="now")], [], Reach(impossible=Missing(Lack.VOLUME_CLAIM_UNBOUND))),
        ([], [], Reach(impossible=Missing(Lack.VOLUME_CLAIM, "data"))),
        ([claim("v")], [], Reach(impossible=Missing(Lack.VOLUME, "v"))),
    ],
    ids=["bound", "local", "no volume left", "provisioned", "zonal", "immediate", "no claim", "no volume"],
)
def test_where_volumes_can_be_reached(claims: list[Json], volumes: list[Json], wanted: Reach) -> None:
    """Bound volumes pin, free ones offer, provisioners allow; what is missing is a reason that no node cures."""
    assert reach(claims, volumes) == wanted


DRIVER = {"metadata": {"name": "v"}, "spec": {"csi": {"driver": "csi.example.com", "volumeHandle": "vol-1"}}}


@pytest.mark.parametrize(
    ("claims", "volumes", "wanted"),
    [
        ([claim("v")], [DRIVER], (("csi.example.com", "vol-1"),)),
        ([claim(storage_class="csi")], [], (("csi.example.com", "default/data"),)),
        ([claim("v")], [volume("v", "n1")], ()),
        ([claim()], [], ()),
        ([], [], ()),
    ],
    ids=["bound", "to be provisioned", "not a driver's", "local", "no claim"],
)
def test_volumes_that_nodes_attach(
    claims: list[Json], volumes: list[Json], wanted: tuple[tuple[str, str], ...]
) -> None:
    """Those of storage drivers count, by the volume or by the claim that will get one."""
    assert attached_by(*pod_and_storage(claims, volumes)) == wanted


def attached(cluster: Cluster, key: str, *volumes: str) -> Cluster:
    spec = cluster.state.tasks[key].spec
    rules = replace(spec.constraints, attaches=True)
    cluster.state.set_task(replace(spec, volumes=tuple(("d", name) for name in volumes), constraints=rules))
    return cluster


def limited(*limits: int) -> Cluster:
    cluster = Cluster(*[4] * len(limits)).queue("q", 100)
    for number, limit in enumerate(limits):
        spec = cluster.state.nodes.spec(cluster.state.nodes.rows[f"n{number}"])
        cluster.state.set_node(replace(spec, volume_limits={"d": limit}))
    return cluster


def test_a_node_takes_so_many_volumes_of_a_driver() -> None:
    """A full node is passed over; a gang goes as far as its volumes do."""
    cluster = attached(limited(2, 2).job("r", "q", ["n0"]), "r-0", "a", "b")
    attached(attached(cluster.job("j", "q", ["", ""]), "j-0", "c"), "j-1", "d")
    assert {place[1] for place in outcome(cluster.plan("allocate")).values()} == {"n1"}
    attached(cluster, "j-1", "d", "e")
    (problem,) = cluster.plan("allocate").problems["j"]
    assert isinstance(problem, NoRoom)
    assert (Refusal(Code.VOLUME_COUNT), 2) in problem.refusals


def test_a_volume_that_is_attached_already_is_not_counted_again() -> None:
    """Two pods may share one where it is."""
    cluster = attached(limited(1).job("r", "q", ["n0"]), "r-0", "a")
    assert outcome(attached(cluster.job("j", "q", [""]), "j-0", "a").plan("allocate"))["j-0"][1] == "n0"


def test_victims_take_their_volumes_along() -> None:
    """Preemption makes room for volumes as it does for GPUs."""
    cluster = attached(limited(1).job("low", "q", ["n0"], priority=10), "low-0", "a")
    done = attached(cluster.job("j", "q", [""], priority=90), "j-0", "b").plan()
    assert statuses(done) == {"low-0": "Releasing", "j-0": "Pipelined"}


def test_volumes_that_no_pod_uses_any_more_count_until_they_are_detached() -> None:
    """An attachment that outlives its pod takes a place; those of victims do not, they go with them."""
    cluster = attached(limited(1, 1).job("j", "q", [""]), "j-0", "b")
    cluster.state.set_attached("n0", frozenset({("d", "a")}))
    assert outcome(cluster.plan("allocate"))["j-0"][1] == "n1"
    cluster.state.set_attached("n1", frozenset({("d", "b")}))
    assert outcome(cluster.plan("allocate"))["j-0"][1] == "n1"
    cluster = attached(limited(1).job("low", "q", ["n0"], priority=10), "low-0", "a")
    cluster.state.set_attached("n0", frozenset({("d", "a")}))
    done = attached(cluster.job("j", "q", [""], priority=90), "j-0", "b").plan()
    assert statuses(done) == {"low-0": "Releasing", "j-0": "Pipelined"}


def test_attachments_are_read() -> None:
    """By the driver and the handle of the volume they name; others are nothing to limits."""
    _, storage = pod_and_storage([], [DRIVER, volume("local", "n1")])
    attachments = [
        convert(VolumeAttachment, {"metadata": {"name": name}, "spec": {"source": {"persistentVolumeName": name}}})
        for name in ("v", "local", "gone")
    ]
    assert attached_to(attachments, storage) == {("csi.example.com", "vol-1")}


def test_limits_of_a_node_are_read() -> None:
    """From its CSINode; a driver that gives no number has no limit."""
    drivers = [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}, {"name": "e", "nodeID": "n"}]
    csi_node = convert(CsiNode, {"metadata": {"name": "n"}, "spec": {"drivers": drivers}})
    assert node_spec(make.node("n").typed(Node), storage=csi_node).volume_limits == {"d": 3}


def test_a_missing_config_map_keeps_a_pod_waiting() -> None:
    """Unless it is optional, or the binder makes it."""
    mounts = [{"name": "c", "configMap": {"name": "missing"}}]
    assert reach([], [], volumes=mounts).impossible == Missing(Lack.CONFIG_MAP, "missing")
    assert reach([], [], volumes=[{"name": "c", "configMap": {"name": "present"}}]) == Reach()
    assert reach([], [], volumes=[{"name": "c", "configMap": {"name": "missing", "optional": True}}]) == Reach()

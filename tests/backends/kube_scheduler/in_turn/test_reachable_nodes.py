"""Which nodes a pod's claims allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim
from spinney.api.meta import Json, Object, convert
from spinney.api.missing import Lack, Missing
from spinney.api.pod import Pod
from spinney.api.resource import ResourceClaim
from spinney.api.storage import StorageClass
from spinney.api.volumes import Reach, Storage
from spinney.backends.kube_scheduler.in_turn.node_info import node_infos
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView, Unplaced, place
from spinney.backends.kube_scheduler.in_turn.reachable_nodes import CachedClaims
from spinney.kube.caches.cache import Cache
from tests import make

IN_ZONE_1 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]}]}
NODES = [make.node(name).label("zone", zone).typed(Node) for name, zone in (("a", "1"), ("b", "2"))]


def shelf(*objects: Object) -> Cache[Any]:
    """A watch cache with these objects."""
    by_key = {stored.key: stored for stored in objects}

    class Shelf:
        def get(self, key: tuple[str, str] | str) -> Object | None:
            return by_key.get(("", key) if isinstance(key, str) else key)

        def __iter__(self) -> Iterator[Object]:
            return iter(by_key.values())

    return cast(Cache[Any], Shelf())


def claim(**spec: Any) -> PersistentVolumeClaim:
    """The claim `data`."""
    return convert(PersistentVolumeClaim, {"metadata": {"name": "data", "namespace": "default"}, "spec": spec})


VOLUME = convert(PersistentVolume, {"metadata": {"name": "disk"}, "spec": {"nodeAffinity": {"required": IN_ZONE_1}}})
NFS = convert(PersistentVolume, {"metadata": {"name": "nfs"}, "spec": {}})
CLASSES = [
    convert(StorageClass, {"metadata": {"name": name}, "volumeBindingMode": mode})
    for name, mode in (("later", "WaitForFirstConsumer"), ("now", "Immediate"))
]


def devices(allocation: Json | None) -> ResourceClaim:
    """The device claim `gpu`."""
    status = {"allocation": allocation} if allocation else {}
    return convert(ResourceClaim, {"metadata": {"name": "gpu", "namespace": "default"}, "status": status})


def user(**spec: Any) -> Pod:
    """A pod with claims."""
    body = make.pod("p").build()
    body["spec"] |= spec
    return convert(Pod, body)


DISK = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
GPU = {"resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]}


@pytest.mark.parametrize(
    ("spec", "claims", "gpus", "nodes", "impossible"),
    [
        ({}, [], [], ["a", "b"], ""),
        (DISK, [], [], [], 'persistentvolumeclaim "data" not found'),
        (DISK, [claim(volumeName="disk")], [], ["a"], ""),
        (DISK, [claim(volumeName="nfs")], [], ["a", "b"], ""),
        (DISK, [claim(storageClassName="later")], [], ["a", "b"], ""),
        (DISK, [claim(storageClassName="now")], [], [], "pod has unbound immediate PersistentVolumeClaims"),
        (GPU, [], [], [], 'resourceclaim "gpu" not found'),
        (GPU, [], [devices(None)], ["a", "b"], ""),
        (GPU, [], [devices({"nodeSelector": IN_ZONE_1})], ["a"], ""),
        ({**DISK, **GPU}, [claim(volumeName="disk")], [devices(None)], ["a"], ""),
    ],
)
def test_a_pod_can_be_where_its_claims_can(
    spec: Json, claims: list[Object], gpus: list[Object], nodes: list[str], impossible: str
) -> None:
    """Existing volumes and devices confine a pod to their nodes; later ones do not."""
    storage = Storage(shelf(*claims), shelf(VOLUME, NFS), shelf(*CLASSES), shelf(*NODES))
    reach = CachedClaims(storage, shelf(*gpus)).reach(user(**spec))
    assert [node.name for node in NODES if reach.allows(node)] == nodes
    assert str(reach.impossible or "") == impossible


def test_what_is_missing_is_told() -> None:
    """The gang that waits says which claim it waits for."""
    view = ClusterView(
        lambda above: node_infos(NODES, [], above), lambda _: Reach(impossible=Missing(Lack.RESOURCE_CLAIM, "gpu"))
    )
    unplaced = place([user()], view)
    assert isinstance(unplaced, Unplaced)
    assert unplaced.reason == 'resourceclaim "gpu" not found'

"""Snapshot files: what they keep, and what is no snapshot."""

from __future__ import annotations

import io
import zipfile

import msgspec
import pytest

from spinney.api.core import ConfigMap, PersistentVolume, Pod
from spinney.api.meta import Json, Object
from spinney.api.resource import DeviceClass, ResourceClaim
from spinney.api.storage import StorageClass
from spinney.scheduler.intake.snapshot import Snapshot, SnapshotError, read, write
from tests import make


def written(pod: Json) -> bytes:
    """The text inside of a snapshot with one pod and one ConfigMap."""
    config_map = {"metadata": {"name": "c", "annotations": {"tool": "hush-5"}}, "data": {"key": "hush-6"}}
    content = write(Snapshot({Pod.resource: [pod], ConfigMap.resource: [config_map]}))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("snapshot.json")


def test_environments_commands_and_annotations_were_kept() -> None:
    """A snapshot has nothing of a pod that a plan does not need; it is sent to others."""
    pod = make.pod("p").gpus(1).build()
    pod["metadata"]["annotations"] = {"last-applied": "hush-1", "gpu-fraction": "0.5"}
    pod["spec"]["containers"][0] |= {
        "env": [{"name": "TOKEN", "value": "hush-2"}],
        "command": ["hush-3"],
        "args": ["hush-4"],
    }
    pod["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/hush-7"}}]
    terminated = {"exitCode": 1, "message": "hush-8"}
    pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}
    content = written(pod)
    assert b"hush" not in content
    (kept,) = read(content).objects[Pod.resource]
    assert kept["metadata"]["annotations"] == {"gpu-fraction": "0.5"}
    assert kept["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "1"
    assert kept["status"]["containerStatuses"][0]["state"] == {"terminated": {"exitCode": 1}}


@pytest.mark.parametrize(
    "key", ["kubectl.kubernetes.io/last-applied-configuration", "run.airflow.example/x", "notrun.ai/x", "tool"]
)
def test_the_last_applied_configuration_was_kept(key: str) -> None:
    """It has all that is left out elsewhere; and a name that only looks like one of ours is none."""
    pod = make.pod("p").build()
    pod["metadata"]["annotations"] = {key: "hush", "team.run.ai/x": "kept"}
    content = written(pod)
    assert b"hush" not in content
    assert read(content).objects[Pod.resource][0]["metadata"]["annotations"] == {"team.run.ai/x": "kept"}


def test_what_drivers_are_told_was_kept() -> None:
    """Parameters, attributes and configuration are for drivers, and may have passwords in them."""
    config = [{"opaque": {"driver": "d", "parameters": {"password": "hush"}}}]
    secret = {"name": "hush", "namespace": "hush"}
    csi = {"driver": "d", "volumeHandle": "v", "volumeAttributes": {"a": "hush"}, "nodePublishSecretRef": secret}
    results = [{"request": "gpu", "driver": "d", "pool": "n", "device": "g"}]
    allocated = {"allocation": {"devices": {"results": results, "config": config}}, "devices": [{"data": "hush"}]}
    objects: dict[type[Object], Json] = {
        PersistentVolume: {"spec": {"csi": csi, "mountOptions": ["password=hush"], "storageClassName": "s"}},
        StorageClass: {"provisioner": "p", "parameters": {"a": "hush"}, "mountOptions": ["hush"]},
        ResourceClaim: {"spec": {"devices": {"requests": [], "config": config}}, "status": allocated},
        DeviceClass: {"spec": {"selectors": [], "config": config}},
    }
    taken = {kind.resource: [{"metadata": {"name": "x"}, **item}] for kind, item in objects.items()}
    content = write(Snapshot(taken))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert b"hush" not in archive.read("snapshot.json")
    stored = read(content).objects
    assert stored[PersistentVolume.resource][0]["spec"]["csi"] == {"driver": "d", "volumeHandle": "v"}
    assert stored[ResourceClaim.resource][0]["status"] == {"allocation": {"devices": {"results": results}}}


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"PK", b'{"rawObjects": 5}', b'{"rawObjects": {"pods": 5}}', b'{"rawObjects": {"pods": [5]}}'],
)
def test_what_is_no_snapshot(content: bytes) -> None:
    """It is refused with what was expected."""
    with pytest.raises(SnapshotError, match="not a snapshot"):
        read(content)


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size that the archive states is looked at first."""
    monkeypatch.setattr("spinney.scheduler.intake.snapshot._LARGEST", 10)
    with pytest.raises(SnapshotError, match="more than 10 bytes"):
        read(write(Snapshot()))


def test_an_archive_whose_directory_is_elsewhere() -> None:
    """A damaged file made the archive's reader seek before its beginning."""
    content = write(Snapshot())
    damaged = content[:-6] + (2**31).to_bytes(4, "little") + content[-2:]
    with pytest.raises(SnapshotError, match="not a snapshot"):
        read(damaged)


def test_json_without_an_archive() -> None:
    """As upstream's plugin prints it."""
    assert read(msgspec.json.encode({"rawObjects": {}})).objects[Pod.resource] == []

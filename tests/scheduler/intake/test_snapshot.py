"""Snapshot files: what they keep, and what is no snapshot."""

from __future__ import annotations

import io
import zipfile

import msgspec
import pytest

from spinney.api.core import ConfigMap, Pod
from spinney.api.meta import Json
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

"""The exporter of NUMA placements: what it reads from a node, and what it tells on pods."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.kube.runtime import Component, Runtime
from spinney.services.numa.exporter import Exporter, observed
from spinney.services.numa.kubelet_state import Zones, parse_cpus, placements
from tests import make
from tests.services.stage import stage
from tests.virtual_time import virtual

OBSERVED = "kai.scheduler/numa-placement-observed"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node with two zones of four CPUs, and a kubelet that has placed two pods."""
    for zone, cpus in enumerate(("0-3\n", "4-7\n")):
        folder = tmp_path / f"sys/devices/system/node/node{zone}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cpus)
    memory = [{"numaAffinity": [1], "type": "memory", "size": 2**30}]
    device = {"PodUID": "a", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"1": ["GPU-1", "GPU-2"], "-1": ["GPU-3"]}}
    states: dict[str, Json] = {
        "cpu_manager_state": {
            "policyName": "static",
            "defaultCpuSet": "0-2",
            "entries": {"a": {"main": "4-5", "side": "3"}, "b": {"main": "6,7"}},
        },
        "memory_manager_state": {"policyName": "Static", "entries": {"a": {"main": memory}}},
        "device-plugins/kubelet_internal_checkpoint": {"Data": {"PodDeviceEntries": [device]}, "Checksum": 1},
    }
    for name, content in states.items():
        path = tmp_path / "kubelet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return tmp_path


def test_placements_are_read_from_the_kubelets_files(node: Path) -> None:
    """Exclusive CPUs, memory and devices, by pod and zone; a device without a place is nowhere."""
    assert placements(node / "kubelet", node / "sys") == {
        "a": {"node-0": {"cpu": 1}, "node-1": {"cpu": 2, "memory": 2**30, "nvidia.com/gpu": 2}},
        "b": {"node-1": {"cpu": 2}},
    }


def test_a_kubelet_that_manages_nothing_places_nothing(tmp_path: Path) -> None:
    """No files, no placements."""
    assert placements(tmp_path, tmp_path) == {}


def test_lists_of_cpus() -> None:
    """As Linux writes them."""
    assert list(parse_cpus("0-2,7,9-9\n")) == [0, 1, 2, 7, 9]
    assert list(parse_cpus("")) == []


def test_the_annotation_is_upstreams() -> None:
    """A list of zones with amounts."""
    zones = {"node-1": {"memory": 2**30, "cpu": 2}, "node-0": {"nvidia.com/gpu": 1}}
    assert json.loads(observed(zones)) == [
        {"zone": "node-0", "amount": {"nvidia.com/gpu": "1"}},
        {"zone": "node-1", "amount": {"cpu": "2", "memory": "1Gi"}},
    ]


@virtual
async def test_pods_of_the_node_are_told_once_and_again_where_somebody_meddles() -> None:
    """What the kubelet says is written where it differs, and nowhere else."""
    zones_of: dict[str, Zones] = {}

    async def run(runtime: Runtime, _: object) -> None:
        exporter = Exporter(runtime, "n1", lambda: zones_of)
        await exporter.pods.synced()
        runtime.ready()
        while True:
            await exporter.export()
            await asyncio.sleep(1)

    async with stage((Component("exporter", "", run), None)) as world:
        for name, on in (("here", "n1"), ("there", "n2")):
            document = make.pod(name).build()
            document["spec"]["nodeName"] = on
            made = await world.client.create(Pod, document, "default")
            zones_of[made.uid] = {"node-0": {"cpu": 2}}
        written: list[str] = []
        world.transport.fault = lambda request: written.append(request.path)
        await asyncio.sleep(10)
        assert len(written) == 1
        pod = await world.client.get(Pod, ("default", "here"))
        assert json.loads(pod.metadata.annotations[OBSERVED]) == [{"zone": "node-0", "amount": {"cpu": "2"}}]
        assert OBSERVED not in (await world.client.get(Pod, ("default", "there"))).metadata.annotations
        await world.client.patch(Pod, ("default", "here"), {"metadata": {"annotations": {OBSERVED: None}}})
        await asyncio.sleep(10)
        assert len(written) == 2

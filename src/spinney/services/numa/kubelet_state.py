"""The NUMA placement of pods' CPUs, memory and devices, from the kubelet's state files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from spinney.api.meta import Json

# Zone → resource → amount.
Zones = dict[str, dict[str, int]]

_CPU_STATE = "cpu_manager_state"
_MEMORY_STATE = "memory_manager_state"
_DEVICE_STATE = "device-plugins/kubelet_internal_checkpoint"


def placements(kubelet: Path, sysfs: Path) -> dict[str, Zones]:
    """The placement of every pod with exclusive resources, by UID."""
    zones_of: dict[str, Zones] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    zone_of = {cpu: zone for zone, cpus in _zones(sysfs) for cpu in cpus}
    for pod, containers in (_read(kubelet / _CPU_STATE).get("entries") or {}).items():
        for cpus in containers.values():
            for cpu in parse_cpus(cpus):
                zones_of[pod][zone_of.get(cpu, "node-0")]["cpu"] += 1
    for pod, containers in (_read(kubelet / _MEMORY_STATE).get("entries") or {}).items():
        for block in (block for blocks in containers.values() for block in blocks):
            # A block over several zones counts for the first: the state does not say how it is split.
            zones_of[pod][f"node-{block['numaAffinity'][0]}"][block["type"]] += int(block["size"])
    devices = (_read(kubelet / _DEVICE_STATE).get("Data") or {}).get("PodDeviceEntries") or ()
    for entry in devices:
        for zone, names in (entry.get("DeviceIDs") or {}).items():
            # -1 is a device without a zone.
            if int(zone) >= 0:
                zones_of[entry["PodUID"]][f"node-{zone}"][entry["ResourceName"]] += len(names)
    return {pod: {zone: dict(amounts) for zone, amounts in zones.items()} for pod, zones in zones_of.items()}


def parse_cpus(text: str) -> Iterator[int]:
    """`0-3,8` → 0, 1, 2, 3, 8."""
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _zones(sysfs: Path) -> Iterator[tuple[str, list[int]]]:
    for folder in sorted((sysfs / "devices/system/node").glob("node[0-9]*")):
        yield f"node-{folder.name.removeprefix('node')}", list(parse_cpus((folder / "cpulist").read_text()))


def _read(path: Path) -> Json:
    """A state file; empty where it does not exist."""
    try:
        content: Json = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    return content

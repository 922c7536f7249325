"""The schedulers that we are held against: which program, which backend, which Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.testing.schedulers import kai
from spinney.testing.schedulers.sources import SOURCES


@dataclass(frozen=True)
class Entry:
    """One scheduler; `program` names one of other projects, `services` those of ours."""

    name: str
    title: str
    backend: str
    scheduler_name: str
    kubernetes: str = "v1.35.4"
    program: str = ""
    services: tuple[str, ...] = ()


def _other(name: str, title: str, scheduler_name: str) -> Entry:
    version = SOURCES[name].version.removeprefix("v")
    return Entry(name, f"{title} {version}", name, scheduler_name, program=name)


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("kube-1.35", "kube-scheduler 1.35.4", "default", "default-scheduler"),
        Entry("kube-1.36", "kube-scheduler 1.36.3", "default", "default-scheduler", kubernetes="v1.36.3"),
        _other("volcano", "Volcano", "volcano"),
        _other("koordinator", "Koordinator", "koord-scheduler"),
        _other("yunikorn", "YuniKorn", "yunikorn"),
        Entry("kai", f"KAI {kai.VERSION.removeprefix('v')}", "kai", "kai-scheduler", program="kai"),
        Entry("spinney", "Spinney", "kai", "kai-scheduler", services=("scheduler", "binder", "podgroup-controller")),
    )
}

"""The capability table: every backend in every version, feature by feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.interface import Backend
from spinney.backends.kube_scheduler.releases import GANG_APIS, served_by

_YES, _NO = "yes", "–"


@dataclass(frozen=True)
class Column:
    """One backend, in one version of its API."""

    title: str
    capabilities: Capabilities


def columns(backends: Iterable[Backend]) -> list[Column]:
    """Each backend once, and once more for every release of Kubernetes on which it can do something else."""
    backends = list(backends)
    listed: list[Column] = []
    for backend in backends:
        by_release = {release: backend.capabilities(served_by(release, backends)) for release in GANG_APIS}
        if len(set(by_release.values())) == 1:
            listed.append(Column(backend.name, next(iter(by_release.values()))))
            continue
        listed += [
            Column(f"{backend.name} {release}", capabilities)
            for release, capabilities in by_release.items()
            if capabilities.api
        ]
    return listed


def rows(listed: Iterable[Column]) -> list[list[str]]:
    """The table as text, its header first."""
    listed = list(listed)
    table = [["", *(column.title for column in listed)]]
    table += [
        [feature.value, *(_YES if column.capabilities.has(feature) else _NO for column in listed)]
        for feature in Feature
    ]
    table.append(["pods beyond the minimum", *(_surplus(column.capabilities) for column in listed)])
    table.append(["gangs released", *(_pace(column.capabilities) for column in listed)])
    table.append(["status from", *(column.capabilities.status for column in listed)])
    table.append(["written as", *(column.capabilities.api for column in listed)])
    return table


def markdown(backends: Iterable[Backend]) -> str:
    """The table and each version's remarks in Markdown, for the documentation."""
    listed = columns(backends)
    header, *body = rows(listed)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    remarks = [f"- **{column.title}**: {'; '.join(column.capabilities.remarks)}." for column in listed]
    return "\n".join([*lines, "", *(remark for remark in remarks if not remark.endswith(": ."))])


def _surplus(capabilities: Capabilities) -> str:
    return "held until the gang is bound" if capabilities.surplus_held else "free"


def _pace(capabilities: Capabilities) -> str:
    return "in turn" if capabilities.in_turn else "as they come"

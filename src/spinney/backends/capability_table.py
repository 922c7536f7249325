"""The capability table: every backend in every version, feature by feature, for people and for the documentation."""

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
    found: list[Column] = []
    for backend in backends:
        by_release = {release: backend.capabilities(served_by(release, backends)) for release in GANG_APIS}
        if len(set(by_release.values())) == 1:
            found.append(Column(backend.name, next(iter(by_release.values()))))
            continue
        found += [Column(f"{backend.name} {release}", each) for release, each in by_release.items() if each.api]
    return found


def rows(found: Iterable[Column]) -> list[list[str]]:
    """The table as text, its header first."""
    found = list(found)
    table = [["", *(column.title for column in found)]]
    table += [
        [feature.value, *(_YES if column.capabilities.has(feature) else _NO for column in found)] for feature in Feature
    ]
    table.append(["pods beyond the minimum", *(_surplus(column.capabilities) for column in found)])
    table.append(["gangs let go", *(_pace(column.capabilities) for column in found)])
    table.append(["status from", *(column.capabilities.status for column in found)])
    table.append(["written as", *(column.capabilities.api for column in found)])
    return table


def markdown(backends: Iterable[Backend]) -> str:
    """The table and each version's remarks in Markdown, as they stand in the documentation."""
    found = columns(backends)
    header, *body = rows(found)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in body]
    remarks = [f"- **{column.title}**: {'; '.join(column.capabilities.remarks)}." for column in found]
    return "\n".join([*lines, "", *(remark for remark in remarks if not remark.endswith(": ."))])


def _surplus(capabilities: Capabilities) -> str:
    return "held until the gang is bound" if capabilities.surplus_held else "free"


def _pace(capabilities: Capabilities) -> str:
    return "in turn" if capabilities.in_turn else "as they come"

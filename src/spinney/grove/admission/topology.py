"""Checks of topology constraints, at every level of a set, against the ClusterTopologyBinding they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spinney.api.meta import Json
from spinney.grove.admission.problems import Problems

# Upstream's schema rules; its tests look for these words.
NEED_PACK = "topologyConstraint must specify pack or deprecated packDomain"
BOTH = "must not set both pack.required and deprecated packDomain"
EMPTY_PACK = "pack must specify at least one of required or preferred"
DEPRECATED = "packDomain is deprecated and cannot be used on new workloads; use pack.required"

# Binding name → its domains, broadest first; None where the binding is not there.
Bindings = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Level:
    """One constraint, with its parent's."""

    path: str
    constraint: Json
    topology: str
    parent: Level | None

    @property
    def required(self) -> str:
        """The domain that must hold all pods."""
        return str((self.constraint.get("pack") or {}).get("required") or self.constraint.get("packDomain") or "")

    @property
    def preferred(self) -> str:
        """The domain that should hold all pods."""
        return str((self.constraint.get("pack") or {}).get("preferred") or "")


def levels(template: Json, path: str) -> Iterator[Level]:
    """Every constraint of a set, parents before children."""
    top = _level(template, path, None)
    if top is not None:
        yield top
    group_of: dict[str, Level | None] = {}
    for position, group in enumerate(template.get("podCliqueScalingGroups") or ()):
        level = _level(group, f"{path}.podCliqueScalingGroups[{position}]", top)
        if level is not None:
            yield level
        for member in group.get("cliqueNames") or ():
            group_of[member] = level or top
    for position, clique in enumerate(template.get("cliques") or ()):
        parent = group_of.get(clique.get("name"), top)
        level = _level(clique, f"{path}.cliques[{position}]", parent)
        if level is not None:
            yield level


def _level(owner: Json, path: str, parent: Level | None) -> Level | None:
    constraint = owner.get("topologyConstraint")
    if not isinstance(constraint, dict):
        return None
    inherited = parent.topology if parent else ""
    return Level(f"{path}.topologyConstraint", constraint, str(constraint.get("topologyName") or inherited), parent)


def check_shape(template: Json, path: str, problems: Problems) -> None:
    """What upstream's schema says about a constraint, in its words."""
    for level in levels(template, path):
        pack, legacy = level.constraint.get("pack"), level.constraint.get("packDomain")
        if pack is None and not legacy:
            problems.invalid(level.path, level.constraint, NEED_PACK)
        if pack is not None and not level.preferred and not pack.get("required"):
            problems.invalid(f"{level.path}.pack", pack, EMPTY_PACK)
        if legacy and pack is not None and pack.get("required"):
            problems.invalid(level.path, level.constraint, BOTH)


def check_new(template: Json, path: str, problems: Problems) -> None:
    """What only a new set is refused for: the deprecated spelling."""
    for level in levels(template, path):
        if level.constraint.get("packDomain"):
            problems.invalid(f"{level.path}.packDomain", level.constraint["packDomain"], DEPRECATED)


def check_disabled(template: Json, path: str, problems: Problems) -> None:
    """No constraint where topology-aware scheduling is switched off."""
    for level in levels(template, path):
        problems.forbidden(
            level.path,
            "topology-aware scheduling is disabled; enable topologyAwareScheduling in the operator's configuration "
            "or remove the constraint",
        )


def check(template: Json, path: str, bindings: Bindings, problems: Problems) -> None:
    """Each constraint resolves to one existing binding, names its domains, and is no broader than its parent's."""
    topologies: dict[str, str] = {}
    for level in levels(template, path):
        if not level.topology:
            problems.required(
                f"{level.path}.topologyName", "name a ClusterTopologyBinding here or on the scaling group or set above"
            )
            continue
        topologies.setdefault(level.topology, level.path)
        domains = bindings.get(level.topology)
        if domains is None:
            existing = ", ".join(sorted(bindings)) or "none"
            problems.invalid(
                f"{level.path}.topologyName", level.topology,
                f"no ClusterTopologyBinding of this name; create it or use one of: {existing}",
            )  # fmt: skip
            continue
        _check_domains(level, domains, problems)
        _check_parent(level, domains, problems)
    if len(topologies) > 1:
        first, *others = topologies
        for other in others:
            problems.invalid(
                f"{topologies[other]}.topologyName", other,
                f"a set uses one topology, and {topologies[first]} names {first}; use the same",
            )  # fmt: skip


def _check_domains(level: Level, domains: Sequence[str], problems: Problems) -> None:
    for field, domain in (("required", level.required), ("preferred", level.preferred)):
        if domain and domain not in domains:
            where = "packDomain" if field == "required" and level.constraint.get("packDomain") else f"pack.{field}"
            problems.invalid(
                f"{level.path}.{where}", domain,
                f"not a domain of ClusterTopologyBinding {level.topology}; use one of: {', '.join(domains)}",
            )  # fmt: skip
    both = level.required in domains and level.preferred in domains
    if both and domains.index(level.preferred) < domains.index(level.required):
        problems.warnings.append(
            f"{level.path}.pack.preferred: {level.preferred} is broader than the required {level.required} "
            "and has no effect"
        )


def _check_parent(level: Level, domains: Sequence[str], problems: Problems) -> None:
    parent = level.parent
    while parent is not None:
        pairs = (("required", level.required, parent.required), ("preferred", level.preferred, parent.preferred))
        for field, own, above in pairs:
            if own in domains and above in domains and domains.index(above) > domains.index(own):
                problems.invalid(
                    f"{level.path}.pack.{field}", own,
                    f"broader than {above}, which {parent.path} asks for; use {above} or a narrower domain",
                )  # fmt: skip
        parent = parent.parent

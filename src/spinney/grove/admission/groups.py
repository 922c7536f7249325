"""Checks of a set's scaling groups against its cliques, and of the length of combined names."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.grove.admission import cliques, syntax
from spinney.grove.admission.problems import Problems
from spinney.grove.model import names


def check(template: Json, path: str, problems: Problems) -> None:
    """Every rule that looks at scaling groups."""
    by_name = {clique.get("name"): clique for clique in template.get("cliques") or ()}
    taken: dict[str, str] = {}
    seen: set[str] = set()
    for position, group in enumerate(template.get("podCliqueScalingGroups") or ()):
        item_path = f"{path}[{position}]"
        cliques.check_name(group.get("name"), seen, f"{item_path}.name", "scaling group", problems)
        _check_members(group, by_name, taken, item_path, problems)
        cliques.check_counts(group, item_path, "leave it out for 1", problems)
        cliques.check_scaling(
            group.get("scaleConfig"),
            group.get("minAvailable"),
            group.get("replicas"),
            f"{item_path}.scaleConfig",
            problems,
        )
        cliques.check_rollout(group.get("rollingUpdate"), f"{item_path}.rollingUpdate", problems)
    _check_ambiguous(template, path, problems)


def _check_members(group: Json, by_name: dict[str, Json], taken: dict[str, str], path: str, problems: Problems) -> None:
    name = str(group.get("name") or "")
    members = group.get("cliqueNames") or ()
    if not members:
        problems.required(f"{path}.cliqueNames", "name at least one clique of this set")
    for position, member in enumerate(members):
        item_path = f"{path}.cliqueNames[{position}]"
        if member not in by_name:
            cliques_of_set = ", ".join(sorted(map(str, by_name)))
            problems.invalid(item_path, member, f"no such clique; name one of {cliques_of_set}")
            continue
        if member in taken:
            where = "twice in this group" if taken[member] == name else f"already in scaling group {taken[member]}"
            problems.duplicate(item_path, member, f"it is {where}; a clique belongs to at most one")
        taken[member] = name
        if (by_name[member].get("spec") or {}).get("autoScalingConfig"):
            problems.forbidden(
                item_path, f"clique {member} has an autoScalingConfig, but scales with its group; "
                "remove it and use the group's scaleConfig",
            )  # fmt: skip


def _check_ambiguous(template: Json, path: str, problems: Problems) -> None:
    standalone = {clique.get("name") for clique in template.get("cliques") or ()} - _group_of(template).keys()
    for position, group in enumerate(template.get("podCliqueScalingGroups") or ()):
        if group.get("name") in standalone:
            problems.duplicate(
                f"{path}[{position}].name", group.get("name"),
                "a clique outside the group has this name too and would need the same HPA; rename one",
            )  # fmt: skip


def _group_of(template: Json) -> dict[str, str]:
    """The scaling group of each clique that has one."""
    return {
        str(member): str(group.get("name") or "")
        for group in template.get("podCliqueScalingGroups") or ()
        for member in group.get("cliqueNames") or ()
    }


def pods_of_replica(template: Json) -> int:
    """How many pods one replica of the set has."""
    group_of = _group_of(template)
    replicas_of_group = {
        group.get("name"): _count(group.get("replicas")) for group in template.get("podCliqueScalingGroups") or ()
    }
    return sum(
        _count((clique.get("spec") or {}).get("replicas")) * replicas_of_group.get(group_of.get(clique.get("name")), 1)
        for clique in template.get("cliques") or ()
    )


def _count(replicas: Any) -> int:
    return replicas if isinstance(replicas, int) else 1


def check_new_names(pcs_name: str, template: Json, path: str, problems: Problems) -> None:
    """Names that Services, host names and cliques can be built from.

    Only new sets are checked: the names of an existing set cannot change, and it may be repaired in other ways.
    """
    if syntax.is_subdomain(pcs_name) and not syntax.is_service_name(pcs_name):
        problems.invalid("metadata.name", pcs_name, syntax.SERVICE_RULE)
    for kind in ("cliques", "podCliqueScalingGroups"):
        for position, owner in enumerate(template.get(kind) or ()):
            name = str(owner.get("name") or "")
            if syntax.is_subdomain(name) and not syntax.is_label(name):
                problems.invalid(
                    f"{path}.{kind}[{position}].name", name, f"host names are made of it: {syntax.LABEL_RULE}"
                )
    _check_clashes(template, path, problems)


def _check_clashes(template: Json, path: str, problems: Problems) -> None:
    """Two cliques whose full names could be the same, as `g-0-a` alone and `a` of the group `g` would be."""
    position_of = {clique.get("name"): at for at, clique in enumerate(template.get("cliques") or ())}
    group_of = _group_of(template)
    # An index can only equal a number that is part of another name.
    parts = {part for name in (*position_of, *group_of.values()) for part in str(name).split("-")}
    numbers = {part for part in parts if whole_number(part) is not None}
    seen: dict[str, str] = {}
    for name, position in position_of.items():
        group = group_of.get(str(name), "")
        for full in {f"{group}-{number}-{name}" for number in numbers} if group else {str(name)}:
            if full in seen:
                problems.duplicate(
                    f"{path}.cliques[{position}].name", name,
                    f"with its scaling group's index it would be {full}, as clique {seen[full]} is; rename one",
                )  # fmt: skip
            seen[full] = str(name)


def check_name_lengths(pcs_name: str, template: Json, path: str, problems: Problems) -> None:
    """Names that leave room for indices and a pod's suffix inside 63 characters."""
    group_of = _group_of(template)
    for position, clique in enumerate(template.get("cliques") or ()):
        name = str(clique.get("name") or "")
        group = group_of.get(name, "")
        length = len(pcs_name) + len(group) + len(name)
        if length <= names.NAME_BUDGET:
            continue
        parts = f"set {pcs_name}, scaling group {group}, clique {name}" if group else f"set {pcs_name}, clique {name}"
        problems.invalid(
            f"{path}.cliques[{position}].name", name,
            f"the names of {parts} have {length} characters together, at most {names.NAME_BUDGET} are allowed "
            "because pod names are made of them; shorten one",
        )  # fmt: skip

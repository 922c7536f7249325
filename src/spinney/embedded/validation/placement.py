"""Where a pod may go: tolerations, affinity and spread."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.errors import (
    FieldError,
    duplicate,
    invalid,
    required,
    unsupported,
)
from spinney.embedded.validation import names
from spinney.embedded.validation.selectors import check_expressions


def check_tolerations(tolerations: list[Json], path: str) -> list[FieldError]:
    """The taints that a pod puts up with."""
    found: list[FieldError] = []
    for at, toleration in enumerate(tolerations):
        where = f"{path}[{at}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "Equal")
        if key:
            found += [invalid(f"{where}.key", key, problem) for problem in names.qualified_problems(key)]
        elif operator != "Exists":
            found.append(
                invalid(
                    f"{where}.operator",
                    operator,
                    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
                )
            )
        if operator not in ("Equal", "Exists"):
            found.append(unsupported(f"{where}.operator", operator, ("Equal", "Exists")))
        if operator == "Exists" and toleration.get("value"):
            found.append(
                invalid(f"{where}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
            )
        effect = toleration.get("effect", "")
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            found.append(
                invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
            )
        if effect and effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            found.append(unsupported(f"{where}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute")))
    return found


def check_affinity(affinity: Json, path: str) -> list[FieldError]:
    """What a pod wants to be near to or far from."""
    found: list[FieldError] = []
    node = affinity.get("nodeAffinity") or {}
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    where = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if needed is not None:
        terms = needed.get("nodeSelectorTerms") or ()
        if not terms:
            found.append(required(f"{where}.nodeSelectorTerms", "must have at least one node selector term"))
        for at, term in enumerate(terms):
            found += check_expressions(term, f"{where}.nodeSelectorTerms[{at}]", ("Gt", "Lt"))
    for side in ("podAffinity", "podAntiAffinity"):
        terms = (affinity.get(side) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for at, term in enumerate(terms):
            where = f"{path}.{side}.requiredDuringSchedulingIgnoredDuringExecution[{at}].topologyKey"
            key = term.get("topologyKey", "")
            if not key:
                found.append(required(where, "can not be empty"))
            found += [invalid(where, key, problem) for problem in names.qualified_problems(key)]
    for side in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        wishes = (affinity.get(side) or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for at, wish in enumerate(wishes):
            weight = wish.get("weight", 0)
            if not 1 <= weight <= 100:
                where = f"{path}.{side}.preferredDuringSchedulingIgnoredDuringExecution[{at}].weight"
                found.append(invalid(where, weight, "must be in the range 1-100"))
    return found


def check_spread(constraints: list[Json], path: str) -> list[FieldError]:
    """How evenly pods are to be spread."""
    found: list[FieldError] = []
    for at, constraint in enumerate(constraints):
        where = f"{path}[{at}]"
        if constraint.get("maxSkew", 0) <= 0:
            found.append(invalid(f"{where}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
        if not constraint.get("topologyKey"):
            found.append(required(f"{where}.topologyKey", "can not be empty"))
        when = constraint.get("whenUnsatisfiable", "")
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            found.append(unsupported(f"{where}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway")))
        pairs = [(each.get("topologyKey"), each.get("whenUnsatisfiable")) for each in constraints]
        if (constraint.get("topologyKey"), when) in pairs[at + 1 :]:
            name = f"{where}.{{topologyKey, whenUnsatisfiable}}"
            found.append(duplicate(name, f"{{{constraint.get('topologyKey')}, {when}}}"))
    return found

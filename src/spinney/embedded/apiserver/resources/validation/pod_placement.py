"""Checks of tolerations, affinity and topology spread."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation.label_selectors import check_expressions, check_selector


def check_tolerations(tolerations: list[Json], path: str) -> list[FieldError]:
    """Check tolerations."""
    errors: list[FieldError] = []
    for at, toleration in enumerate(tolerations):
        where = f"{path}[{at}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "Equal")
        if key:
            errors += [invalid(f"{where}.key", key, problem) for problem in naming.qualified_problems(key)]
        elif operator != "Exists":
            errors.append(
                invalid(
                    f"{where}.operator",
                    operator,
                    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
                )
            )
        effect = toleration.get("effect", "")
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            errors.append(
                invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
            )
        errors += _operator(operator, toleration.get("value", ""), f"{where}.operator")
        if effect and effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            errors.append(unsupported(f"{where}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute")))
    return errors


def _operator(operator: str, value: str, path: str) -> list[FieldError]:
    if operator == "Equal":
        problems = naming.value_problems(value)
        return [invalid(path, value, ";".join(problems))] if problems else []
    if operator == "Exists":
        return [invalid(path, value, "value must be empty when `operator` is 'Exists'")] if value else []
    # The message lists operators whose feature gates are off, too.
    compared = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
    return [unsupported(path, operator, ("Equal", "Exists", *compared))]


def check_affinity(affinity: Json, path: str) -> list[FieldError]:
    """Check the affinity of a pod."""
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity") or {}
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    where = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if needed is not None:
        terms = needed.get("nodeSelectorTerms") or ()
        if not terms:
            errors.append(required(f"{where}.nodeSelectorTerms", "must have at least one node selector term"))
        for at, term in enumerate(terms):
            errors += check_node_term(term, f"{where}.nodeSelectorTerms[{at}]")
    preferred = node.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    for at, term in enumerate(preferred):
        where = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{at}]"
        errors += _weight(term, where) + check_node_term(term.get("preference") or {}, f"{where}.preference")
    for side in ("podAffinity", "podAntiAffinity"):
        terms = (affinity.get(side) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for at, term in enumerate(terms):
            errors += _pod_term(term, f"{path}.{side}.requiredDuringSchedulingIgnoredDuringExecution[{at}]")
        preferred = (affinity.get(side) or {}).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for at, term in enumerate(preferred):
            where = f"{path}.{side}.preferredDuringSchedulingIgnoredDuringExecution[{at}]"
            errors += _weight(term, where) + _pod_term(term.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    return errors


def check_node_term(term: Json, path: str) -> list[FieldError]:
    """Check a term of a node selector."""
    errors = check_expressions(term, path, ("Gt", "Lt"))
    for at, field in enumerate(term.get("matchFields") or ()):
        where, operator = f"{path}.matchFields[{at}]", field.get("operator", "")
        if operator not in ("In", "NotIn"):
            errors.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        elif len(field.get("values") or ()) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(required(f"{where}.values", detail))
        if field.get("key") != "metadata.name":
            errors.append(invalid(f"{where}.key", field.get("key", ""), "not a valid field selector key"))
    return errors


def _weight(term: Json, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Json, path: str) -> list[FieldError]:
    """Check a pod affinity term."""
    errors = check_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += check_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors += [invalid(f"{path}.namespace", name, problem) for problem in naming.label_problems(name)]
    where, key = f"{path}.topologyKey", term.get("topologyKey", "")
    if not key:
        errors.append(required(where, "can not be empty"))
    return errors + [invalid(where, key, problem) for problem in naming.qualified_problems(key)]


def check_spread(constraints: list[Json], path: str) -> list[FieldError]:
    """Check topology spread constraints."""
    errors: list[FieldError] = []
    for at, constraint in enumerate(constraints):
        where = f"{path}[{at}]"
        if constraint.get("maxSkew", 0) <= 0:
            errors.append(invalid(f"{where}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
        if not constraint.get("topologyKey"):
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        when = constraint.get("whenUnsatisfiable", "")
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            errors.append(unsupported(f"{where}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway")))
        least = constraint.get("minDomains")
        if least is not None and least <= 0:
            errors.append(invalid(f"{where}.minDomains", least, "must be greater than zero"))
        errors += check_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return errors

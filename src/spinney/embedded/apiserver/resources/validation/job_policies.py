"""Checks of the failure and success policies of a Job."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    invalid,
    listed,
    omitted,
    required,
    too_long,
    too_many,
    unsupported,
)

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_RULES, _CODES, _INDEXES = 20, 255, 64 * 1024
NOT_NEGATIVE = "must be greater than or equal to 0"


def _chosen(value: str, allowed: tuple[str, ...], path: str) -> list[FieldError]:
    if not value:
        return [required(path, f"valid values: {listed(allowed)}")]
    return [] if value in allowed else [unsupported(path, value, allowed)]


def check_failures(spec: Json, path: str) -> list[FieldError]:
    """Check the `podFailurePolicy` of a Job."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    errors = [too_many(f"{path}.rules", len(rules), _RULES)] if len(rules) > _RULES else []
    pod = (spec.get("template") or {}).get("spec") or {}
    container_names = {each.get("name") for key in ("containers", "initContainers") for each in pod.get(key) or ()}
    for at, rule in enumerate(rules):
        errors += _failure_rule(spec, rule, f"{path}.rules[{at}]", container_names)
    return errors


def _failure_rule(spec: Json, rule: Json, path: str, container_names: set[str | None]) -> list[FieldError]:
    action = rule.get("action", "")
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors = [invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")]
    else:
        errors = _chosen(action, _ACTIONS, f"{path}.action")
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        errors += _exit_codes(codes, f"{path}.onExitCodes", container_names)
    if len(conditions) > _RULES:
        errors.append(too_many(f"{path}.onPodConditions", len(conditions), _RULES))
    for at, condition in enumerate(conditions):
        where, kind = f"{path}.onPodConditions[{at}]", condition.get("type", "")
        errors += [invalid(f"{where}.type", kind, problem) for problem in naming.qualified_problems(kind)]
        errors += _chosen(condition.get("status", ""), _STATUSES, f"{where}.status")
    if codes is not None and conditions:
        errors.append(omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def _exit_codes(codes: Json, path: str, container_names: set[str | None]) -> list[FieldError]:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    errors = _chosen(operator, _OPERATORS, f"{path}.operator")
    name = codes.get("containerName")
    if name is not None and name not in container_names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, detail))
    if not values:
        errors.append(invalid(f"{path}.values", values, "at least one value is required"))
    elif len(values) > _CODES:
        errors.append(too_many(f"{path}.values", len(values), _CODES))
    for at, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.append(invalid(f"{path}.values[{at}]", value, "must not be 0 for the In operator"))
        if value in values[:at]:
            errors.append(duplicate(f"{path}.values[{at}]", value))
    if values != sorted(values):
        errors.append(invalid(f"{path}.values", values, "must be ordered"))
    return errors


def check_success(spec: Json, path: str) -> list[FieldError]:
    """Check the `successPolicy` of an indexed Job."""
    rules, completions = spec["successPolicy"].get("rules") or (), spec.get("completions") or 0
    errors: list[FieldError] = []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", detail))
    if len(rules) > _RULES:
        errors.append(too_many(f"{path}.rules", len(rules), _RULES))
    for at, rule in enumerate(rules):
        errors += _success_rule(rule, f"{path}.rules[{at}]", completions)
    return errors


def _success_rule(rule: Json, path: str, completions: int) -> list[FieldError]:
    errors: list[FieldError] = []
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        where = f"{path}.succeededIndexes"
        if len(indexes) > _INDEXES:
            errors.append(too_long(where, _INDEXES))
        total, why = _read_indexes(indexes, completions)
        if why:
            errors.append(invalid(where, indexes, f"error parsing succeededIndexes: {why}"))
    if count is None:
        return errors
    where = f"{path}.succeededCount"
    if count < 0:
        errors.append(invalid(where, count, NOT_NEGATIVE))
    most = "must be less than or equal to"
    if count > completions:
        errors.append(invalid(where, count, f"{most} {completions} (the number of specified completions)"))
    if indexes is not None and count > total:
        detail = f"{most} {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(where, count, detail))
    return errors


def _read_indexes(text: str, completions: int) -> tuple[int, str]:
    """Count the indexes of a text like `0,2-4`, or say why it cannot be parsed."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
            return 0, f'the fragment "{part}" {rule}'
        for end in ends:
            if not end.isdigit():
                return 0, f'cannot convert string to integer for index: "{end}"'
            if int(end) >= completions:
                return 0, f'too large index: "{end}"'
        low, high = int(ends[0]), int(ends[-1])
        if len(ends) == 2 and low >= high:
            return 0, f"non-increasing order, previous: {low}, current: {high}"
        if last >= low:
            return 0, f"non-increasing order, previous: {last}, current: {low}"
        total, last = total + high - low + 1, high
    return total, ""

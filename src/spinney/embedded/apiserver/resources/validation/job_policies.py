"""Checks of the failure and success policies of a Job."""

from __future__ import annotations

import re

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, listed, omitted, one_of, required

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_INDEXES = re.compile(r"(\d{1,7}(-\d{1,7})?(,|\Z))*\Z")


def _chosen(value: str, allowed: tuple[str, ...], path: str) -> list[FieldError]:
    if not value:
        return [required(path, f"valid values: {listed(allowed)}")]
    return one_of(path, value, allowed)


def check_failures(spec: Json, path: str) -> list[FieldError]:
    """Check the `podFailurePolicy` of a Job."""
    errors: list[FieldError] = []
    for at, rule in enumerate(spec["podFailurePolicy"].get("rules") or ()):
        where, action = f"{path}.rules[{at}]", rule.get("action", "")
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            errors.append(invalid(f"{where}.action", action, "requires the backoffLimitPerIndex to be set"))
        errors += _chosen(action, _ACTIONS, f"{where}.action") + _failure_rule(rule, where)
    return errors


def _failure_rule(rule: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        errors += _chosen(codes.get("operator", ""), _OPERATORS, f"{path}.onExitCodes.operator")
        if not codes.get("values"):
            errors.append(invalid(f"{path}.onExitCodes.values", [], "at least one value is required"))
        elif codes.get("operator") == "In" and 0 in codes["values"]:
            where = f"{path}.onExitCodes.values[{codes['values'].index(0)}]"
            errors.append(invalid(where, 0, "must not be 0 for the In operator"))
    for at, condition in enumerate(conditions):
        where, kind = f"{path}.onPodConditions[{at}]", condition.get("type", "")
        errors += [invalid(f"{where}.type", kind, problem) for problem in naming.qualified_problems(kind)]
    if codes is not None and conditions:
        errors.append(omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not conditions:
        errors.append(omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def check_success(spec: Json, path: str) -> list[FieldError]:
    """Check the `successPolicy` of an indexed Job."""
    rules, completions = spec["successPolicy"].get("rules") or (), spec.get("completions") or 0
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        return [required(f"{path}.rules", detail)]
    errors: list[FieldError] = []
    for at, rule in enumerate(rules):
        where, count, indexes = f"{path}.rules[{at}]", rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            errors.append(required(where, "at least one of succeededCount or succeededIndexes must be specified"))
        if count is not None and not 0 <= count <= completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(invalid(f"{where}.succeededCount", count, detail))
        if indexes is not None and not _INDEXES.match(indexes):
            detail = "error parsing succeededIndexes: must be numbers and ranges such as '0,2-4'"
            errors.append(invalid(f"{where}.succeededIndexes", indexes, detail))
        elif any(int(index) >= completions for index in re.findall(r"\d+", indexes or "")):
            errors.append(
                invalid(f"{where}.succeededIndexes", indexes, "error parsing succeededIndexes: too large index")
            )
    return errors

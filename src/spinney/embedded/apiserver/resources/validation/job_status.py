"""Checks of a Job's status."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, omitted, required
from spinney.embedded.apiserver.resources.validation.job_policies import NOT_NEGATIVE, read_indexes

_TERMINAL = ("Failed", "Complete", "FailureTarget")


def check(new: Json, old: Json) -> list[FieldError]:
    """Check a new status of a Job. Most rules apply only where their fields changed."""
    spec, status, old_status = new.get("spec") or {}, new.get("status") or {}, old.get("status") or {}
    errors = [
        invalid(f"status.{key}", status[key], NOT_NEGATIVE)
        for key in ("active", "succeeded", "failed", "ready", "terminating")
        if (status.get(key) or 0) < 0
    ]
    errors += _finished(status, old_status) + _indexes(spec, status, old_status)
    ready = status.get("ready")
    if ready is not None and ready > (status.get("active") or 0) and _changed(status, old_status, "ready", "active"):
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return errors + _transitions(spec, status, old_status)


def _holds(status: Json, kind: str) -> bool:
    return any(each.get("type") == kind and each.get("status") == "True" for each in status.get("conditions") or ())


def _changed(status: Json, old_status: Json, *parts: str) -> bool:
    """Whether one of these fields changed, or one of these conditions (in capitals) is true."""
    return any(
        _holds(status, part) != _holds(old_status, part)
        if part[0].isupper()
        else status.get(part) != old_status.get(part)
        for part in parts
    )


def _finished(status: Json, old_status: Json) -> list[FieldError]:
    complete, failed = _holds(status, "Complete"), _holds(status, "Failed")
    ended, ending = (
        complete or failed,
        (_holds(old_status, "Complete") or _holds(old_status, "Failed")) != (complete or failed),
    )
    start, end = status.get("startTime"), status.get("completionTime")
    moved = _changed(status, old_status, "Complete", "completionTime")
    conditions, finished = "status.conditions", "status.completionTime"
    rules: tuple[tuple[bool, Callable[[], FieldError]], ...] = (
        (
            complete and failed and _changed(status, old_status, "Complete", "Failed"),
            lambda: omitted(conditions, "cannot set Complete=True and Failed=true conditions"),
        ),
        (
            complete and _holds(status, "FailureTarget") and _changed(status, old_status, "Complete", "FailureTarget"),
            lambda: omitted(conditions, "cannot set Complete=True and FailureTarget=true conditions"),
        ),
        (
            bool(end) and not complete and moved,
            lambda: invalid(finished, end, "cannot set completionTime when there is no Complete=True condition"),
        ),
        (
            not end and complete and moved,
            lambda: required(finished, "completionTime is required for Complete jobs"),
        ),
        (
            bool(start and end and end < start) and _changed(status, old_status, "startTime", "completionTime"),
            lambda: invalid(finished, end, "must be equal to or after `startTime`"),
        ),
        (
            failed and not _holds(status, "FailureTarget") and _changed(status, old_status, "Failed", "failedIndexes"),
            lambda: omitted(conditions, "cannot set Failed=True condition without the FailureTarget=true condition"),
        ),
        (
            complete
            and not _holds(status, "SuccessCriteriaMet")
            and _changed(status, old_status, "Complete", "SuccessCriteriaMet"),
            lambda: omitted(
                conditions, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
            ),
        ),
        (
            ended and (status.get("active") or 0) > 0 and (ending or _changed(status, old_status, "active")),
            lambda: invalid("status.active", status.get("active"), "active>0 is invalid for finished job"),
        ),
        (
            ended and not start and (ending or _changed(status, old_status, "startTime")),
            lambda: required("status.startTime", "startTime is required for finished job"),
        ),
        (
            ended and (status.get("terminating") or 0) > 0 and (ending or _changed(status, old_status, "terminating")),
            lambda: invalid(
                "status.terminating", status.get("terminating"), "terminating>0 is invalid for finished job"
            ),
        ),
    )
    return [error() for holds, error in rules if holds]


def _indexes(spec: Json, status: Json, old_status: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    completions, limited = spec.get("completions"), spec.get("backoffLimitPerIndex") is not None
    done, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    anew, failed_anew = _changed(status, old_status, "completedIndexes"), _changed(status, old_status, "failedIndexes")
    where = "status.completedIndexes"
    if anew and completions is not None:
        _, why = read_indexes(done, completions)
        if why:
            errors.append(invalid(where, done, f"error parsing completedIndexes: {why}"))
    if failed_anew and completions is not None and limited and failed is not None:
        _, why = read_indexes(failed, completions)
        if why:
            errors.append(invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {why}"))
    if anew and done and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(invalid(where, done, detail))
    if failed_anew and failed is not None and not limited:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(invalid("status.failedIndexes", failed, detail))
    return errors


def _transitions(spec: Json, status: Json, old_status: Json) -> list[FieldError]:
    """Refuse what would undo an earlier status."""
    errors = [
        omitted("status.conditions", f"cannot disable the terminal {kind}=True condition")
        for kind in _TERMINAL
        if _holds(old_status, kind) and not _holds(status, kind)
    ]
    tandem = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for key, fixed in (("failed", True), ("succeeded", not tandem)):
        count = status.get(key) or 0
        if fixed and count < (old_status.get(key) or 0):
            errors.append(invalid(f"status.{key}", count, f"cannot decrease the {key} counter"))
    end, start = status.get("completionTime"), old_status.get("startTime")
    if end and old_status.get("completionTime") and end != old_status["completionTime"]:
        errors.append(invalid("status.completionTime", end, "field is immutable"))
    suspended = any(
        each.get("type") == "Suspended" and each.get("status") == "False" for each in status.get("conditions") or ()
    )
    resuming = _holds(old_status, "Suspended") and suspended
    if start and start != status.get("startTime") and not spec.get("suspend") and not resuming:
        errors.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    if _holds(old_status, "SuccessCriteriaMet") and not _holds(status, "SuccessCriteriaMet"):
        errors.append(omitted("status.conditions", "cannot disable the SuccessCriteriaMet=True condition"))
    return errors

"""Checks of Jobs and CronJobs."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spinney.api import cron, naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.validation import job_policies, pod_specs
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.validation.names import IMMUTABLE, check_unchanged
from spinney.embedded.apiserver.resources.validation.workloads import check_count

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_FIXED = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_MOST = 100_000
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


def check(document: Json) -> list[FieldError]:
    """Check a Job."""
    name, spec = document["metadata"].get("name", ""), document.get("spec") or {}
    errors = _generated(document) + _check_spec_and_selector(spec)
    completions = spec.get("completions") or 0
    host = f"{name}-{completions - 1}"
    if spec.get("completionMode") == "Indexed" and completions > 0 and naming.label_problems(host):
        detail = f"will not able to create pod with invalid DNS label: {host}"
        errors.append(invalid("metadata.name", name, detail))
    return errors


def _generated(document: Json) -> list[FieldError]:
    """Check that the labels and the selector of a Job are the generated ones."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    wanted = dict(zip(_LABELS, (metadata.get("uid", ""), metadata.get("name", "")) * 2, strict=True))
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    errors: list[FieldError] = []
    for key, value in wanted.items():
        where = "spec.template.metadata.labels"
        if key not in labels:
            errors.append(required(f"{where}[{key}]", f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(f"{where}[{key}]", dict(sorted(labels.items())), f"must be '{value}'"))
    if not selectors.matches(selectors.from_object(spec["selector"]), wanted):
        errors.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return errors


def _check_spec_and_selector(spec: Json) -> list[FieldError]:
    """Check the spec of a Job with its selector."""
    errors = check_spec(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += check_selector(selector, "spec.selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is None or not selectors.matches(selectors.from_object(selector), labels):
        detail = "`selector` does not match template `labels`"
        shown = dict(sorted(labels.items())) or None
        errors.append(invalid("spec.template.metadata.labels", shown, detail))
    return errors


def check_spec(spec: Json, path: str) -> list[FieldError]:
    """Check the spec of a Job or of a CronJob's template."""
    errors = _counts(spec, path)
    errors += _mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        errors += job_policies.check_failures(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        if spec.get("completionMode") == "Indexed":
            errors += job_policies.check_success(spec, f"{path}.successPolicy")
        else:
            detail = "requires indexed completion mode"
            errors.append(invalid(f"{path}.successPolicy", spec["successPolicy"], detail))
    replacement = spec.get("podReplacementPolicy")
    allowed = _REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    if replacement is not None and replacement not in allowed:
        errors.append(unsupported(f"{path}.podReplacementPolicy", replacement, allowed))
    errors += pod_specs.check_template(spec.get("template") or {}, f"{path}.template")
    return errors + _restarts(spec, f"{path}.template.spec.restartPolicy")


def _counts(spec: Json, path: str) -> list[FieldError]:
    errors = [error for key in _COUNTS if key in spec for error in check_count(spec, key, path)]
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    return errors


def _mode(spec: Json, path: str) -> list[FieldError]:
    mode, completions, parallelism = spec.get("completionMode"), spec.get("completions"), spec.get("parallelism") or 0
    limit, failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    errors: list[FieldError] = []
    if mode not in (None, "NonIndexed", "Indexed"):
        return [unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))]
    if mode != "Indexed":
        for key, value in (("backoffLimitPerIndex", limit), ("maxFailedIndexes", failed)):
            if value is not None:
                errors.append(invalid(f"{path}.{key}", value, "requires indexed completion mode"))
        return errors
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MOST:
        detail = f"must be less than or equal to {_MOST} when completion mode is Indexed"
        errors.append(invalid(f"{path}.parallelism", parallelism, detail))
    return errors


def _restarts(spec: Json, path: str) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [unsupported(path, policy, ("OnFailure", "Never"))]
    if policy != "Never" and spec.get("podFailurePolicy") is not None:
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a Job."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _check_spec_and_selector(spec) + _completions(spec, old_spec)
    if spec.get("template") != _changeable(spec.get("template") or {}, old):
        errors.append(invalid("spec.template", spec.get("template"), IMMUTABLE))
    return errors + check_unchanged(spec, old_spec, _FIXED, "spec.")


def _completions(spec: Json, old_spec: Json) -> list[FieldError]:
    count = spec.get("completions")
    if count == old_spec.get("completions"):
        return []
    if spec.get("completionMode") != "Indexed":
        return check_unchanged(spec, old_spec, ["completions"], "spec.")
    if count is None or count == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", count, "can only be modified in tandem with spec.parallelism")]


def _changeable(template: Json, old: Json) -> Json:
    """The old template with the scheduling directives of the new one, which may change while a Job is suspended."""
    old_template: Json = (old.get("spec") or {}).get("template") or {}
    if not old["spec"].get("suspend") or (old.get("status") or {}).get("startTime"):
        return old_template
    kept = {key: value for key, value in (old_template.get("spec") or {}).items() if key not in _DIRECTIVES}
    spec = template.get("spec") or {}
    kept |= {key: spec[key] for key in _DIRECTIVES if key in spec}
    before, now = (old_template.get("spec") or {}).get("affinity") or {}, spec.get("affinity")
    affinity = {key: value for key, value in before.items() if key != "nodeAffinity"}
    if now and "nodeAffinity" in now:
        affinity["nodeAffinity"] = now["nodeAffinity"]
    if affinity or now is not None:
        kept["affinity"] = affinity
    else:
        kept.pop("affinity", None)
    metadata = {
        key: value
        for key, value in (old_template.get("metadata") or {}).items()
        if key not in ("labels", "annotations")
    }
    metadata |= {key: template["metadata"][key] for key in ("labels", "annotations") if key in template["metadata"]}
    return {**old_template, "metadata": metadata, "spec": kept}


def check_cron_job(document: Json) -> list[FieldError]:
    """Check a CronJob."""
    spec = document.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("schedule"):
        errors.append(required("spec.schedule"))
    else:
        errors += check_schedule(spec["schedule"], "spec.schedule")
    errors += check_count(spec, "startingDeadlineSeconds")
    errors += check_zone(spec.get("timeZone"), "spec.timeZone")
    policy = spec.get("concurrencyPolicy", "Allow")
    errors += one_of("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace"))
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    path = "spec.jobTemplate.spec"
    errors += check_spec(inner, path)
    if inner.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        errors.append(invalid(f"{path}.selector", inner["selector"], detail))
    if inner.get("manualSelector"):
        errors.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
    errors += check_count(spec, "successfulJobsHistoryLimit") + check_count(spec, "failedJobsHistoryLimit")
    if len(document["metadata"].get("name", "")) > 52:
        errors.append(invalid("metadata.name", document["metadata"]["name"], "must be no more than 52 characters"))
    return errors


def check_schedule(schedule: str, path: str) -> list[FieldError]:
    """Check the schedule of a CronJob."""
    if "TZ" in schedule:
        return [invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    try:
        cron.parse(schedule)
    except cron.CronError as error:
        return [invalid(path, schedule, str(error))]
    return []


def check_zone(zone: str | None, path: str) -> list[FieldError]:
    """Check the time zone of a schedule."""
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(path, zone, detail)]
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return [invalid(path, zone, f"unknown time zone {zone}")]
    return []

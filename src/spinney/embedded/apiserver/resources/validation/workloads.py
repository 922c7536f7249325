"""Checks that Deployments, ReplicaSets, StatefulSets and DaemonSets share."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.validation import names, pod_specs
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.validation.rollouts import NOT_NEGATIVE


def check_count(spec: Json, key: str, path: str = "spec") -> list[FieldError]:
    """Refuse a count below zero."""
    value = spec.get(key)
    if value is not None and value < 0:
        return [invalid(f"{path}.{key}", value, NOT_NEGATIVE)]
    return []


def check_selector_and_template(spec: Json, kind: str, maker: str) -> list[FieldError]:
    """Check the selector and the template of a workload. `maker` creates its pods."""
    errors: list[FieldError] = []
    selector, template = spec.get("selector"), spec.get("template") or {}
    if selector is None:
        # For a DaemonSet, only the error about the template is reported.
        errors += [] if kind == "daemonset" else [required("spec.selector")]
    else:
        errors += check_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    labels = (template.get("metadata") or {}).get("labels") or {}
    # An invalid selector is not compared with the labels.
    comparable = not errors or not selector
    if comparable and (selector is None or not selectors.matches(selectors.from_object(selector), labels)):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", labels or None, detail))
    errors += pod_specs.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy != "Always":
        errors.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {maker} is not Supported"
        errors.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", detail))
    return errors


def check_selector_update(new: Json, old: Json) -> list[FieldError]:
    """Refuse a change of a workload's selector."""
    return names.check_unchanged(new.get("spec") or {}, old.get("spec") or {}, ["selector"], "spec.")

"""Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, budgets."""

from __future__ import annotations

from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, shown, unsupported
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.validation import pod_specs, rollouts, storage
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.resources.validation.rollouts import NOT_NEGATIVE

_UNHEALTHY = ("AlwaysAllow", "IfHealthyBudget")


def _count(spec: Json, key: str, path: str = "spec") -> list[FieldError]:
    value = spec.get(key)
    if value is not None and value < 0:
        return [invalid(f"{path}.{key}", value, NOT_NEGATIVE)]
    return []


def _selector_and_template(
    spec: Json, kind: str, maker: str, restart: tuple[str, ...] = ("Always",)
) -> list[FieldError]:
    """Selector and template of a kind whose pods the `maker` makes."""
    found: list[FieldError] = []
    selector, template = spec.get("selector"), spec.get("template") or {}
    if selector is None:
        # A DaemonSet without one is told so by its template alone.
        found += [] if kind == "daemonset" else [required("spec.selector")]
    else:
        found += check_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            found.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    labels = (template.get("metadata") or {}).get("labels") or {}
    if found and selector:
        # A selector that cannot be read is told of in each kind's own way, and compared with nothing.
        told = {"deployment": ": invalid label selector", "statefulset": ""}.get(kind)
        if told is not None:
            found.append(FieldError("FieldValueInvalid", "spec.selector", f"Invalid value: {shown(selector)}{told}"))
    elif selector is None or not selectors.matches(selectors.from_object(selector), labels):
        detail = "`selector` does not match template `labels`"
        found.append(invalid("spec.template.metadata.labels", labels or None, detail))
    found += pod_specs.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy != "Always":
        found.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {maker} is not Supported"
        found.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", detail))
    return found


def check_deployment(document: Json) -> list[FieldError]:
    """A Deployment."""
    spec = document.get("spec") or {}
    found = _count(spec, "replicas") + _selector_and_template(spec, "deployment", "ReplicaSet")
    found += rollouts.check_deployment(spec.get("strategy") or {}, "spec.strategy")
    found += _count(spec, "minReadySeconds") + _count(spec, "revisionHistoryLimit")
    found += _count(spec, "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        found.append(invalid("spec.progressDeadlineSeconds", deadline, detail))
    return found


def check_replica_set(document: Json) -> list[FieldError]:
    """A ReplicaSet."""
    spec = document.get("spec") or {}
    found = _count(spec, "replicas") + _count(spec, "minReadySeconds")
    return found + _selector_and_template(spec, "deployment", "ReplicaSet")


def check_replication_controller(document: Json) -> list[FieldError]:
    """A ReplicationController, whose selector is a plain map."""
    spec = document.get("spec") or {}
    selector, template = spec.get("selector") or {}, spec.get("template")
    found = _count(spec, "replicas") + _count(spec, "minReadySeconds")
    if not selector:
        found.append(required("spec.selector"))
    if not template:
        return [*found, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector and not selector.items() <= labels.items():
        detail = "`selector` does not match template `labels`"
        found.append(invalid("spec.template.metadata.labels", labels or None, detail))
    found += pod_specs.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy in ("OnFailure", "Never"):
        found.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    return found


def check_pod_template(document: Json) -> list[FieldError]:
    """A PodTemplate."""
    return pod_specs.check_template(document.get("template") or {}, "template")


def check_revision(document: Json) -> list[FieldError]:
    """A ControllerRevision."""
    if not document.get("data"):
        return [required("data", "data is mandatory")]
    number = document.get("revision", 0)
    return [invalid("revision", number, NOT_NEGATIVE)] if number < 0 else []


def check_revision_update(new: Json, old: Json) -> list[FieldError]:
    """A ControllerRevision keeps its data."""
    return [] if new.get("data") == old.get("data") else [_immutable("data", new.get("data"))]


def check_daemon_set(document: Json) -> list[FieldError]:
    """A DaemonSet."""
    spec = document.get("spec") or {}
    found = _selector_and_template(spec, "daemonset", "DaemonSet")
    found += _count(spec, "minReadySeconds") + _count(spec, "revisionHistoryLimit")
    return found + rollouts.check_daemons(spec.get("updateStrategy") or {}, "spec.updateStrategy")


def check_stateful_set(document: Json) -> list[FieldError]:
    """A StatefulSet."""
    spec = document.get("spec") or {}
    found: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in ("OrderedReady", "Parallel"):
        found.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    found += rollouts.check_stateful(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    for key, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        if value not in ("Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            found.append(unsupported(where, value, ("Retain", "Delete")))
    claims = spec.get("volumeClaimTemplates") or ()
    for at, claim in enumerate(claims):
        found += storage.check_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{at}].spec")
    found += _count(spec, "replicas") + _count(spec, "minReadySeconds")
    found += _count(spec.get("ordinals") or {}, "start", "spec.ordinals")
    name = spec.get("serviceName", "")
    if name:
        found += [invalid("spec.serviceName", name, problem) for problem in naming.label_problems(name)]
    return found + _selector_and_template({**spec, "template": _own_pod(spec)}, "statefulset", "StatefulSet")


def _own_pod(spec: Json) -> Json:
    """The template as pods of a StatefulSet get it: with the volumes of their claims, and names of their own."""
    template: Json = spec.get("template") or {}
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")}
    names_of = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if names_of:
        claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names_of]
        rest = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names_of]
        pod["volumes"] = [*claimed, *rest]
    return {**template, "spec": pod}


def check_stateful_set_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a StatefulSet."""
    changeable = (
        "replicas",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
    )
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    if all(mine.get(key) == was.get(key) for key in {**mine, **was} if key not in changeable):
        return []
    detail = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )
    return [forbidden_field("spec", detail)]


def _immutable(path: str, value: Any) -> FieldError:
    return invalid(path, value, "field is immutable")


def check_selector_update(new: Json, old: Json) -> list[FieldError]:
    """The selector of a workload never changes."""
    mine, was = (new.get("spec") or {}).get("selector"), (old.get("spec") or {}).get("selector")
    return [] if mine == was else [_immutable("spec.selector", mine)]


def check_budget(document: Json) -> list[FieldError]:
    """A PodDisruptionBudget."""
    spec = document.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    found: list[FieldError] = []
    if least is not None and most is not None:
        shown_spec = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        found.append(invalid("spec", shown_spec, "minAvailable and maxUnavailable cannot be both set"))
    for key, value in (("minAvailable", least), ("maxUnavailable", most)):
        if isinstance(value, int) and value < 0:
            found.append(invalid(f"spec.{key}", value, NOT_NEGATIVE))
        if isinstance(value, str) and not (value.endswith("%") and value[:-1].isdigit()):
            detail = "a valid percent string must be a numeric string followed by an ending '%'"
            found.append(
                invalid(
                    f"spec.{key}", value, detail + " (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                )
            )
        elif isinstance(value, str) and int(value.removesuffix("%")) > 100:
            found.append(invalid(f"spec.{key}", value, "must not be greater than 100%"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _UNHEALTHY:
        found.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _UNHEALTHY))
    return found + check_selector(spec.get("selector"), "spec.selector")


def check_budget_status(new: Json, old: Json) -> list[FieldError]:
    """What nobody may say of a budget."""
    status = new.get("status") or {}
    return [
        invalid(f"status.{key}", status[key], NOT_NEGATIVE)
        for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        if status.get(key, 0) < 0
    ]

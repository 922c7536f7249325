"""StatefulSets."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import claim_specs, rollouts
from spinney.embedded.apiserver.resources.validation.workloads import check_count, check_selector_and_template


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    default_template(spec)
    fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady", serviceName="")
    fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("partition", 0)
        # The feature gate of this field is off.
        rolling.pop("maxUnavailable", None)
    for claim in spec.get("volumeClaimTemplates") or ():
        fill(claim, kind="PersistentVolumeClaim", apiVersion="v1")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in ("OrderedReady", "Parallel"):
        errors.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    errors += rollouts.check_stateful(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    for key, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        if value not in ("Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            errors.append(unsupported(where, value, ("Retain", "Delete")))
    claims = spec.get("volumeClaimTemplates") or ()
    for at, claim in enumerate(claims):
        errors += claim_specs.check_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{at}].spec")
    errors += check_count(spec, "replicas") + check_count(spec, "minReadySeconds")
    errors += check_count(spec.get("ordinals") or {}, "start", "spec.ordinals")
    name = spec.get("serviceName", "")
    if name:
        errors += [invalid("spec.serviceName", name, problem) for problem in naming.label_problems(name)]
    return errors + check_selector_and_template({**spec, "template": _pod_template(spec)}, "statefulset", "StatefulSet")


def _pod_template(spec: Json) -> Json:
    """The template with the volumes of the claim templates, and without host names."""
    template: Json = spec.get("template") or {}
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")}
    names_of = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if names_of:
        claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names_of]
        rest = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names_of]
        pod["volumes"] = [*claimed, *rest]
    return {**template, "spec": pod}


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a StatefulSet."""
    changeable = (
        "replicas",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
    )
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if all(spec.get(key) == old_spec.get(key) for key in {**spec, **old_spec} if key not in changeable):
        return []
    detail = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
        "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )
    return [forbidden_field("spec", detail)]


def _cells(document: Json, now: datetime) -> list[Any]:
    spec, status = cells.spec(document), cells.status(document)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}"
    return [cells.name(document), ready, cells.age(document, now), *cells.containers(spec)]


STATEFUL_SETS = Resource(
    group="apps",
    kind="StatefulSet",
    plural="statefulsets",
    short_names=("sts",),
    categories=("all",),
    subresources=("scale", "status"),
    default=_default,
    complete=complete.status_members({"replicas": 0, "availableReplicas": 0}, times=("lastTransitionTime",)),
    has_generation=True,
    checks=Checks(
        name=naming.label_problems,
        object=_check,
        update=_check_update,
    ),
    table=Table("Name,Ready,Age,+Containers,+Images", _cells),
)

"""ReplicationControllers."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported
from spinney.embedded.apiserver.resources import complete
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.quota import Quota
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.replicasets import replica_cells
from spinney.embedded.apiserver.resources.validation import pod_specs
from spinney.embedded.apiserver.resources.validation.workloads import check_count


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if "template" not in spec:
        return
    default_template(spec)
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        fill(spec, selector=dict(labels))
        fill(document["metadata"], labels=dict(labels))


def _check(document: Json) -> list[FieldError]:
    """Check a ReplicationController, whose selector is a map of labels."""
    spec = document.get("spec") or {}
    selector, template = spec.get("selector") or {}, spec.get("template")
    errors = check_count(spec, "replicas") + check_count(spec, "minReadySeconds")
    if not selector:
        errors.append(required("spec.selector"))
    if not template:
        return [*errors, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector and not selector.items() <= labels.items():
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", labels or None, detail))
    errors += pod_specs.check_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy in ("OnFailure", "Never"):
        errors.append(unsupported("spec.template.spec.restartPolicy", policy, ("Always",)))
    return errors


REPLICATION_CONTROLLERS = Resource(
    kind="ReplicationController",
    plural="replicationcontrollers",
    short_names=("rc",),
    categories=("all",),
    subresources=("scale", "status"),
    default=_default,
    complete=complete.status_members({"replicas": 0}, times=("lastTransitionTime",)),
    has_generation=True,
    deletion=Deletion(orphans_by_default=True),
    quota=Quota(counted=True),
    checks=Checks(object=_check),
    table=Table("Name,#Desired,#Current,#Ready,Age,+Containers,+Images,+Selector", replica_cells),
    selectable=("status.replicas",),
)

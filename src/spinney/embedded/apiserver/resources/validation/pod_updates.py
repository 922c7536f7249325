"""Checks of updates of pods."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid
from spinney.embedded.apiserver.resources.validation.names import changed_fields, with_old

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def check_update(new: Json, old: Json) -> list[FieldError]:
    """Checks of updates of pods."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if spec == old_spec:
        return []
    errors: list[FieldError] = []
    for key in ("containers", "initContainers"):
        if len(spec.get(key) or ()) != len(old_spec.get(key) or ()):
            return [*errors, forbidden_field(f"spec.{key}", "pod updates may not add or remove containers")]
    errors += _deadline_update(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))
    errors += _toleration_update(spec.get("tolerations") or [], old_spec.get("tolerations") or [])
    errors += _gate_update(spec.get("schedulingGates") or [], old_spec.get("schedulingGates") or [])
    masked = _masked(spec, old_spec)
    if old_spec.get("schedulingGates"):
        errors += _check_gated(spec, old_spec)
        masked = _with_old_placement(masked, old_spec)
    if masked != old_spec:
        detail = f"pod updates may not change fields other than {UPDATABLE}\n{changed_fields(old_spec, masked)}"
        errors.append(forbidden_field("spec", detail))
    return errors


def _masked(spec: Json, old_spec: Json) -> Json:
    """The new spec with the old values of all fields that may change."""
    masked = with_old(spec, old_spec, ("activeDeadlineSeconds", "schedulingGates", "tolerations"))
    for key in ("containers", "initContainers"):
        if key in masked:
            masked[key] = [
                {**container, "image": before.get("image")}
                for container, before in zip(masked[key], old_spec.get(key) or (), strict=False)
            ]
    if old_spec.get("terminationGracePeriodSeconds", 0) < 0 and masked.get("terminationGracePeriodSeconds") == 1:
        masked["terminationGracePeriodSeconds"] = old_spec["terminationGracePeriodSeconds"]
    return masked


def _deadline_update(deadline: int | None, old_deadline: int | None) -> list[FieldError]:
    where = "spec.activeDeadlineSeconds"
    if deadline is None:
        detail = "must not update from a positive integer to nil value"
        return [invalid(where, None, detail)] if old_deadline is not None else []
    if not 0 <= deadline <= 2**31 - 1:
        return [invalid(where, deadline, "must be between 0 and 2147483647, inclusive")]
    if old_deadline is not None and old_deadline < deadline:
        return [invalid(where, deadline, "must be less than or equal to previous value")]
    return []


def _toleration_update(tolerations: list[Json], old_tolerations: list[Json]) -> list[FieldError]:
    def bare(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [bare(toleration) for toleration in tolerations]
    if any(bare(toleration) not in kept for toleration in old_tolerations):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", detail)]
    return []


def _gate_update(gates: list[Json], old_gates: list[Json]) -> list[FieldError]:
    before = {gate.get("name") for gate in old_gates}
    return [
        forbidden_field(
            f"spec.schedulingGates[{at}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for at, gate in enumerate(gates)
        if gate.get("name") not in before
    ]


def _check_gated(spec: Json, old_spec: Json) -> list[FieldError]:
    """Check the node selector of a gated pod, which may only become stricter."""
    selector, old_selector = spec.get("nodeSelector") or {}, old_spec.get("nodeSelector") or {}
    if old_selector.items() <= selector.items():
        return []
    detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid("spec.nodeSelector", selector, detail)]


def _with_old_placement(spec: Json, old_spec: Json) -> Json:
    """The spec with the node selector and the node affinity of the old one."""
    spec = with_old(spec, old_spec, ("nodeSelector",))
    affinity = with_old(spec.get("affinity") or {}, old_spec.get("affinity") or {}, ("nodeAffinity",))
    if affinity or "affinity" in old_spec:
        return {**spec, "affinity": affinity}
    return with_old(spec, old_spec, ("affinity",))


def check_status(new: Json, old: Json) -> list[FieldError]:
    """Check a new status of a pod."""
    status, old_status = new.get("status") or {}, old.get("status") or {}
    errors: list[FieldError] = []
    for at, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        problems = naming.qualified_problems(kind)
        errors += [invalid(f"status.conditions[{at}].Type", kind, problem) for problem in problems]
    node = status.get("nominatedNodeName")
    if node and node != old_status.get("nominatedNodeName") and old["spec"].get("nodeName"):
        detail = "may not be set on pods that are already bound to a node"
        errors.append(forbidden_field("status.nominatedNodeName", detail))
    if status.get("qosClass") != old_status.get("qosClass"):
        errors.append(invalid("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    return errors

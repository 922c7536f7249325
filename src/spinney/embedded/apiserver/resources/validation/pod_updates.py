"""What an update may not do to a pod."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid
from spinney.embedded.apiserver.resources.validation.names import changed_fields

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def check_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a pod."""
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    if mine == was:
        return []
    errors: list[FieldError] = []
    for key in ("containers", "initContainers"):
        if len(mine.get(key) or ()) != len(was.get(key) or ()):
            return [*errors, forbidden_field(f"spec.{key}", "pod updates may not add or remove containers")]
    errors += _deadline_update(mine.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds"))
    errors += _toleration_update(mine.get("tolerations") or [], was.get("tolerations") or [])
    errors += _gate_update(mine.get("schedulingGates") or [], was.get("schedulingGates") or [])
    masked = _masked(mine, was)
    if was.get("schedulingGates"):
        errors += _gated_update(masked, was)
    if masked != was:
        detail = f"pod updates may not change fields other than {UPDATABLE}\n{changed_fields(was, masked)}"
        errors.append(forbidden_field("spec", detail))
    return errors


def _masked(mine: Json, was: Json) -> Json:
    """The new spec with every field that may change put back to what it was."""
    masked = dict(mine)
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        masked.pop(key, None)
        if key in was:
            masked[key] = was[key]
    for key in ("containers", "initContainers"):
        if key in masked:
            masked[key] = [
                {**container, "image": before.get("image")}
                for container, before in zip(masked[key], was.get(key) or (), strict=False)
            ]
    if was.get("terminationGracePeriodSeconds", 0) < 0 and masked.get("terminationGracePeriodSeconds") == 1:
        masked["terminationGracePeriodSeconds"] = was["terminationGracePeriodSeconds"]
    return masked


def _deadline_update(mine: int | None, was: int | None) -> list[FieldError]:
    where = "spec.activeDeadlineSeconds"
    if mine is None:
        detail = "must not update from a positive integer to nil value"
        return [invalid(where, None, detail)] if was is not None else []
    if not 0 <= mine <= 2**31 - 1:
        return [invalid(where, mine, "must be between 0 and 2147483647, inclusive")]
    if was is not None and was < mine:
        return [invalid(where, mine, "must be less than or equal to previous value")]
    return []


def _toleration_update(mine: list[Json], was: list[Json]) -> list[FieldError]:
    def bare(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [bare(toleration) for toleration in mine]
    if any(bare(toleration) not in kept for toleration in was):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", detail)]
    return []


def _gate_update(mine: list[Json], was: list[Json]) -> list[FieldError]:
    before = {gate.get("name") for gate in was}
    return [
        forbidden_field(
            f"spec.schedulingGates[{at}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for at, gate in enumerate(mine)
        if gate.get("name") not in before
    ]


def _gated_update(masked: Json, was: Json) -> list[FieldError]:
    """While gated, node selectors may grow and node affinity may get stricter."""
    errors: list[FieldError] = []
    mine, before = masked.get("nodeSelector") or {}, was.get("nodeSelector") or {}
    if mine != before:
        if any(mine.get(key) != value for key, value in before.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", mine, detail))
        _put_back(masked, was, "nodeSelector")
    affinity, earlier = masked.get("affinity") or {}, was.get("affinity") or {}
    if affinity.get("nodeAffinity") != earlier.get("nodeAffinity"):
        rest = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
        if "nodeAffinity" in earlier:
            rest["nodeAffinity"] = earlier["nodeAffinity"]
        if rest or "affinity" in was:
            masked["affinity"] = rest
        else:
            masked.pop("affinity", None)
    return errors


def _put_back(masked: Json, was: Json, key: str) -> None:
    masked.pop(key, None)
    if key in was:
        masked[key] = was[key]

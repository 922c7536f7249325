"""What may not change once a PodCliqueSet exists."""

from __future__ import annotations

from typing import Any

from spinney.api.labels import MNNVL_GROUP, SCHEDULER_BACKEND
from spinney.api.meta import Json
from spinney.grove.admission.problems import Problems
from spinney.grove.model.startup_order import ANY_ORDER

RECREATE = "delete the set and create it anew to change it"


def check(old: Json, new: Json, problems: Problems) -> None:
    """Every field that keeps the value it was created with."""
    path = "spec.template"
    before, after = old["spec"]["template"], new["spec"]["template"]
    problems.unchanged(
        f"{path}.cliqueStartupType", before.get("cliqueStartupType"), after.get("cliqueStartupType"), RECREATE
    )
    for field in ("resourceClaimTemplates", "resourceSharing"):
        _unchanged(f"{path}.{field}", before, after, field, problems)
    _check_topology(f"{path}.topologyConstraint", before, after, problems)
    _check_annotation(MNNVL_GROUP, "metadata", old["metadata"], new["metadata"], problems)
    _check_annotation(SCHEDULER_BACKEND, "metadata", old["metadata"], new["metadata"], problems)
    _check_cliques(before, after, f"{path}.cliques", problems)
    _check_groups(before, after, f"{path}.podCliqueScalingGroups", problems)


def _check_cliques(before: Json, after: Json, path: str, problems: Problems) -> None:
    old_items, new_items = before.get("cliques") or [], after.get("cliques") or []
    old_names, new_names = [clique["name"] for clique in old_items], [clique["name"] for clique in new_items]
    if sorted(old_names) != sorted(new_names):
        problems.forbidden(
            path,
            f"cliques cannot be added, removed or renamed (were: {', '.join(old_names)}; now: {', '.join(new_names)}); "
            + RECREATE,
        )
        return
    if after.get("cliqueStartupType", ANY_ORDER) != ANY_ORDER and old_names != new_names:
        problems.invalid(path, new_names, f"clique order cannot be changed with this start-up type; {RECREATE}")
    by_name = {clique["name"]: clique for clique in old_items}
    for position, clique in enumerate(new_items):
        item_path, old = f"{path}[{position}]", by_name[clique["name"]]
        for field in ("roleName", "minAvailable", "startsAfter"):
            _unchanged(f"{item_path}.spec.{field}", old["spec"], clique["spec"], field, problems)
        _unchanged(
            f"{item_path}.spec.podSpec.schedulerName",
            old["spec"].get("podSpec") or {},
            clique["spec"].get("podSpec") or {},
            "schedulerName",
            problems,
        )
        _unchanged(f"{item_path}.resourceSharing", old, clique, "resourceSharing", problems)
        _check_topology(f"{item_path}.topologyConstraint", old, clique, problems)
        _check_annotation(MNNVL_GROUP, item_path, old, clique, problems)


def _check_groups(before: Json, after: Json, path: str, problems: Problems) -> None:
    old_items, new_items = before.get("podCliqueScalingGroups") or [], after.get("podCliqueScalingGroups") or []
    by_name = {group["name"]: group for group in old_items}
    if sorted(by_name) != sorted(group["name"] for group in new_items):
        problems.forbidden(path, f"scaling groups cannot be added, removed or renamed; {RECREATE}")
        return
    for position, group in enumerate(new_items):
        item_path, old = f"{path}[{position}]", by_name[group["name"]]
        for field in ("cliqueNames", "minAvailable", "resourceSharing"):
            _unchanged(f"{item_path}.{field}", old, group, field, problems)
        _check_topology(f"{item_path}.topologyConstraint", old, group, problems)
        _check_annotation(MNNVL_GROUP, item_path, old, group, problems)


def _unchanged(path: str, old: Json, new: Json, field: str, problems: Problems) -> None:
    problems.unchanged(path, old.get(field) or None, new.get(field) or None, RECREATE)


def _check_annotation(key: str, path: str, old: Json, new: Json, problems: Problems) -> None:
    before, after = (owner.get("annotations") or {} for owner in (old, new))
    problems.unchanged(f"{path}.annotations[{key}]", before.get(key), after.get(key), RECREATE)


def _check_topology(path: str, old: Json, new: Json, problems: Problems) -> None:
    before, after = old.get("topologyConstraint") or None, new.get("topologyConstraint") or None
    if before == after or _is_migration(before, after):
        return
    problems.invalid(path, after, f"field is immutable; {RECREATE}")


def _is_migration(before: Any, after: Any) -> bool:
    """Naming the topology beside an old packDomain, or moving packDomain to pack.required, changes nothing."""
    if not isinstance(before, dict) or not isinstance(after, dict) or not before.get("packDomain"):
        return False
    if before.get("topologyName") not in (None, "", after.get("topologyName")):
        return False
    pack = after.get("pack") or {}
    return (after.get("packDomain") or pack.get("required")) == before["packDomain"] and pack.get("preferred") == (
        before.get("pack") or {}
    ).get("preferred")

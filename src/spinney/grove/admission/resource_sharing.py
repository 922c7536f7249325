"""Checks of resourceClaimTemplates and of resourceSharing at all three levels."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.grove.admission.problems import Problems

SCOPES = frozenset({"AllReplicas", "PerReplica"})


def check(template: Json, path: str, problems: Problems) -> None:
    """Templates, then who shares them."""
    internal = _check_templates(template, f"{path}.resourceClaimTemplates", problems)
    groups = template.get("podCliqueScalingGroups") or ()
    group_names = {str(group.get("name")) for group in groups}
    clique_names = {str(clique.get("name")) for clique in template.get("cliques") or ()}
    allowed = {"childCliqueNames": clique_names, "childScalingGroupNames": group_names}
    _check_list(template, internal, allowed, f"{path}.resourceSharing", problems)
    for position, clique in enumerate(template.get("cliques") or ()):
        _check_list(clique, internal, {}, f"{path}.cliques[{position}].resourceSharing", problems)
    for position, group in enumerate(groups):
        item_path = f"{path}.podCliqueScalingGroups[{position}].resourceSharing"
        _check_list(group, internal, {"childCliqueNames": set(group.get("cliqueNames") or ())}, item_path, problems)


def _check_templates(template: Json, path: str, problems: Problems) -> set[str]:
    seen: set[str] = set()
    for position, claim in enumerate(template.get("resourceClaimTemplates") or ()):
        name = str(claim.get("name") or "")
        if not name:
            problems.required(f"{path}[{position}].name", "give the claim template a name")
        elif name in seen:
            problems.duplicate(f"{path}[{position}].name", name, "claim template names must be unique; rename one")
        seen.add(name)
        devices = ((claim.get("templateSpec") or {}).get("spec") or {}).get("devices") or {}
        if not devices.get("requests"):
            problems.required(f"{path}[{position}].templateSpec.spec.devices.requests", "ask for at least one device")
    return seen


def _check_list(owner: Json, internal: set[str], allowed: dict[str, set[str]], path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for position, share in enumerate(owner.get("resourceSharing") or ()):
        item_path = f"{path}[{position}]"
        name = str(share.get("name") or "")
        if not name:
            problems.required(f"{item_path}.name", "name a claim template")
        elif name in seen:
            problems.duplicate(f"{item_path}.name", name, "each claim template may be shared once per list; remove one")
        seen.add(name)
        if share.get("namespace") and name in internal:
            problems.forbidden(
                f"{item_path}.namespace", f"{name} is one of this set's resourceClaimTemplates; leave the namespace out"
            )
        if share.get("scope") not in SCOPES:
            problems.unsupported(f"{item_path}.scope", share.get("scope"), SCOPES)
        _check_filter(share, allowed, f"{item_path}.filter", problems)


def _check_filter(share: Json, allowed: dict[str, set[str]], path: str, problems: Problems) -> None:
    chosen = share.get("filter")
    if chosen is None:
        return
    if not allowed:
        problems.forbidden(path, "a clique shares with its own pods only; remove the filter")
        return
    if not any(chosen.get(kind) for kind in allowed):
        problems.required(path, f"name children in {' or '.join(allowed)}, or remove the filter to share with all")
    for kind, names in chosen.items():
        if kind not in allowed:
            problems.forbidden(f"{path}.{kind}", f"not possible at this level; use {' or '.join(allowed)}")
            continue
        for position, name in enumerate(names or ()):
            if name not in allowed[kind]:
                children = ", ".join(sorted(allowed[kind])) or "none"
                problems.invalid(f"{path}.{kind}[{position}]", name, f"no such child; known item_path: {children}")

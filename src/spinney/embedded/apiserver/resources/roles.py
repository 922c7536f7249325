"""Roles and their bindings."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector


def check_role(document: Json) -> list[FieldError]:
    """A Role or ClusterRole."""
    found: list[FieldError] = []
    for at, rule in enumerate(document.get("rules") or ()):
        where = f"rules[{at}]"
        if not rule.get("verbs"):
            found.append(required(f"{where}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if document.get("kind") == "Role":
                detail = "namespaced rules cannot apply to non-resource URLs"
                found.append(invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], detail))
            if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                found.append(invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], detail))
            continue
        if not rule.get("apiGroups"):
            found.append(required(f"{where}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            found.append(required(f"{where}.resources", "resource rules must supply at least one resource"))
    return found + _check_aggregation(document.get("aggregationRule"))


def _check_aggregation(rule: Json | None) -> list[FieldError]:
    if rule is None:
        return []
    path, selectors = "aggregationRule.clusterRoleSelectors", rule.get("clusterRoleSelectors") or []
    if not selectors:
        return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    found: list[FieldError] = []
    for at, selector in enumerate(selectors):
        problems = check_selector(selector, f"{path}[{at}]")
        found += problems
        if problems:
            found.append(invalid(f"{path}[{at}]", None, "invalid label selector."))
    return found


def check_role_binding(document: Json) -> list[FieldError]:
    """A RoleBinding or ClusterRoleBinding."""
    found: list[FieldError] = []
    reference = document.get("roleRef") or {}
    group = "rbac.authorization.k8s.io"
    if reference.get("apiGroup") != group:
        found.append(unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (group,)))
    allowed = ("ClusterRole",) if document.get("kind") == "ClusterRoleBinding" else ("Role", "ClusterRole")
    if reference.get("kind") not in allowed:
        found.append(unsupported("roleRef.kind", reference.get("kind", ""), allowed))
    if not reference.get("name"):
        found.append(required("roleRef.name"))
    for at, subject in enumerate(document.get("subjects") or ()):
        where = f"subjects[{at}]"
        if not subject.get("name"):
            found.append(required(f"{where}.name"))
        if subject.get("kind") == "ServiceAccount":
            name = subject.get("name", "")
            if name:
                found += [invalid(f"{where}.name", name, problem) for problem in naming.subdomain_problems(name)]
            if subject.get("apiGroup"):
                found.append(unsupported(f"{where}.apiGroup", subject["apiGroup"], ("",)))
            if not subject.get("namespace") and document.get("kind") == "ClusterRoleBinding":
                found.append(required(f"{where}.namespace"))
        elif subject.get("apiGroup", group) != group and subject.get("kind") in ("User", "Group"):
            found.append(unsupported(f"{where}.apiGroup", subject["apiGroup"], (group,)))
        if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
            found.append(unsupported(f"{where}.kind", subject.get("kind"), ("ServiceAccount", "User", "Group")))
    return found


def check_role_binding_update(new: Json, old: Json) -> list[FieldError]:
    """A binding keeps its role."""
    if new.get("roleRef") == old.get("roleRef"):
        return []
    role = new.get("roleRef") or {}
    shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
    return [invalid("roleRef", shown, "cannot change roleRef")]

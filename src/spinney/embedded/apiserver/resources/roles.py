"""Roles and ClusterRoles."""

from __future__ import annotations

from dataclasses import replace

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required
from spinney.embedded.apiserver.resources import complete
from spinney.embedded.apiserver.resources.record import Checks, Resource
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, rule in enumerate(document.get("rules") or ()):
        where = f"rules[{at}]"
        if not rule.get("verbs"):
            errors.append(required(f"{where}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if document.get("kind") == "Role":
                detail = "namespaced rules cannot apply to non-resource URLs"
                errors.append(invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], detail))
            if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(f"{where}.nonResourceURLs", rule["nonResourceURLs"], detail))
            continue
        if not rule.get("apiGroups"):
            errors.append(required(f"{where}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{where}.resources", "resource rules must supply at least one resource"))
    return errors + _check_aggregation(document.get("aggregationRule"))


def _check_aggregation(rule: Json | None) -> list[FieldError]:
    if rule is None:
        return []
    path, selectors = "aggregationRule.clusterRoleSelectors", rule.get("clusterRoleSelectors") or []
    if not selectors:
        return [required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    errors: list[FieldError] = []
    for at, selector in enumerate(selectors):
        problems = check_selector(selector, f"{path}[{at}]")
        errors += problems
        if problems:
            errors.append(invalid(f"{path}[{at}]", None, "invalid label selector."))
    return errors


ROLES = Resource(
    group="rbac.authorization.k8s.io",
    kind="Role",
    plural="roles",
    complete=complete.object_members("rules"),
    allow_create_on_update=True,
    checks=Checks(name=naming.path_problems, object=_check),
)
CLUSTER_ROLES = replace(ROLES, kind="ClusterRole", plural="clusterroles", namespaced=False)

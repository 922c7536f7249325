"""Prevent privilege escalation: nobody can grant rights that they do not have."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.meta import Json
from spinney.embedded.apiserver.access import bindings, rbac
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import forbidden, not_found
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.store.store import load

_ROLE = Kind.of(bindings.GROUP, "v1", "Role", "roles", namespaced=True)
_CLUSTER_ROLE = Kind.of(bindings.GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)


def check(core: Core, authorizer: rbac.Authorizer, call: Call, document: Json) -> None:
    """Refuse a role or binding that grants more than its author has."""
    if call.kind.table not in bindings.TABLES or rbac.MASTERS in call.user.groups:
        return
    is_role = call.kind.table in (bindings.ROLES, bindings.CLUSTER_ROLES)
    if authorizer.allows(call.user, _exemption(call, document, is_role=is_role)) is not None:
        return
    rules = _granted(document) if is_role else _bound(core, call, document)
    missing = [
        wanted
        for rule in rules
        for wanted in _parts(rule, call.namespace)
        if authorizer.allows(call.user, wanted) is None
    ]
    if not missing:
        return
    groups = ", ".join(f'"{group}"' for group in call.user.groups)
    rights = "\n".join(sorted(_rule_lines(missing)))
    why = f'user "{call.user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
    raise forbidden(call.kind, call.name, why + rights)


def _exemption(call: Call, document: Json, *, is_role: bool) -> rbac.Attributes:
    """The right that allows to grant anything: to escalate a role, or to bind it."""
    if is_role:
        return rbac.Attributes("escalate", bindings.GROUP, call.kind.plural, "", call.namespace, call.name)
    # The right to bind that role counts, not a right on the binding.
    role = document.get("roleRef") or {}
    plural = "roles" if role.get("kind") == "Role" else "clusterroles"
    return rbac.Attributes("bind", bindings.GROUP, plural, "", call.namespace, role.get("name", ""))


def _granted(role: Json) -> list[Json]:
    """The rules of a role; one that aggregates others may come to hold any rule."""
    rules: list[Json] = role.get("rules") or []
    return [*rules, *bindings.ALL_RIGHTS] if role.get("aggregationRule") else rules


def _bound(core: Core, call: Call, document: Json) -> list[Json]:
    """The rules of the role that a binding names. A role that does not exist may come to hold any rule."""
    role = document.get("roleRef") or {}
    name = role.get("name", "")
    kind = _ROLE if role.get("kind") == "Role" else _CLUSTER_ROLE
    item = core.store.get(kind.table, f"{call.namespace}/{name}" if kind.namespaced else name)
    if item is None:
        raise not_found(kind, name)
    return load(item).get("rules") or []


def _parts(rule: Json, namespace: str) -> Iterator[rbac.Attributes]:
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield rbac.Attributes(verb, path=path)
        for group in rule.get("apiGroups") or ():
            for full in rule.get("resources") or ():
                resource, _, sub = full.partition("/")
                for name in rule.get("resourceNames") or ("",):
                    yield rbac.Attributes(verb, group, resource, sub, namespace, name)


def _rule_lines(missing: list[rbac.Attributes]) -> list[str]:
    """The missing rights as rules, those on one resource together."""
    verbs: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for right in missing:
        resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
        parts = [("NonResourceURLs", right.path)]
        if not right.path:
            parts = [("APIGroups", right.group), ("Resources", resource), ("ResourceNames", right.name)]
        key = tuple((label, value) for label, value in parts if value or label == "APIGroups")
        verbs.setdefault(key, []).append(right.verb)
    lines = []
    for key, allowed in verbs.items():
        listed = " ".join(f'"{verb}"' for verb in dict.fromkeys(allowed))
        lines.append("{" + ", ".join(f'{label}:["{value}"]' for label, value in key) + f", Verbs:[{listed}]" + "}")
    return lines

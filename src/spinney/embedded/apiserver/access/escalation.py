"""Prevent privilege escalation: nobody can grant rights that they do not have."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.meta import Json
from spinney.embedded.apiserver.access import rbac
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.store.store import load


def check(core: Core, authorizer: rbac.Authorizer, call: Call, document: Json) -> None:
    """Refuse a role or binding that grants more than its author has."""
    if call.kind.table not in rbac.TABLES or rbac.MASTERS in call.user.groups:
        return
    if call.kind.table in (rbac.ROLES, rbac.CLUSTER_ROLES):
        rules = document.get("rules") or []
        special = rbac.Attributes("escalate", rbac.GROUP, call.kind.plural, "", call.namespace, call.name)
    else:
        rules = _bound(core, call, document)
        # The right to bind that role counts, not a right on the binding.
        role = document.get("roleRef") or {}
        plural = "roles" if role.get("kind") == "Role" else "clusterroles"
        special = rbac.Attributes("bind", rbac.GROUP, plural, "", call.namespace, role.get("name", ""))
    if authorizer.allows(call.user, special) is not None:
        return
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


def _bound(core: Core, call: Call, document: Json) -> list[Json]:
    role = document.get("roleRef") or {}
    table, key = rbac.CLUSTER_ROLES, role.get("name", "")
    if role.get("kind") == "Role":
        table, key = rbac.ROLES, f"{call.namespace}/{key}"
    item = core.store.get(table, key)
    return (load(item).get("rules") or []) if item is not None else []


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
    for each in missing:
        resource = f"{each.resource}/{each.subresource}" if each.subresource else each.resource
        parts = [("NonResourceURLs", each.path)]
        if not each.path:
            parts = [("APIGroups", each.group), ("Resources", resource), ("ResourceNames", each.name)]
        key = tuple((label, value) for label, value in parts if value or label == "APIGroups")
        verbs.setdefault(key, []).append(each.verb)
    lines = []
    for key, allowed in verbs.items():
        listed = " ".join(f'"{verb}"' for verb in dict.fromkeys(allowed))
        lines.append("{" + ", ".join(f'{label}:["{value}"]' for label, value in key) + f", Verbs:[{listed}]" + "}")
    return lines

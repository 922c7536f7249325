"""Roles, and who has them."""

from __future__ import annotations

from tests.api_behaviour.wire import Api, Json

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"


async def grant(api: Api, namespace: str, subject: Json, *rules: Json) -> None:
    """A role with rules, bound to a subject in a namespace, once the server has noticed."""
    name = f"r-{subject['name'].replace(':', '-')}"
    (await api.post(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": name}, "rules": list(rules)})).ok()
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).ok()


def user(name: str) -> Json:
    """A user as a subject."""
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def rule(*verbs: str, resources: tuple[str, ...] = ("configmaps",), **more: list[str]) -> Json:
    """A rule of the core group."""
    return {"apiGroups": [""], "resources": list(resources), "verbs": list(verbs), **more}


async def allowed(api: Api, path: str) -> None:
    """Wait until a read is allowed: a real server takes a moment to notice a new role."""
    await api.until(path, lambda answer: answer.code != 403)

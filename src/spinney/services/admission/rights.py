"""Other rights of the sender of a request, by SubjectAccessReview."""

from __future__ import annotations

from spinney.api.core import Pod
from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client

_ACCESS_REVIEW = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


async def may_bind(client: Client, user: Json) -> bool:
    """Whether a user may bind pods in every namespace, as the binder may."""
    return await may(client, user, "create", Pod.resource, subresource="binding")


async def may(
    client: Client, user: Json, verb: str, resource: Resource, *, name: str = "", subresource: str = ""
) -> bool:
    """Whether the API server lets a user do something in every namespace."""
    spec = {
        "user": user.get("username", ""),
        "groups": user.get("groups") or [],
        "uid": user.get("uid", ""),
        "resourceAttributes": {
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "subresource": subresource,
            "name": name,
            "verb": verb,
        },
    }
    answer = await client.create(_ACCESS_REVIEW, {"spec": spec})
    return bool((answer.get("status") or {}).get("allowed"))

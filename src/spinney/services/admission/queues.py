"""The queue a pod asks for: whether it is there, whether it takes pods, and whether its sender may use it."""

from __future__ import annotations

from spinney.api.kai import Queue
from spinney.api.meta import Json, Resource
from spinney.kube.cache import Cache
from spinney.kube.client import Client

ACCESS_REVIEW = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


def warnings(queue: str, queues: Cache[Queue]) -> list[str]:
    """A pod may come before its queue, so this stops nobody: it only says why the pod will wait."""
    found = queues.get(queue)
    if found is None:
        return [f"queue {queue} does not exist; the pod waits until it does"]
    if any(other.spec.parent_queue == queue for other in queues):
        return [f"queue {queue} has queues below it and takes no pods itself; name one of those"]
    return []


async def may_use(client: Client, queue: str, user: Json) -> bool:
    """Whether the API server lets the sender `use` the queue."""
    spec = {
        "user": user.get("username", ""),
        "groups": user.get("groups") or [],
        "uid": user.get("uid", ""),
        "resourceAttributes": {
            "group": Queue.resource.group,
            "version": Queue.resource.version,
            "resource": Queue.resource.plural,
            "name": queue,
            "verb": "use",
        },
    }
    answer = await client.create(ACCESS_REVIEW, {"spec": spec})
    return bool((answer.get("status") or {}).get("allowed"))

"""The queue a pod asks for: whether it is there, whether it takes pods, and whether its sender may use it."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Namespace
from spinney.api.kai import Queue
from spinney.api.meta import Json, Resource
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client
from spinney.services.admission.settings import AdmissionSettings

ACCESS_REVIEW = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


def warnings(queue: str, queues: Cache[Queue]) -> list[str]:
    """A pod may come before its queue, so this stops nobody: it only says why the pod will wait."""
    found = queues.get(queue)
    if found is None:
        return [f"queue {queue} does not exist; the pod waits until it does"]
    if any(other.spec.parent_queue == queue for other in queues):
        return [f"queue {queue} has queues below it and takes no pods itself; name one of those"]
    return []


def queue_of(pod: Json, queue_label: str) -> str:
    """The queue that a pod names."""
    return str(((pod.get("metadata") or {}).get("labels") or {}).get(queue_label, ""))


def put_default(pod: Json, namespace: Namespace | None, queue_label: str) -> None:
    """A pod that names no queue gets that of its namespace's label; without one its workload decides."""
    own = pod["metadata"].get("labels") or {}
    queue = namespace.metadata.labels.get(queue_label) if namespace is not None else None
    if queue and queue_label not in own and labels.PROJECT not in own:
        pod["metadata"]["labels"] = {**own, queue_label: queue}


def adopt(pod: Json, settings: AdmissionSettings) -> None:
    """A pod that names one of our queues and leaves its scheduler to Kubernetes is meant for us."""
    if queue_of(pod, settings.queue_label) and pod["spec"].get("schedulerName") in (None, "", labels.DEFAULT_SCHEDULER):
        pod["spec"]["schedulerName"] = settings.scheduler_name


async def refusal(client: Client, queue: str, request: Json, settings: AdmissionSettings) -> str:
    """Why a pod may not go into its queue; its sender or its own account must be allowed to use it.

    Controllers send the pods of workloads: there the account that the pods run as stands for whoever made the workload.
    """
    if not queue:
        return f"the use of queues is reviewed: label {settings.queue_label} must name one"
    sender = request["userInfo"]
    namespace = request.get("namespace", "")
    account = request["object"]["spec"].get("serviceAccountName") or "default"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    running_as = {"username": f"system:serviceaccount:{namespace}:{account}", "groups": groups}
    if await may_use(client, queue, sender) or await may_use(client, queue, running_as):
        return ""
    return (
        f"user {sender.get('username', '')!r} may not use queue {queue!r}: verb 'use' on the Queue is granted "
        f"neither to them nor to the pod's service account {account!r}"
    )


async def may_use(client: Client, queue: str, user: Json) -> bool:
    """Whether the API server lets a user `use` the queue."""
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

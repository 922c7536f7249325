"""The queue that a pod, group or set names: whether it exists, takes pods, and may be used by who names it."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Namespace
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import Json
from spinney.kube.caches.cache import Cache
from spinney.kube.client.client import Client
from spinney.services.admission.rights import may
from spinney.services.admission.settings import AdmissionSettings


def warnings(queue: str, queues: Cache[Queue]) -> list[str]:
    """Why a pod will wait for its queue; no errors, since a pod may be created before its queue."""
    target = queues.get(queue)
    if target is None:
        return [f"queue {queue} does not exist; the pod waits until it does"]
    if any(other.spec.parent_queue == queue for other in queues):
        return [f"queue {queue} has queues below it and takes no pods itself; name one of those"]
    return []


def queue_of(pod: Json, queue_label: str) -> str:
    """The queue that a pod names."""
    return str(((pod.get("metadata") or {}).get("labels") or {}).get(queue_label, ""))


def set_default_queue(pod: Json, namespace: Namespace | None, queue_label: str) -> None:
    """Give a pod without a queue the one of its namespace's label."""
    own = pod["metadata"].get("labels") or {}
    queue = namespace.metadata.labels.get(queue_label) if namespace is not None else None
    if queue and queue_label not in own and labels.PROJECT not in own:
        pod["metadata"]["labels"] = {**own, queue_label: queue}


def adopt(pod: Json, settings: AdmissionSettings) -> None:
    """Set our scheduler on a pod that has a queue and no scheduler of its own."""
    if queue_of(pod, settings.queue_label) and pod["spec"].get("schedulerName") in (None, "", labels.DEFAULT_SCHEDULER):
        pod["spec"]["schedulerName"] = settings.scheduler_name


async def refusal(client: Client, queue: str, request: Json, settings: AdmissionSettings) -> str:
    """Why a pod may not use its queue; empty where its sender or its service account may.

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


def queues_named(item: Json) -> set[str]:
    """The queues that a PodGroup or a PodCliqueSet names: in its spec, or as labels and annotations."""
    spec = item.get("spec") or {}
    if item.get("kind") == PodGroup.resource.kind:
        return {str(spec.get("queue") or "")} - {""}
    places = [item.get("metadata") or {}, *((spec.get("template") or {}).get("cliques") or ())]
    named = {(place.get(part) or {}).get(labels.QUEUE) for place in places for part in ("labels", "annotations")}
    return {str(queue) for queue in named if queue}


async def refusal_of_group(client: Client, queue: str, sender: Json) -> str:
    """Why a group or set may not name a queue; empty where its sender may use it.

    Who may write PodGroups in every namespace is no tenant: components copy a queue that was reviewed before.
    """
    if await may_use(client, queue, sender) or await may(client, sender, "patch", PodGroup.resource):
        return ""
    return f"user {sender.get('username', '')!r} may not use queue {queue!r}: verb 'use' on the Queue is not granted"


async def may_use(client: Client, queue: str, user: Json) -> bool:
    """Whether the API server lets a user `use` the queue."""
    return await may(client, user, "use", Queue.resource, name=queue)

"""The Queue webhook: refuses invalid queues, and the deletion of queues in use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from spinney.api import duration, labels
from spinney.api.kai import PodGroup, Queue, QueueResources, QueueSpec
from spinney.api.meta import Json, convert
from spinney.kube.admission.review import allowed, checked, refused
from spinney.kube.caches.cache import Cache
from spinney.kube.runtime import Runtime, Webhook, webhook_rule

_RESOURCES = ("gpu", "cpu", "memory")


def check(queue: Queue, queues: Cache[Queue]) -> tuple[list[str], list[str]]:
    """Errors and warnings of a queue."""
    errors = _unusable_runtimes(queue.spec)
    shares = queue.spec.resources
    if shares is None:
        without = "spec.resources must be set: without it the queue has neither quota nor limit and runs nothing"
        return [without, *errors], []
    errors += _negative(shares)
    if queue.name in _above(queue, queues):
        errors.append(f"spec.parentQueue {queue.spec.parent_queue} makes the queue its own ancestor")
    parent = queues.get(queue.spec.parent_queue) if queue.spec.parent_queue else None
    warnings = _above_limit(shares) + _without_limit(shares)
    if queue.spec.parent_queue and parent is None:
        warnings.append(f"parent queue {queue.spec.parent_queue} does not exist; the queue runs nothing until it does")
    if parent is not None and parent.spec.resources is not None:
        warnings += _over(queue, parent, queues)
    return errors, warnings


def _unusable_runtimes(spec: QueueSpec) -> list[str]:
    """Errors of minimum run times that are no durations or below zero."""
    errors = []
    for field, text in (
        ("preemptMinRuntime", spec.preempt_min_runtime),
        ("reclaimMinRuntime", spec.reclaim_min_runtime),
    ):
        try:
            if text and duration.parse(text) < 0:
                errors.append(f"spec.{field} is {text}; it must be 0s or more, or be left out to take the parent's")
        except duration.DurationError as error:
            errors.append(f"spec.{field}: {error}")
    return errors


def _negative(shares: QueueResources) -> list[str]:
    errors = []
    for name in _RESOURCES:
        share = getattr(shares, name)
        for field, value in (("quota", share.quota), ("limit", share.limit)):
            if value < 0 and value != -1:
                errors.append(f"spec.resources.{name}.{field} is {value:g}; it must be 0 or more, or -1 for unlimited")
        if share.over_quota_weight < 0:
            errors.append(f"spec.resources.{name}.overQuotaWeight is {share.over_quota_weight:g}; it must be 0 or more")
    return errors


def _above_limit(shares: QueueResources) -> list[str]:
    """Warnings where a quota promises more than the limit allows."""
    return [
        f"the quota of {name} ({'unlimited' if share.quota < 0 else f'{share.quota:g}'}) is above its limit of "
        f"{share.limit:g}: the limit holds"
        for name in _RESOURCES
        if (share := getattr(shares, name)).limit >= 0 and (share.quota < 0 or share.quota > share.limit)
    ]


def _without_limit(shares: QueueResources) -> list[str]:
    """A warning where no pod can run that asks for CPU or memory, as nearly all do."""
    names = [name for name in ("cpu", "memory") if (share := getattr(shares, name)).limit == 0 and share.quota == 0]
    if not names:
        return []
    return [
        f"the limit of {' and '.join(names)} is 0 or not set, so no pod that asks for any runs; "
        "write limit: -1 for no limit"
    ]


def _above(queue: Queue, queues: Cache[Queue]) -> list[str]:
    names: list[str] = []
    name = queue.spec.parent_queue
    while name and name not in names:
        names.append(name)
        ancestor = queues.get(name) if name != queue.name else None
        name = ancestor.spec.parent_queue if ancestor is not None else ""
    return names


def _over(queue: Queue, parent: Queue, queues: Cache[Queue]) -> list[str]:
    """Warnings where the quotas of siblings exceed their parent's."""
    siblings = [other for other in queues if other.spec.parent_queue == parent.name and other.name != queue.name]
    warnings = []
    for name in _RESOURCES:
        has = getattr(parent.spec.resources, name).quota
        promised = sum(
            getattr(other.spec.resources, name).quota for other in [*siblings, queue] if other.spec.resources
        )
        if has >= 0 and promised > has:
            warnings.append(f"quotas of {name} below queue {parent.name} add up to {promised:g}, more than its {has:g}")
    return warnings


def in_parent(queue: Queue, old: Queue | None, groups: Cache[PodGroup]) -> tuple[list[str], list[str]]:
    """Errors and warnings of a queue that is put below another: only queues without children run workloads."""
    parent = queue.spec.parent_queue
    if not parent or (old is not None and old.spec.parent_queue == parent):
        return [], []
    if parent == labels.DEFAULT_QUEUE:
        return [
            f"spec.parentQueue {parent} takes the workloads that name no queue, and a queue with child queues runs "
            f"none; put it below {labels.DEFAULT_PARENT_QUEUE}"
        ], []
    running, waiting = _workloads(parent, groups)
    if running:
        return [
            f"spec.parentQueue {parent} has {running} running workloads, and a queue with child queues runs none; "
            "move or delete those first"
        ], []
    warning = (
        f"{waiting} workloads wait in queue {parent}: with child queues it runs none, so move them to one of those"
    )
    return [], [warning] if waiting else []


def _workloads(name: str, groups: Cache[PodGroup]) -> tuple[int, int]:
    """How many workloads of a queue run, and how many wait."""
    statuses = [group.status.resources_status for group in groups if group.spec.queue == name]
    running = sum(1 for status in statuses if status.allocated)
    return running, sum(1 for status in statuses if status.requested and not status.allocated)


def in_use(name: str, queues: Cache[Queue], groups: Cache[PodGroup]) -> str:
    """Why a queue cannot be deleted; empty where it can."""
    children = sorted(other.name for other in queues if other.spec.parent_queue == name)
    if children:
        return f"it has child queues {', '.join(children)}; delete or move those first"
    running, _ = _workloads(name, groups)
    if running:
        return f"{running} workloads run in it; move or delete those first"
    return ""


def review(runtime: Runtime) -> Callable[[Json], Awaitable[Json]]:
    """Review the creation, update and deletion of queues."""
    queues, groups = runtime.caches.of(Queue), runtime.caches.of(PodGroup)

    async def answer(request: Json) -> Json:
        if request.get("operation") == "DELETE":
            name = request.get("name") or (request.get("oldObject") or {}).get("metadata", {}).get("name", "")
            why = in_use(name, queues, groups)
            return refused(request, f"cannot delete queue {name}: {why}") if why else allowed(request)
        queue = convert(Queue, request["object"])
        old = convert(Queue, request["oldObject"]) if request.get("oldObject") else None
        errors, warnings = check(queue, queues)
        more_errors, more_warnings = in_parent(queue, old, groups)
        return checked(request, f"Queue {queue.name}", errors + more_errors, warnings + more_warnings)

    return answer


WEBHOOK = Webhook(
    name="queues.validation.kai.scheduler",
    path="/validate-scheduling-run-ai-v2-queue",
    mutating=False,
    review=review,
    rules=(webhook_rule((Queue.resource,), "CREATE", "UPDATE", "DELETE"),),
)

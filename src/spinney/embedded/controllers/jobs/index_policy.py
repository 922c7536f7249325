"""Rules of indexed Jobs: when an index has failed for good, how long it rests, and when enough have succeeded."""

from __future__ import annotations

from datetime import datetime, timedelta

from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.embedded.controllers.jobs import failure_policy, indexes

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
FIRST_BACK_OFF = 10.0
LONGEST_BACK_OFF = 600.0


def index_of(pod: Pod) -> int:
    """The index of a pod, -1 where it has none."""
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() else -1


def per_index(job: Job) -> bool:
    """Whether each index of a Job may fail for itself."""
    return job.spec.backoff_limit_per_index is not None


def failures_before(pods: list[Pod], index: int) -> int:
    """How often an index has failed, as far as the pods that are still there tell."""
    return max((_failures(pod) + 1 for pod in pods if _has_failed(pod) and index_of(pod) == index), default=0)


def failed_indexes(job: Job, pods: list[Pod]) -> set[int]:
    """The indexes that are given up."""
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return set()
    found = indexes.parse(job.status.failed_indexes or "")
    for pod in pods:
        if not _has_failed(pod):
            continue
        action = failure_policy.action(job, pod)[0]
        if action == "FailIndex" or (action != "Ignore" and _failures(pod) >= limit):
            found.add(index_of(pod))
    return found - {-1}


def failure(job: Job, succeeded: set[int], failed: set[int]) -> tuple[str, str] | None:
    """Why a Job fails for its indexes, if it does."""
    if job.spec.max_failed_indexes is not None and len(failed) > job.spec.max_failed_indexes:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failed and len(failed) + len(succeeded) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def success(job: Job, succeeded: set[int]) -> tuple[str, str] | None:
    """Why a Job counts as done before all of its indexes are, if it does."""
    for number, rule in enumerate((job.spec.success_policy or {}).get("rules") or ()):
        if succeeded and _met(rule, succeeded):
            return "SuccessPolicy", f"Matched rules at index {number}"
    return None


def _met(rule: Json, succeeded: set[int]) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(succeeded) >= count
    wanted = indexes.parse(rule["succeededIndexes"])
    reached = len(wanted & succeeded)
    return bool(wanted) and (reached == len(wanted) or (count is not None and reached >= count))


def rest(pods: list[Pod], index: int, now: datetime) -> float:
    """Seconds until an index that has failed is tried again."""
    failed = [pod for pod in pods if _has_failed(pod) and index_of(pod) == index]
    return back_off(failed, failures_before(pods, index), now)


def back_off(failed: list[Pod], failures: int, now: datetime) -> float:
    """Seconds to wait before a replacement of failed pods, twice as long each time."""
    times = [
        status.state.terminated.finished_at
        for pod in failed
        for status in pod.status.container_statuses
        if status.state.terminated and status.state.terminated.finished_at
    ]
    if not failures or not times:
        return 0.0
    delay = min(FIRST_BACK_OFF * 2.0 ** min(failures - 1, 10), LONGEST_BACK_OFF)
    return (max(times) + timedelta(seconds=delay) - now).total_seconds()


def _has_failed(pod: Pod) -> bool:
    return pod.status.phase == "Failed"


def _failures(pod: Pod) -> int:
    text = pod.metadata.annotations.get(FAILURES, "0")
    return int(text) if text.isdecimal() else 0

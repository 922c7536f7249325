"""Completion indexes: how Jobs write sets of them, and when an index has failed, is retried, or has succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain, islice

from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.embedded.controllers.jobs import failure_policy

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
_MOST_INDEXES = 1_000_000
FIRST_BACK_OFF = 10.0
LONGEST_BACK_OFF = 600.0


def parse(text: str) -> set[int]:
    """`0-3,7` as a set; of absurdly many indexes, the first ones."""
    return set(islice(chain.from_iterable(_ranges(text)), _MOST_INDEXES))


def _ranges(text: str) -> list[range]:
    """The parts of `0-3,7`; what Kubernetes would never write counts as nothing."""
    ends = [part.partition("-") for part in text.split(",")]
    numbers = ((whole_number(first), whole_number(last or first)) for first, _, last in ends)
    return [range(first, last + 1) for first, last in numbers if first is not None and last is not None]


def render(indexes: Iterable[int]) -> str:
    """A set as `0-3,7`; a range has three or more indexes."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    if len(run) == 1:
        return str(run[0])
    if len(run) == 2:
        return f"{run[0]},{run[1]}"
    return f"{run[0]}-{run[-1]}"


def index_of(pod: Pod) -> int:
    """The index of a pod, -1 where it has none."""
    index = whole_number(pod.metadata.annotations.get(INDEX, ""))
    return -1 if index is None else index


def per_index(job: Job) -> bool:
    """Whether the back-off limit counts per index."""
    return job.spec.backoff_limit_per_index is not None


def failures_before(pods: list[Pod], index: int) -> int:
    """How often an index has failed, by the pods that still exist."""
    return max((_failures(pod) + 1 for pod in pods if _has_failed(pod) and index_of(pod) == index), default=0)


def failed_indexes(job: Job, pods: list[Pod]) -> set[int]:
    """The indexes that have failed for good."""
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return set()
    failed = parse(job.status.failed_indexes or "")
    for pod in pods:
        if not _has_failed(pod):
            continue
        action = failure_policy.action(job, pod)[0]
        if action == "FailIndex" or (action != "Ignore" and _failures(pod) >= limit):
            failed.add(index_of(pod))
    return failed - {-1}


def failure(job: Job, succeeded: set[int], failed: set[int]) -> tuple[str, str] | None:
    """Why a Job fails because of failed indexes; None where it does not."""
    if job.spec.max_failed_indexes is not None and len(failed) > job.spec.max_failed_indexes:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failed and len(failed) + len(succeeded) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def success(job: Job, succeeded: set[int]) -> tuple[str, str] | None:
    """Why the success policy ends a Job early; None where it does not."""
    for number, rule in enumerate((job.spec.success_policy or {}).get("rules") or ()):
        if succeeded and _met(rule, succeeded):
            return "SuccessPolicy", f"Matched rules at index {number}"
    return None


def _met(rule: Json, succeeded: set[int]) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(succeeded) >= count
    wanted = _ranges(rule["succeededIndexes"])
    total = sum(map(len, wanted))
    reached = sum(1 for index in succeeded if any(index in part for part in wanted))
    return total > 0 and (reached == total or (count is not None and reached >= count))


def retry_delay(pods: list[Pod], index: int, now: datetime) -> float:
    """Seconds until a failed index is retried."""
    failed = [pod for pod in pods if _has_failed(pod) and index_of(pod) == index]
    return back_off(failed, failures_before(pods, index), now)


def back_off(failed: list[Pod], failures: int, now: datetime) -> float:
    """Seconds until failed pods are replaced; the delay doubles with each failure."""
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
    return whole_number(pod.metadata.annotations.get(FAILURES, "")) or 0

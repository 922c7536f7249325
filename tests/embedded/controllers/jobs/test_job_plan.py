"""What a Job needs next, from its pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.meta import Json, convert
from spinney.embedded.controllers.jobs import indexes
from spinney.embedded.controllers.jobs.indexes import INDEX
from spinney.embedded.controllers.jobs.job_plan import plan_job
from spinney.embedded.controllers.jobs.job_status import FINALIZER
from tests import make

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def job(status: Json | None = None, **spec: Any) -> Job:
    """A Job that started a minute ago."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    body = {
        "metadata": {"name": "train", "namespace": "default", "uid": "job-uid"},
        "spec": {"completions": 1, "template": template, **spec},
        "status": {"startTime": "2026-01-01T11:59:00Z", **(status or {})},
    }
    return convert(Job, body)


def pod(name: str, phase: str = "Running", *, index: int | None = None, held: bool = True, **more: Any) -> Pod:
    """A pod of the Job."""
    built = make.pod(name).metadata(uid=f"uid-{name}", finalizers=[FINALIZER] if held else [], **more)
    if index is not None:
        built.annotate(INDEX, str(index))
    ended = {"exitCode": 0 if phase == "Succeeded" else 1, "finishedAt": "2026-01-01T12:00:00Z"}
    statuses = [{"name": "main", "state": {"terminated": ended}}] if phase in ("Succeeded", "Failed") else []
    return built.status(phase=phase, containerStatuses=statuses).typed(Pod)


def test_a_new_job_starts_as_many_pods_as_may_run_at_once() -> None:
    """Parallelism bounds what runs, completions bound what is left."""
    plan = plan_job(job(parallelism=3, completions=5), [], NOW)

    assert len(plan.create) == 3
    metadata = plan.create[0]["metadata"]
    assert metadata["generateName"] == "train-"
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["labels"]["job-name"] == "train"
    assert metadata["labels"]["batch.kubernetes.io/controller-uid"] == "job-uid"
    assert plan.status["active"] == 3


def test_no_more_pods_start_than_completions_are_left() -> None:
    """Two of three done, two may run: one starts."""
    plan = plan_job(job({"succeeded": 2}, parallelism=2, completions=3), [], NOW)
    assert len(plan.create) == 1


def test_a_pod_that_ended_is_noted_first_and_counted_when_it_is_let_go() -> None:
    """The UID goes into the status before the finalizer goes, so a crash between counts it once."""
    first = plan_job(job(), [pod("a", "Succeeded")], NOW)
    assert first.status["uncountedTerminatedPods"]["succeeded"] == ["uid-a"]
    assert "succeeded" not in first.status
    assert [p.name for p in first.release] == ["a"]
    assert "Complete" not in [c["type"] for c in first.status["conditions"]]

    noted = job({"uncountedTerminatedPods": {"succeeded": ["uid-a"]}})
    second = plan_job(noted, [pod("a", "Succeeded", held=False)], NOW)

    assert second.status["succeeded"] == 1
    assert second.status["uncountedTerminatedPods"] == {"succeeded": None, "failed": None}
    assert [c["type"] for c in second.status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert second.status["completionTime"] == "2026-01-01T12:00:00Z"


def test_a_failed_pod_is_replaced_after_a_wait_that_doubles() -> None:
    """10 s after the first failure, 20 s after the second."""
    once = plan_job(job({"failed": 1}), [pod("a", "Failed", held=False)], NOW)
    assert (once.create, once.wake) == ([], 10)

    twice = plan_job(job({"failed": 2}), [pod("a", "Failed", held=False)], NOW)
    assert twice.wake == 20

    later = plan_job(job({"failed": 1}), [pod("a", "Failed", held=False)], NOW + timedelta(seconds=10))
    assert len(later.create) == 1


def test_too_many_failures_end_a_job() -> None:
    """First the target is announced and running pods are stopped; when they are gone, the Job is Failed."""
    failing = plan_job(job({"failed": 3}, backoffLimit=2, parallelism=2, completions=2), [pod("b")], NOW)
    assert [(c["type"], c["reason"]) for c in failing.status["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded")
    ]
    assert [p.name for p in failing.delete] == ["b"]

    conditions = [{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}]
    failed = plan_job(job({"failed": 3, "conditions": conditions}, backoffLimit=2), [], NOW)

    assert [(c["type"], c["message"]) for c in failed.status["conditions"]] == [("Failed", "m")]


def test_a_deadline_ends_a_job() -> None:
    """Until then the plan asks to be looked at when it passes."""
    assert plan_job(job(activeDeadlineSeconds=90), [pod("a")], NOW).wake == 30
    late = plan_job(job(activeDeadlineSeconds=60), [pod("a")], NOW)
    assert late.status["conditions"][0]["reason"] == "DeadlineExceeded"


def test_indexed_jobs_give_each_pod_its_index() -> None:
    """Name, annotation, label, host name and environment carry it; done and running ones are not started again."""
    plan = plan_job(
        job({"completedIndexes": "0"}, completionMode="Indexed", completions=4, parallelism=3),
        [pod("one", index=1)],
        NOW,
    )

    made = plan.create[0]
    assert [p["metadata"]["annotations"][INDEX] for p in plan.create] == ["2", "3"]
    assert made["metadata"]["generateName"] == "train-2-"
    assert made["spec"]["hostname"] == "train-2"
    assert made["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_a_suspended_job_stops_its_pods_and_says_so() -> None:
    """And their end is not held against it."""
    plan = plan_job(job(suspend=True), [pod("a")], NOW)
    assert [p.name for p in plan.drop] == ["a"]
    assert plan.status["conditions"][0]["type"] == "Suspended"
    going = pod("a", deletionTimestamp="2026-01-01T12:00:00Z")
    assert "failed" not in plan_job(job(suspend=True), [going], NOW).status


@pytest.mark.parametrize(
    ("action", "condition", "failed"),
    [("FailJob", "FailureTarget", 1), ("Ignore", None, 0), ("Count", None, 1)],
)
def test_the_failure_policy_decides_about_exit_codes(action: str, condition: str | None, failed: int) -> None:
    """FailJob ends the Job at once, Ignore does not count, Count does."""
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [1]}}
    plan = plan_job(job(podFailurePolicy={"rules": [rule]}), [pod("a", "Failed")], NOW)

    noted = (plan.status.get("uncountedTerminatedPods") or {}).get("failed") or []
    assert len(noted) == failed
    assert [c["type"] for c in plan.status.get("conditions", [])] == ([condition] if condition else [])


def test_a_finished_job_goes_after_its_time() -> None:
    """ttlSecondsAfterFinished counts from the end."""
    done = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}]}
    assert plan_job(job(done, ttlSecondsAfterFinished=60), [], NOW).wake == 60
    assert plan_job(job(done, ttlSecondsAfterFinished=60), [], NOW + timedelta(seconds=60)).expired


def test_a_settled_job_needs_nothing() -> None:
    """With its pod running and its status right, there is nothing to write."""
    counts = {"active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    plan = plan_job(job(counts), [pod("a")], NOW)
    assert (plan.create, plan.delete, plan.release, plan.status) == ([], [], [], {})


@pytest.mark.parametrize(("text", "numbers"), [("0-2,4,6,7", [0, 1, 2, 4, 6, 7]), ("", []), ("5", [5])])
def test_indexes_as_text(text: str, numbers: list[int]) -> None:
    """Reading and writing are inverse."""
    assert indexes.parse(text) == set(numbers)
    assert indexes.render(numbers) == text

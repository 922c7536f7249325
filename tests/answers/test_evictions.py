"""The ledger of evictions, and what explanations make of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spinney.answers.evictions import evictions
from spinney.answers.explanation import explanations
from spinney.answers.finding import split
from tests.answers.scene import Scene, ago, event


def test_the_ledger_of_evictions(scene: Scene) -> None:
    """Who, for whom, by which right, and how many GPU-hours were lost; an event of a group is not counted again."""
    text = "Pod old-0 was evicted by reclaim for default/pg-new: queue a gives back to queue b what it is owed"
    notes = {
        "evictor-action-type": "reclaim",
        "evictor-pod-group-name": "pg-new",
        "evictor-pod-group-namespace": "default",
        "spinney.dev/evicted-gpus": "4",
        "spinney.dev/evicted-queue": "a",
        "spinney.dev/evictor-queue": "b",
        "spinney.dev/evicted-started": ago(1800),
        "spinney.dev/evicted-workload": "batch/v1 Job default/old",
    }
    scene.add(event("Pod", "old-0", text, **notes), event("PodGroup", "pg-old", text, **notes))
    other = event(
        "PodGroup", "pg-x", "Pod x-0 was evicted by consolidation", **{"evictor-action-type": "consolidation"}
    )
    items = {each.pod: each for each in evictions(scene.add(other).cluster()).items}
    assert set(items) == {"default/old-0", "default/x-0"}
    old = items["default/old-0"]
    assert (str(old.workload), old.queue, old.by_queue, old.right) == ("job/old", "a", "b", "reclaim")
    assert (old.gpus, old.gpu_hours_lost) == (4, 2.0)
    assert (items["default/x-0"].right, items["default/x-0"].gpu_hours_lost) == ("consolidate", None)


@pytest.mark.parametrize("started", ["2026-01-01", "2026-01-01T00:00:00", "soon"])
@pytest.mark.parametrize("gpus", ["nan", "inf", "-8", "1e308"])
def test_an_eviction_that_a_tenant_made_up_stopped_the_ledger(scene: Scene, started: str, gpus: str) -> None:
    """Who may write events may write any time and amount: neither ends in an exception, nor in a number."""
    notes = {"spinney.dev/evicted-started": started, "spinney.dev/evicted-gpus": gpus}
    (row,) = evictions(scene.add(event("Pod", "old-0", "Pod old-0 was evicted", **notes)).cluster()).items
    assert (row.gpus, row.gpu_hours_lost) == (0.0, None)


@pytest.mark.parametrize("readable", ["", "default"])
def test_a_tenant_sees_the_queue_and_not_the_name_of_whom_it_gave_way_to(scene: Scene, readable: str) -> None:
    """Names in a namespace that a user may not read are left out of the ledger and of its text."""
    notes = {
        "evictor-action-type": "reclaim",
        "evictor-pod-group-namespace": "secret",
        "evictor-pod-group-name": "pg-moon",
        "spinney.dev/evictor-queue": "rich",
        "spinney.dev/evictor-workload": "batch/v1 Job secret/moon",
    }
    scene.add(event("Pod", "old-0", "Pod old-0 was evicted by reclaim for secret/pg-moon: queue rich is owed", **notes))
    (row,) = evictions(replace(scene.cluster(), namespace=readable)).items
    assert row.by_queue == "rich"
    assert (row.by_workload is None) is bool(readable)
    assert ("moon" in row.text) is not bool(readable)
    if readable:
        assert "for a gang of queue rich" in row.text


def test_an_eviction_for_a_gang_that_is_gone_named_it_in_its_text_only(scene: Scene) -> None:
    """What a reader may see of the row goes by the gang that the row names."""
    notes = {"evictor-pod-group-namespace": "secret", "evictor-pod-group-name": "pg-moon"}
    scene.add(event("Pod", "old-0", "Pod old-0 was evicted by reclaim for secret/pg-moon", **notes))
    (row,) = evictions(scene.cluster()).items
    assert row.by_workload is not None
    assert (row.by_workload.namespace, row.by_workload.name) == ("secret", "pg-moon")


@pytest.mark.parametrize("name", ["old-0", "default/old-0"])
def test_an_eviction_is_explained_by_the_name_that_the_ledger_prints(scene: Scene, name: str) -> None:
    """With and without its namespace."""
    notes = {"evictor-action-type": "reclaim", "spinney.dev/evicted-instead-of": "2"}
    scene.add(event("Pod", "old-0", "Pod old-0 was evicted", **notes))
    (explanation,) = explanations(scene.cluster(), *split(f"eviction/{name}"), "default")
    assert "Pod old-0 was evicted" in explanation.sentences[0]
    assert (
        "2 other gangs could have given way by the same right: the queue that borrows most" in explanation.sentences[-1]
    )


def test_a_job_that_evictions_have_failed_says_so(scene: Scene) -> None:
    """It was "failed: 0 of 4 pods placed", and no word of why, or of how to prevent it."""
    scene.job("old", 0, 1)
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "message": "Job has reached the specified backoff limit",
    }
    job = next(item for item in scene.objects if item["kind"] == "Job")
    job["status"] = {"conditions": [failed]}
    scene.add(
        event("Pod", "old-0", "Pod old-0 was evicted", **{"spinney.dev/evicted-workload": "batch/v1 Job default/old"})
    )
    (explanation,) = explanations(scene.cluster(), "job", "old", "default")
    assert explanation.sentences[1:3] == [
        "  It failed (BackoffLimitExceeded): Job has reached the specified backoff limit",
        "    → Evicted pods count as failed: let its podFailurePolicy ignore pods with DisruptionTarget.",
    ]

"""What the Queue webhook refuses."""

from __future__ import annotations

from typing import cast

from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import convert
from spinney.kube.caches.cache import Cache
from spinney.services.queues import queue_checks


class Known:
    """A cache of some objects."""

    def __init__(self, *objects: object) -> None:
        self.objects = {getattr(queue, "name"): queue for queue in objects}  # noqa: B009  # objects of several kinds

    def get(self, key: tuple[str, str] | str) -> object:
        return self.objects.get(key if isinstance(key, str) else key[1])

    def __iter__(self) -> object:
        return iter(self.objects.values())


def queue(name: str, parent: str = "", quota: float = 0) -> Queue:
    shares = {key: {"quota": quota, "limit": -1} for key in ("gpu", "cpu", "memory")}
    return convert(Queue, {"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": shares}})


def test_queues_that_are_refused() -> None:
    """No resources at all, nonsense numbers, and circles."""
    none = cast(Cache[Queue], Known())
    assert queue_checks.check(convert(Queue, {"metadata": {"name": "q"}}), none)[0]
    assert "-1 for unlimited" in queue_checks.check(queue("q", quota=-2), none)[0][0]
    circle = cast(Cache[Queue], Known(queue("a", "b"), queue("b", "a")))
    assert "its own ancestor" in queue_checks.check(queue("a", "b"), circle)[0][0]


def test_minimum_run_times_that_are_no_durations_are_refused() -> None:
    """They were stored without a word, and protected nobody."""
    none = cast(Cache[Queue], Known())
    for text in ("10 minutes", "soon", "5", "1d", "-5m", "3600"):
        errors, _ = queue_checks.check(protected_for(text), none)
        assert [text in error and "spec.preemptMinRuntime" in error for error in errors] == [True]
    for text in ("0", "0s", "30s", "1h30m", "1.5h", "4h0m0s", "+5m", ""):
        assert queue_checks.check(protected_for(text), none)[0] == []


def protected_for(runtime: str) -> Queue:
    spec = {"resources": {}, "preemptMinRuntime": runtime}
    return convert(Queue, {"metadata": {"name": "q"}, "spec": spec})


def test_a_queue_whose_limit_of_cpu_was_forgotten_is_a_warning() -> None:
    """An absent limit is 0: the queue ran nothing, and nobody was told."""
    shares = {"gpu": {"quota": 4, "limit": 8}, "memory": {"quota": -1, "limit": -1}}
    queue = convert(Queue, {"metadata": {"name": "q"}, "spec": {"resources": shares}})
    errors, warnings = queue_checks.check(queue, cast(Cache[Queue], Known()))
    assert (errors, len(warnings)) == ([], 1)
    assert warnings[0].startswith("the limit of cpu is 0 or not set")


def test_more_quota_than_the_parent_has_is_a_warning() -> None:
    """It can be meant; it is said."""
    queues = cast(Cache[Queue], Known(queue("p", quota=4), queue("a", "p", 3)))
    errors, warnings = queue_checks.check(queue("b", "p", 2), queues)
    assert errors == []
    assert "add up to 5, more than its 4" in warnings[0]


def test_a_quota_above_the_limit_is_a_warning() -> None:
    """It passed without a word, and only the limit counted."""
    shares = {"gpu": {"quota": 8, "limit": 4}, "cpu": {"quota": -1, "limit": 2}, "memory": {"quota": 1, "limit": 1}}
    queue = convert(Queue, {"metadata": {"name": "q"}, "spec": {"resources": shares}})
    assert queue_checks.check(queue, cast(Cache[Queue], Known())) == (
        [],
        [
            "the quota of gpu (8) is above its limit of 4: the limit holds",
            "the quota of cpu (unlimited) is above its limit of 2: the limit holds",
        ],
    )


def test_a_queue_in_use_is_not_deleted() -> None:
    """Children and running workloads keep it."""
    group = {
        "metadata": {"name": "g"},
        "spec": {"queue": "a"},
        "status": {"resourcesStatus": {"allocated": {"cpu": "1"}}},
    }
    groups = cast(Cache[PodGroup], Known(convert(PodGroup, group)))
    queues = cast(Cache[Queue], Known(queue("p"), queue("a", "p")))
    assert "child queues a" in queue_checks.in_use("p", queues, groups)
    assert "1 workloads run" in queue_checks.in_use("a", queues, groups)
    assert queue_checks.in_use("other", queues, groups) == ""


def test_a_queue_below_one_with_running_gangs_stopped_that_queue() -> None:
    """It is refused; where gangs only wait, their owner is told; an update that leaves the parent alone passes."""
    running = {"allocated": {"cpu": "1"}, "requested": {"cpu": "1"}}
    waiting = {"requested": {"cpu": "1"}}

    def groups(resources: dict[str, object]) -> Cache[PodGroup]:
        group = {"metadata": {"name": "g"}, "spec": {"queue": "p"}, "status": {"resourcesStatus": resources}}
        return cast(Cache[PodGroup], Known(convert(PodGroup, group)))

    below = queue("b", "p")
    assert "p has 1 running workloads" in queue_checks.in_parent(below, None, groups(running))[0][0]
    assert "1 running workloads" in queue_checks.in_parent(below, queue("b", "other"), groups(running))[0][0]
    assert queue_checks.in_parent(below, below, groups(running)) == ([], [])
    errors, warnings = queue_checks.in_parent(below, None, groups(waiting))
    assert errors == []
    assert "1 workloads wait in queue p" in warnings[0]


def test_a_queue_below_the_default_queue_stopped_all_workloads_that_name_none() -> None:
    """It is refused whether or not gangs run there at that moment."""
    nothing = cast(Cache[PodGroup], Known())
    errors, _ = queue_checks.in_parent(queue("b", "default-queue"), None, nothing)
    assert "takes the workloads that name no queue" in errors[0]
    assert queue_checks.in_parent(queue("b", "default-parent-queue"), None, nothing) == ([], [])

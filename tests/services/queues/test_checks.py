"""What the webhooks of PodGroups and Queues refuse."""

from __future__ import annotations

from typing import cast

import pytest

from spinney.api.kai import PodGroup, PodGroupSpec, Queue
from spinney.api.meta import Json, convert
from spinney.kube.caches.cache import Cache
from spinney.services.podgroups import podgroup_checks
from spinney.services.queues import queue_checks


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"minMember": 1, "minSubGroup": 1}, "exclude each other"),
        ({"subGroups": [{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}]}, "listed twice"),
        ({"subGroups": [{"name": "a", "minMember": 1, "parent": "b"}]}, "parent b is not a subgroup"),
        ({"subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}, "its own ancestor"),
        ({"subGroups": [{"name": "a", "minSubGroup": 1}]}, "minSubGroup must not be set"),
        ({"subGroups": [{"name": "a"}]}, "minMember must be set"),
        (
            {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1, "parent": "a"}]},
            "instead of minMember",
        ),
    ],
)
def test_groups_that_are_refused(spec: Json, says: str) -> None:
    """Each broken tree is refused by name."""
    errors, _ = podgroup_checks.check(convert(PodGroupSpec, spec), creating=True)
    assert says in "; ".join(errors)


def test_an_old_group_with_a_minimum_on_a_parent_stays_editable() -> None:
    """On update that is only a warning."""
    spec = {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1, "parent": "a"}]}
    errors, warnings = podgroup_checks.check(convert(PodGroupSpec, spec), creating=False)
    assert (errors, len(warnings)) == ([], 1)


class Known:
    """A cache of some objects."""

    def __init__(self, *objects: object) -> None:
        self.objects = {getattr(found, "name"): found for found in objects}  # noqa: B009  # objects of several kinds

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


def test_more_quota_than_the_parent_has_is_a_warning() -> None:
    """It can be meant; it is said."""
    known = cast(Cache[Queue], Known(queue("p", quota=4), queue("a", "p", 3)))
    errors, warnings = queue_checks.check(queue("b", "p", 2), known)
    assert errors == []
    assert "add up to 5, more than its 4" in warnings[0]


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

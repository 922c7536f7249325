"""Sharing: equal parts of cached objects are one object, and nothing else changes."""

from __future__ import annotations

import msgspec
import pytest

from spinney.api.meta import decode
from spinney.api.pod import Pod
from spinney.kube.caches import interning
from spinney.kube.caches.interning import sharer
from tests import make


def pod(name: str, node: str = "n", **labels: str) -> Pod:
    built = make.pod(name).gpus(1).on(node)
    for key, value in labels.items():
        built.label(key, value)
    body = built.build()
    body["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]
    body["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    body["metadata"]["uid"] = name
    return decode(Pod, msgspec.json.encode(body))


def test_equal_parts_become_one() -> None:
    """Texts, lists and maps that are equal are kept once, wherever they stand."""
    one, two = pod("one", team="blue"), pod("two", team="blue")
    for each in (one, two):
        sharer(Pod)(each, None)
    assert one.spec.tolerations is two.spec.tolerations
    assert one.spec.node_name is two.spec.node_name
    assert one.metadata.labels is two.metadata.labels
    assert one.spec.containers[0].resources.requests is two.spec.containers[0].resources.requests
    assert one.spec.containers[0].env is two.spec.containers[0].env
    assert one.metadata.annotations is two.metadata.annotations


def test_nothing_else_changes() -> None:
    """A shared object is equal to what it was, and different ones stay different."""
    before, after = pod("one", "n1", team="blue"), pod("one", "n1", team="blue")
    other = pod("two", "n2", team="red")
    sharer(Pod)(other, None)
    sharer(Pod)(after, None)
    assert after == before
    assert other.metadata.labels == {"team": "red"}
    assert other.spec.node_name == "n2"


def test_what_stays_is_taken_from_the_earlier_state() -> None:
    """Parts that did not change are those of the object's earlier state; others are as they came."""
    earlier, later = pod("one", team="blue"), pod("one", team="red")
    sharer(Pod)(earlier, None)
    sharer(Pod)(later, earlier)
    assert later.spec is earlier.spec
    assert later.metadata.annotations is earlier.metadata.annotations
    assert later == pod("one", team="red")


def test_long_values_filled_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is long is not kept for others, and what is short only up to a bound; objects stay as they are."""
    monkeypatch.setattr(interning, "_MOST", 50_000)
    for number in range(200):
        one = pod("one", team=f"{number}")
        one.metadata.annotations["long"] = f"{number}" * 10_000
        one.metadata.annotations["short"] = f"{number}"
        sharer(Pod)(one, None)
    assert (
        sum(len(msgspec.json.encode([*table.values()])) for table in (*interning._tables.values(), interning._maps))
        < 50_000
    )
    assert one.metadata.annotations["long"] == "199" * 10_000

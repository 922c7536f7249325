"""Work on thousands of objects is done in turns: nobody else waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.embedded.conftest import MAPS, MERGE, Asker


async def _owner_of(ask: Asker, count: int) -> None:
    """A ConfigMap `owner` that owns others."""
    owner = await ask("POST", MAPS, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    for number in range(count):
        reference = {**reference, "blockOwnerDeletion": number % 2 == 0}
        await ask("POST", MAPS, {"metadata": {"name": f"m{number}", "ownerReferences": [reference]}})


async def _turns_until(ask: Asker, ended: Callable[[list[Any]], bool]) -> int:
    """How many times others were answered until the listed ConfigMaps are as wanted."""
    for turns in range(1000):
        await asyncio.sleep(0)
        if ended((await ask("GET", MAPS))["items"]):
            return turns
    raise AssertionError("it did not end")


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_an_owner_of_thousands_stopped_everybody_else(ask: Asker, policy: str) -> None:
    """Its dependents are deleted in many turns of the loop, and each of them is looked at a few times only."""
    await _owner_of(ask, 200)
    await ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": policy})
    assert 200 // 32 <= await _turns_until(ask, lambda items: not items) < 60


async def test_orphans_of_an_owner_of_thousands(ask: Asker) -> None:
    """They are let go in many turns of the loop; none is deleted."""
    await _owner_of(ask, 200)
    await ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Orphan"})

    def free(items: list[Any]) -> bool:
        return len(items) == 200 and not any("ownerReferences" in each["metadata"] for each in items)

    assert await _turns_until(ask, free) >= 200 / 32 - 1


async def test_a_namespace_of_thousands_stopped_everybody_else(ask: Asker) -> None:
    """Its objects are deleted in many turns of the loop; one that is held is waited for."""
    maps = "/api/v1/namespaces/full/configmaps"
    await ask("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}})
    for number in range(200):
        finalizers = ["a.b/c"] if number < 3 else []
        await ask("POST", maps, {"metadata": {"name": f"m{number}", "finalizers": finalizers}})
    await ask("DELETE", "/api/v1/namespaces/full")
    left = []
    for _ in range(50):
        await asyncio.sleep(0)
        left.append(len((await ask("GET", maps))["items"]))
    assert (left[0] > 100, left[-1]) == (True, 3)
    messages = {
        each["type"]: each["message"] for each in (await ask("GET", "/api/v1/namespaces/full"))["status"]["conditions"]
    }
    assert messages["NamespaceFinalizersRemaining"].endswith("a.b/c in 3 resource instances")
    for number in range(3):
        await ask("PATCH", f"{maps}/m{number}", {"metadata": {"finalizers": None}}, kind=MERGE)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (await ask("GET", "/api/v1/namespaces/full")).status == 404


async def test_a_collection_of_thousands_stopped_everybody_else(ask: Asker) -> None:
    """While it is deleted, others are answered."""
    for number in range(200):
        await ask("POST", MAPS, {"metadata": {"name": f"m{number}"}})
    deletion = asyncio.ensure_future(ask("DELETE", MAPS))
    counts = []
    while not deletion.done():
        await asyncio.sleep(0)
        counts.append(len((await ask("GET", MAPS))["items"]))
    assert len(set(counts)) >= 200 // 32


async def test_owner_references_by_the_thousand(ask: Asker) -> None:
    """The same one is dropped, and told once; comparing each with each took half a minute."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": f"u{n // 2}"} for n in range(8_000)]
    answer = await ask("POST", MAPS, {"metadata": {"name": "m", "ownerReferences": owners}})
    assert len(answer["metadata"]["ownerReferences"]) == 4_000

"""Watches: order, resumption, bookmarks, initial events, selectors, what is too old."""

from __future__ import annotations

import asyncio

from tests import make
from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster


def secrets(namespace: str) -> str:
    """The Secrets of a namespace, which no controller touches."""
    return f"/api/v1/namespaces/{namespace}/secrets"


def secret(name: str, **labels: str) -> Json:
    """A Secret with labels."""
    return {"metadata": {"name": name, "labels": labels}}


async def version(api: Api, path: str) -> str:
    """The version of the collection now."""
    return str((await api.get(path)).ok()["metadata"]["resourceVersion"])


async def test_events(api: Api, namespace: str) -> None:
    """Creation, change and deletion come in order, each with the object as it then was."""
    path = secrets(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start) as watch:
        await api.post(path, secret("a"))
        await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})
        await api.delete(f"{path}/a")
        added, modified, deleted = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in (added, modified, deleted)] == ["ADDED", "MODIFIED", "DELETED"]
    assert added["object"]["kind"] == "Secret"
    assert "labels" not in added["object"]["metadata"]
    assert modified["object"]["metadata"]["labels"] == {"x": "y"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (added, modified, deleted)]
    assert versions == sorted(set(versions))


async def test_headers(api: Api, namespace: str) -> None:
    """A watch is JSON, one event a line."""
    async with api.watch(secrets(namespace), resourceVersion="0") as watch:
        await api.post(secrets(namespace), secret("a"))
        assert set(await watch.next()) == {"type", "object"}


async def test_no_version(api: Api, namespace: str) -> None:
    """Without a version, a watch begins with what is there, as additions."""
    path = secrets(namespace)
    for name in ("a", "b"):
        await api.post(path, secret(name))
    async with api.watch(path) as watch:
        assert sorted(await watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        await api.post(path, secret("c"))
        assert await watch.take(1) == [("ADDED", "c")]


async def test_resume(api: Api, namespace: str) -> None:
    """A watch from an event's version goes on after that event, without a gap or a repetition."""
    path = secrets(namespace)
    start = await version(api, path)
    for name in ("a", "b", "c"):
        await api.post(path, secret(name))
    async with api.watch(path, resourceVersion=start) as watch:
        first = await watch.next()
    async with api.watch(path, resourceVersion=first["object"]["metadata"]["resourceVersion"]) as watch:
        assert await watch.take(2) == [("ADDED", "b"), ("ADDED", "c")]


async def test_label_selector(api: Api, namespace: str) -> None:
    """An object that begins to match is added, one that stops matching is deleted, both for the watcher only."""
    path = secrets(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, labelSelector="on=yes") as watch:
        await api.post(path, secret("other"))
        await api.post(path, secret("a", on="no"))
        await api.merge(f"{path}/a", {"metadata": {"labels": {"on": "yes"}}})
        await api.merge(f"{path}/a", {"metadata": {"labels": {"more": "x"}}})
        await api.merge(f"{path}/a", {"metadata": {"labels": {"on": "no"}}})
        events = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    # The deletion shows the object as it was when it still matched, at the version of the change.
    assert events[2]["object"]["metadata"]["labels"] == {"on": "yes", "more": "x"}
    now = (await api.get(f"{path}/a")).ok()["metadata"]["resourceVersion"]
    assert events[2]["object"]["metadata"]["resourceVersion"] == now


async def test_field_selector(api: Api, namespace: str) -> None:
    """One object can be watched by its name."""
    path = secrets(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, fieldSelector="metadata.name=b") as watch:
        for name in ("a", "b"):
            await api.post(path, secret(name))
        assert await watch.take(1) == [("ADDED", "b")]


async def test_field_selector_on_change(api: Api, namespace: str) -> None:
    """A pod leaves a watch of unassigned pods when it is bound."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, fieldSelector="spec.nodeName=") as watch:
        await api.post(path, make.pod("a", namespace).build())
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
        (await api.post(f"{path}/a/binding", binding)).ok()
        events = await watch.take(2)
    assert events == [("ADDED", "a"), ("DELETED", "a")]


async def test_old_watch_path(api: Api, namespace: str) -> None:
    """The deprecated /watch/ paths work too."""
    path = secrets(namespace)
    start = await version(api, path)
    await api.post(path, secret("a"))
    async with api.watch(f"/api/v1/watch/namespaces/{namespace}/secrets", resourceVersion=start) as watch:
        assert await watch.take(1) == [("ADDED", "a")]


async def test_all_namespaces(api: Api, namespace: str) -> None:
    """A watch over all namespaces sees each."""
    start = await version(api, "/api/v1/secrets")
    async with api.watch("/api/v1/secrets", resourceVersion=start, labelSelector=f"only={namespace}") as watch:
        await api.post(secrets(namespace), secret("a", only=namespace))
        event = await watch.next()
    assert event["object"]["metadata"]["namespace"] == namespace


async def test_timeout(api: Api, namespace: str) -> None:
    """timeoutSeconds ends a watch from the server's side, quietly."""
    path = secrets(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start, timeoutSeconds=1) as watch:
        assert await watch.ended()


async def test_initial_events(api: Api, namespace: str) -> None:
    """A streaming list sends what is there, then a bookmark that says so, then changes."""
    path = secrets(namespace)
    made = [(await api.post(path, secret(name))).ok() for name in ("a", "b")]
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(path, **query) as watch:
        assert sorted(await watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        bookmark = await watch.next()
        await api.post(path, secret("c"))
        assert await watch.take(1) == [("ADDED", "c")]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "Secret"
    meta = bookmark["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(meta["resourceVersion"]) >= int(made[1]["metadata"]["resourceVersion"])


def ranges(namespace: str) -> str:
    """The one kind whose watches the real server answers from its store, not from a cache, in our tests."""
    return f"/api/v1/namespaces/{namespace}/limitranges"


async def test_too_old(api: Api, cluster: Cluster, namespace: str) -> None:
    """A watch from before the server's memory is told 410 Expired inside its stream."""
    path = ranges(namespace)
    start = await version(api, path)
    for name in ("a", "b"):
        (await api.post(path, {"metadata": {"name": name}, "spec": {"limits": []}})).ok()
    await cluster.forget()
    async with api.watch(path, resourceVersion=start) as watch:
        event = await watch.next()
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"] == "The resourceVersion for the provided watch is too old."


async def test_continue_too_old(api: Api, cluster: Cluster, namespace: str) -> None:
    """A page from before the server's memory is 410, with a token to go on at the newest version."""
    path = ranges(namespace)
    for name in ("a", "b", "c"):
        (await api.post(path, {"metadata": {"name": name}, "spec": {"limits": []}})).ok()
    token = (await api.get(path, limit=1)).ok()["metadata"]["continue"]
    (await api.delete(f"{path}/b")).ok()
    await cluster.forget()
    body = (await api.get(path, limit=1, **{"continue": token})).refused(410, "Expired")
    rest = (await api.get(path, **{"continue": body["metadata"]["continue"]})).ok()
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]


async def test_exact_too_old(api: Api, cluster: Cluster, namespace: str) -> None:
    """A list at an exact version from before the server's memory is 410."""
    path = ranges(namespace)
    start = await version(api, path)
    (await api.post(path, {"metadata": {"name": "a"}, "spec": {"limits": []}})).ok()
    await cluster.forget()
    answer = await api.get(path, resourceVersion=start, resourceVersionMatch="Exact", limit=5)
    answer.refused(410, "Expired", "The resourceVersion for the provided list is too old.")


async def test_watchers_see_one_order(api: Api, namespace: str) -> None:
    """All watchers see the same events in the same order."""
    path = secrets(namespace)
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start) as one, api.watch(path, resourceVersion=start) as two:
        await asyncio.gather(*(api.post(path, secret(f"s{number}")) for number in range(10)))
        assert await one.take(10) == await two.take(10)


async def test_deletion_of_collection(api: Api, namespace: str) -> None:
    """Deleting a collection is one deletion event per object."""
    path = secrets(namespace)
    for name in ("a", "b"):
        await api.post(path, secret(name))
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start) as watch:
        await api.delete(path)
        assert sorted(await watch.take(2)) == [("DELETED", "a"), ("DELETED", "b")]


async def test_no_event_without_change(api: Api, namespace: str) -> None:
    """A write that changes nothing is no event."""
    path = secrets(namespace)
    await api.post(path, secret("a", x="y"))
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start) as watch:
        (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})).ok()
        await api.post(path, secret("b"))
        assert await watch.take(1) == [("ADDED", "b")]


async def test_table_events(api: Api, namespace: str) -> None:
    """A watch can speak in table rows; only the first event carries the columns."""
    path = secrets(namespace)
    start = await version(api, path)
    table = api.with_headers(accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    async with table.watch(path, resourceVersion=start) as watch:
        for name in ("a", "b"):
            await api.post(path, secret(name))
        first, second = await watch.next(), await watch.next()
    assert (first["object"]["kind"], first["object"]["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Type", "Data", "Age"]
    assert first["object"]["rows"][0]["cells"][:3] == ["a", "Opaque", 0]
    assert not second["object"].get("columnDefinitions")


async def test_partial_events(api: Api, namespace: str) -> None:
    """A watch can speak of metadata only."""
    path = secrets(namespace)
    start = await version(api, path)
    partial = api.with_headers(accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    async with partial.watch(path, resourceVersion=start) as watch:
        await api.post(path, {**secret("a"), "stringData": {"k": "v"}})
        event = await watch.next()
    assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert "data" not in event["object"]


async def test_last_finalizer(api: Api, namespace: str) -> None:
    """An object that goes with its last finalizer is seen to go as it was kept, finalizer included."""
    path = secrets(namespace)
    wanted = secret("a")
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    (await api.post(path, wanted)).ok()
    (await api.delete(f"{path}/a")).ok()
    start = await version(api, path)
    async with api.watch(path, resourceVersion=start) as watch:
        answer = (await api.merge(f"{path}/a", {"metadata": {"finalizers": None}})).ok()
        event = await watch.next()
    assert "finalizers" not in answer["metadata"]
    assert (event["type"], event["object"]["metadata"]["finalizers"]) == ("DELETED", ["example.com/hold"])


async def test_initial_events_without_bookmarks(api: Api, namespace: str) -> None:
    """Who wants no bookmarks is not told where the initial events end."""
    path = secrets(namespace)
    await api.post(path, secret("a"))
    async with api.watch(path, sendInitialEvents="true", resourceVersionMatch="NotOlderThan") as watch:
        assert await watch.take(1) == [("ADDED", "a")]
        await api.post(path, secret("b"))
        assert await watch.take(1) == [("ADDED", "b")]

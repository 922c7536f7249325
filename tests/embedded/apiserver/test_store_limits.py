"""What the store keeps is bounded in bytes: history, one object, all objects, and what a slow watcher has not read."""

from __future__ import annotations

import gc
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.apiserver.store import store
from spinney.embedded.apiserver.store.store import Item, NotDurable, Store
from spinney.kube.chance import Chance
from spinney.kube.client.transport import InProcess, Request
from spinney.kube.clock import LoopClock
from tests import make
from tests.embedded.conftest import ADMIN, MAPS, MERGE, PODS, Asker

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LARGE = "x" * 900_000


async def small(space: int) -> Asker:
    """A cluster with little space."""
    made = ApiServer(LoopClock(datetime(2026, 1, 1, 12, tzinfo=UTC)), Chance(1), store=Store(space=space))
    await made.start()
    return Asker(made)


def kept_bytes() -> int:
    """What was allocated since tracing began, and is still there; tracing ends."""
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


async def test_updates_of_a_large_object_do_not_fill_the_memory(ask: Asker) -> None:
    """A thousand updates of 0.9 MB once left 1.9 GB; history has a limit in bytes, and beyond it a watch gets 410."""
    first = await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"k": LARGE}})
    for number in range(150):
        await ask("PATCH", f"{MAPS}/m", {"data": {"n": str(number)}}, kind=MERGE)
    table = ask.server.store.table("/configmaps")
    assert len({id(item): 0 for event in table.events for item in (event.new, event.old)}) < 80
    stream = await ask.watch(f"{MAPS}?resourceVersion={first['metadata']['resourceVersion']}")
    assert b'"code":410' in await anext(stream)
    last = (await ask("GET", f"{MAPS}/m"))["metadata"]["resourceVersion"]
    await ask("PATCH", f"{MAPS}/m", {"data": {"n": "last"}}, kind=MERGE)
    resumed = await ask.watch(f"{MAPS}?resourceVersion={last}")
    assert b'"n":"last"' in await anext(resumed)


async def test_updates_of_many_kinds_filled_the_memory(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind had 64 MB of history, and anybody may define kinds: all histories together have a limit, too."""
    monkeypatch.setattr(store, "MOST_HISTORY_BYTES", 8_000_000)
    for number in range(6):
        kind = make.crd("x.io", f"Kind{number}", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        await ask("POST", CRDS, kind)
        await ask.settle()
        path = f"/apis/x.io/v1/namespaces/default/kind{number}s"
        await ask("POST", path, {"apiVersion": "x.io/v1", "kind": f"Kind{number}", "metadata": {"name": "t"}})
        for turn in range(4):
            assert (await ask("PATCH", f"{path}/t", {"k": LARGE, "n": turn}, kind=MERGE)).status == 200
    tables = ask.server.store.tables.values()
    assert sum(table.event_bytes for table in tables) <= 8_000_000
    assert all(table.event_bytes >= 0 and (table.events or not table.event_bytes) for table in tables)


async def test_an_object_that_etcd_would_not_take(ask: Asker) -> None:
    """More than 1.5 MiB is refused with etcd's words, as on a real cluster."""
    await ask("POST", CRDS, make.crd("x.io", "Thing", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    body: dict[str, Any] = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "text": LARGE * 2}
    answer = await ask("POST", "/apis/x.io/v1/namespaces/default/things", body)
    assert (answer.status, answer.message) == (413, "etcdserver: request is too large")


async def test_objects_that_fill_the_space() -> None:
    """Above the quota nothing is created; what is there can be changed a little, and deleted to make room."""
    ask = await small(6_000_000)
    names = [f"m{number}" for number in range(8)]
    codes = [(await ask("POST", MAPS, {"metadata": {"name": name}, "data": {"k": LARGE}})).status for name in names]
    assert codes == sorted(codes)
    assert set(codes) == {201, 500}
    refused = await ask("POST", MAPS, {"metadata": {"name": "one-more"}, "data": {"k": LARGE}})
    assert refused.message == "etcdserver: mvcc: database space exceeded"
    assert (await ask("PATCH", f"{MAPS}/m0", {"data": {"small": "1"}}, kind=MERGE)).status == 200
    for name in names[:3]:
        await ask("DELETE", f"{MAPS}/{name}")
    assert (await ask("POST", MAPS, {"metadata": {"name": "one-more"}, "data": {"k": LARGE}})).status == 201


async def many_large(ask: Asker) -> None:
    """Ten megabytes of objects."""
    for number in range(12):
        await ask("POST", MAPS, {"metadata": {"name": f"m{number}"}, "data": {"k": LARGE}})


@pytest.mark.parametrize("form", ["", "Table", "PartialObjectMetadataList"])
async def test_lists_of_many_large_objects_filled_the_memory(ask: Asker, form: str) -> None:
    """Eight lists of 250 MB took 4 GB and 26 s of everybody: a large list is written in parts, as it is read."""
    await many_large(ask)
    accept = f"application/json;as={form};v=v1;g=meta.k8s.io" if form else "application/json"
    request = Request("GET", MAPS, (("includeObject", "Object"),), {"accept": accept}, b"", ask.user)
    tracemalloc.start()
    answers = [await ask.server.handle(request) for _ in range(8)]
    assert kept_bytes() < 1_000_000
    parts = [part async for part in answers[0].stream or ()]
    assert max(map(len, parts)) < 2_000_000
    listed = msgspec.json.decode(b"".join(parts))
    assert len(listed["rows" if form == "Table" else "items"]) == 12


async def test_who_is_in_this_process_gets_a_large_list_whole(ask: Asker) -> None:
    """Components know nothing of parts."""
    await many_large(ask)
    answer = await InProcess(ask.server, ADMIN).send(Request("GET", MAPS))
    assert len(msgspec.json.decode(answer.body)["items"]) == 12


async def test_watches_from_the_beginning_filled_the_memory(ask: Asker) -> None:
    """Each held a copy of all objects, or of all that it had missed, until somebody read it."""
    before = ask.server.store.version
    await many_large(ask)
    tracemalloc.start()
    watches = [await ask.watch(f"{MAPS}{query}") for query in ("", f"?resourceVersion={before}") for _ in range(10)]
    assert kept_bytes() < 1_000_000
    lines = b"".join([await anext(watches[0]) for _ in range(12)])
    assert lines.count(b'"ADDED"') == 12


async def test_a_watcher_that_does_not_read(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that is far behind in bytes is disconnected; it can resume or list again."""
    monkeypatch.setattr("spinney.embedded.apiserver.read.watch.BACKLOG_BYTES", 5_000_000)
    await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"k": LARGE}})
    stream = await ask.watch(MAPS)
    for number in range(20):
        await ask("PATCH", f"{MAPS}/m", {"data": {"n": str(number)}}, kind=MERGE)
    assert sum([len(chunk) async for chunk in stream]) < 10_000_000


class FullDisk:
    """A journal on a disk that has no room."""

    failing = False

    def append(self, table: str, item: Item, deleted: bool) -> None:
        """Take a write."""

    async def durable(self) -> None:
        """Fail as SQLite does."""
        raise NotDurable("database or disk is full")


async def test_a_full_disk_was_answered_without_a_status(server: ApiServer) -> None:
    """The client hears why, and when to try again; the server goes on."""
    server.store.journal = FullDisk()
    answer = await Asker(server)("POST", MAPS, {"metadata": {"name": "m"}})
    assert (answer.status, answer["reason"]) == (503, "ServiceUnavailable")
    assert "database or disk is full" in answer.message
    server.store.journal = None
    assert (await Asker(server)("GET", MAPS)).status == 200


async def test_long_names_that_were_refused_filled_the_memory(ask: Asker) -> None:
    """What was found out about a long text is not kept: 60 refused names of 1 MB each took 140 MB, for good."""

    async def refused(name: str) -> None:
        metadata = {"name": name, "labels": {name: name}, "annotations": {name: ""}}
        container = {"name": name, "image": name, "resources": {"requests": {name: "1"}}, "ports": [{"name": name}]}
        assert (await ask("POST", MAPS, {"metadata": metadata})).status == 422
        assert (await ask("POST", PODS, {"metadata": metadata, "spec": {"containers": [container]}})).status == 422

    await refused("X")
    tracemalloc.start()
    for number in range(12):
        await refused(f"{number}" + "x" * 300_000)
    assert kept_bytes() < 3_000_000


ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.mark.parametrize("member", ["resource", "namespace", "user", "groups"])
async def test_access_reviews_of_long_texts_filled_the_memory(ask: Asker, member: str) -> None:
    """What a user may do is remembered, but not for questions of a megabyte: 4,096 of them were kept."""
    tracemalloc.start()
    for number in range(20):
        text = f"{number}{LARGE}"
        spec = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods"}}
        if member in ("user", "groups"):
            spec[member] = text if member == "user" else [text]
        else:
            spec["resourceAttributes"] = {"verb": "get", "resource": "pods", member: text}
        assert (await ask("POST", ACCESS_REVIEWS, {"spec": spec})).status == 201
    assert kept_bytes() < 4_000_000


async def test_permissions_of_hundreds_of_bindings_are_not_remembered_for_each_question(ask: Asker) -> None:
    """Who may bind roles could let thousands of bindings be remembered for each of thousands of questions."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["one"]}
    await ask("POST", f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule] * 50})
    for number in range(40):
        await ask(
            "POST",
            f"{rbac}/rolebindings",
            {
                "metadata": {"name": f"b{number}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
            },
        )
    tracemalloc.start()
    for number in range(60):
        attributes = {"verb": "get", "resource": f"r{number}", "namespace": "default"}
        review = await ask("POST", ACCESS_REVIEWS, {"spec": {"user": "ann", "resourceAttributes": attributes}})
        assert review["status"] == {"allowed": False}
    assert kept_bytes() < 10_000_000


async def test_objects_of_thousands_of_names_filled_the_memory_after_their_deletion(ask: Asker) -> None:
    """Neither the owned fields of a map of 15,000 names nor a large pod spec are kept for the next one."""

    async def made(number: int) -> None:
        data = {f"{number}-{at}-name": "" for at in range(15_000)}
        environment = [{"name": f"E{at}", "value": f"{number}-{at}"} for at in range(9_000)]
        spec = {"containers": [{"name": "c", "image": "c", "env": environment}]}
        for path, body in ((MAPS, {"data": data}), (PODS, {"spec": spec})):
            assert (await ask("POST", f"{path}?dryRun=All", {"metadata": {"name": "n"}, **body})).status == 201

    await made(0)
    tracemalloc.start()
    for number in range(1, 8):
        await made(number)
    assert kept_bytes() < 10_000_000

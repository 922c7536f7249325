"""Races, strangers and odd objects that the verbs of the embedded API server once handled wrongly."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from spinney.kube.client.transport import Request
from tests.embedded.conftest import ADMIN, MAPS, MERGE, Asker


async def test_a_namespace_takes_along_what_only_speaks_of_deletion(ask: Asker) -> None:
    """A map with a key like the field of an object that is being deleted is not taken for one, and so does not stay."""
    await ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    maps = "/api/v1/namespaces/n/configmaps"
    await ask("POST", maps, {"metadata": {"name": "m"}, "data": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    again = await ask("POST", maps, {"metadata": {"name": "m"}})
    assert again.message == 'configmaps "m" already exists'
    await ask("DELETE", "/api/v1/namespaces/n")
    await ask.settle()
    assert (await ask("GET", "/api/v1/namespaces/n")).status == 404


def as_table(query: tuple[tuple[str, str], ...] = ()) -> Request:
    """A watch of ConfigMaps as a Table."""
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    return Request("GET", MAPS, (("watch", "true"), *query), accept, b"", ADMIN)


async def test_a_table_was_watched_whose_first_row_had_no_columns(ask: Asker) -> None:
    """The columns come with the first event, also where another one happens before anybody reads."""
    await ask("POST", MAPS, {"metadata": {"name": "first"}})
    stream = (await ask.server.handle(as_table())).stream
    assert stream is not None
    await ask("POST", MAPS, {"metadata": {"name": "second"}})
    chunk: bytes = await anext(stream)  # type: ignore[arg-type]  # a watch is its own iterator
    tables = [msgspec.json.decode(line)["object"] for line in chunk.splitlines()]
    assert [(table["rows"][0]["cells"][0], bool(table["columnDefinitions"])) for table in tables] == [
        ("first", True),
        ("second", False),
    ]


async def test_a_watch_as_a_table_of_a_form_that_does_not_exist_failed_the_writes_of_others(ask: Asker) -> None:
    """It is refused, as such a list is."""
    answer = await ask.server.handle(as_table((("includeObject", "Bogus"),)))
    assert answer.status == 400
    assert (await ask("POST", MAPS, {"metadata": {"name": "a"}})).status == 201


async def test_a_watcher_that_an_object_cannot_be_told_fails_no_write(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stream ends, and it can list again; whoever wrote is answered, and others are told."""
    broken, other = (await ask.server.handle(as_table())).stream, await ask.watch(MAPS)

    def fail(*_: object, **__: object) -> bytes:
        raise KeyError("spec")

    monkeypatch.setattr("spinney.embedded.apiserver.kubectl.table.of_item", fail)
    assert (await ask("POST", MAPS, {"metadata": {"name": "a"}})).status == 201
    assert [chunk async for chunk in broken or ()] == []
    assert b'"ADDED"' in await anext(other)


async def test_deleting_a_definition_of_a_built_in_kind_deleted_all_its_objects(ask: Asker) -> None:
    """A definition with the group and the plural of a built-in kind is not accepted, and goes alone."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    await ask("POST", roles, {"metadata": {"name": "reader"}, "rules": []})
    names = {"plural": "clusterroles", "kind": "ClusterRole"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    name = "clusterroles.rbac.authorization.k8s.io"
    definition = {
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "https://example.com"}},
        "spec": {
            "group": "rbac.authorization.k8s.io",
            "scope": "Cluster",
            "names": names,
            "versions": [{"name": "v9", "served": True, "storage": True, "schema": schema}],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = await ask("POST", definitions, definition)
    assert [(each["type"], each["status"]) for each in made["status"]["conditions"]] == [
        ("NamesAccepted", "False"),
        ("Established", "False"),
    ]
    assert (await ask("GET", "/apis/rbac.authorization.k8s.io/v9/clusterroles")).status == 404
    await ask("DELETE", f"{definitions}/{name}")
    await asyncio.sleep(0)
    assert (await ask("GET", f"{definitions}/{name}")).status == 404
    assert (await ask("GET", f"{roles}/reader")).status == 200


async def test_an_object_of_another_namespace_kept_its_owner_from_being_deleted(ask: Asker) -> None:
    """An owner in another namespace counts as missing, whoever's UID is named, and whatever is to be blocked."""
    await ask("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    owner = await ask("POST", MAPS, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    other_maps = MAPS.replace("default", "other")
    held = {
        "name": "held",
        "finalizers": ["a.example/x"],
        "ownerReferences": [{**reference, "blockOwnerDeletion": True}],
    }
    await ask("POST", other_maps, {"metadata": held})
    await ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
    await ask.settle()
    assert (await ask("GET", f"{MAPS}/owner")).status == 404
    assert "deletionTimestamp" in (await ask("GET", f"{other_maps}/held"))["metadata"]


async def test_a_patch_met_a_conflict_with_a_version_that_it_did_not_name(ask: Asker) -> None:
    """Somebody writes the object while webhooks are asked: the patch is applied again, to what is there then."""
    asked = 0

    async def review(body: bytes) -> bytes:
        nonlocal asked
        asked += 1
        if asked == 1:
            await ask("PATCH", f"{MAPS}/m", {"metadata": {"labels": {"theirs": "1"}}}, kind=MERGE)
        uid = msgspec.json.decode(body)["request"]["uid"]
        answer = {"response": {"uid": uid, "allowed": True}}
        return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", **answer})

    ask.server.admission.resolve = lambda client: review
    await ask("POST", MAPS, {"metadata": {"name": "m"}})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["UPDATE"]}
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com/review"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    await ask("POST", hooks, {"metadata": {"name": "a"}, "webhooks": [hook]})
    answer = await ask("PATCH", f"{MAPS}/m", {"metadata": {"labels": {"ours": "1"}}}, kind=MERGE)
    assert (answer.status, answer["metadata"]["labels"]) == (200, {"ours": "1", "theirs": "1"})

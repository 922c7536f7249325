"""The life of one object: creation, names, versions, generation, reading and replacing it."""

from __future__ import annotations

import re

import pytest

from tests import make
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api


async def test_create(api: Api, namespace: str) -> None:
    """A created object comes back with identity, version and time; 201."""
    answer = await api.post(maps(namespace), make.config_map("a", key="value"))
    assert answer.code == 201
    assert answer.headers["content-type"] == "application/json"
    body = answer.ok()
    assert (body["kind"], body["apiVersion"], body["data"]) == ("ConfigMap", "v1", {"key": "value"})
    meta = body["metadata"]
    assert (meta["name"], meta["namespace"]) == ("a", namespace)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d+", meta["resourceVersion"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert "generation" not in meta
    assert "selfLink" not in meta


async def test_create_again(api: Api, namespace: str) -> None:
    """A taken name is 409 AlreadyExists."""
    await api.post(maps(namespace), make.config_map("a"))
    body = (await api.post(maps(namespace), make.config_map("a"))).refused(
        409, "AlreadyExists", 'configmaps "a" already exists'
    )
    assert body["details"] == {"name": "a", "kind": "configmaps"}


async def test_create_sets_server_fields(api: Api, namespace: str) -> None:
    """What only the server may set is overwritten on creation."""
    wanted = make.config_map("a")
    wanted["metadata"] |= {"uid": "11111111-2222-4333-8444-555555555555", "creationTimestamp": "2001-01-01T00:00:00Z"}
    meta = (await api.post(maps(namespace), wanted)).ok()["metadata"]
    assert meta["uid"] != "11111111-2222-4333-8444-555555555555"
    assert meta["creationTimestamp"] != "2001-01-01T00:00:00Z"


async def test_a_line_break_ends_no_name(api: Api, namespace: str) -> None:
    """Names, labels and keys that end in a line break are refused like those that have one in the middle."""
    wanted = make.config_map("a\n")
    wanted["metadata"]["labels"] = {"tier\n": "front\n"}
    wanted["data"] = {"key\n": "value"}
    refused = (await api.post(maps(namespace), wanted)).refused(422, "Invalid")
    causes = {(cause["field"], cause["reason"]) for cause in refused["details"]["causes"]}
    assert causes == {
        ("metadata.name", "FieldValueInvalid"),
        ("metadata.labels", "FieldValueInvalid"),
        ("data[key\n]", "FieldValueInvalid"),
    }


async def test_kind_may_be_missing(api: Api, namespace: str) -> None:
    """On a typed path, kind and apiVersion may be left out."""
    body = (await api.post(maps(namespace), {"metadata": {"name": "a"}})).ok()
    assert (body["kind"], body["apiVersion"]) == ("ConfigMap", "v1")


async def test_causes(api: Api, namespace: str) -> None:
    """An invalid object says each field with its reason."""
    wanted = make.config_map("a")
    wanted["metadata"]["labels"] = {"bad key!": "x", "good": "bad value!"}
    body = (await api.post(maps(namespace), wanted)).refused(422, "Invalid")
    details = body["details"]
    assert (details["name"], details["kind"]) == ("a", "ConfigMap")
    assert [(cause["reason"], cause["field"]) for cause in details["causes"]] == [
        ("FieldValueInvalid", "metadata.labels"),
        ("FieldValueInvalid", "metadata.labels"),
    ]
    # Kubernetes walks the labels in no order of its own.
    messages = sorted(cause["message"] for cause in details["causes"])
    assert "name part must consist of alphanumeric characters" in messages[0]
    assert "a valid label must be an empty string or consist of alphanumeric characters" in messages[1]


async def test_generate_name(api: Api, namespace: str) -> None:
    """generateName gets five characters appended; the result differs each time."""
    names = set()
    for _ in range(3):
        wanted = {"metadata": {"generateName": "gen-"}}
        body = (await api.post(maps(namespace), wanted)).ok()
        assert re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", body["metadata"]["name"])
        assert body["metadata"]["generateName"] == "gen-"
        names.add(body["metadata"]["name"])
    assert len(names) == 3


async def test_generate_name_too_long(api: Api, namespace: str) -> None:
    """A long generateName is cut so that the name fits into 63 characters."""
    body = (await api.post(maps(namespace), {"metadata": {"generateName": "x" * 80}})).ok()
    assert len(body["metadata"]["name"]) == 63


async def test_name_wins_over_generate_name(api: Api, namespace: str) -> None:
    """With both, the name is taken as it is."""
    body = (await api.post(maps(namespace), {"metadata": {"name": "a", "generateName": "gen-"}})).ok()
    assert body["metadata"]["name"] == "a"


async def test_get_missing(api: Api, namespace: str) -> None:
    """A missing object is 404 with its name and kind in the details."""
    body = (await api.get(f"{maps(namespace)}/a")).refused(404, "NotFound", 'configmaps "a" not found')
    assert body["details"] == {"name": "a", "kind": "configmaps"}
    assert body["metadata"] == {}


async def test_list(api: Api, namespace: str) -> None:
    """A list has its own kind and version; its items come in order of name and without kind."""
    for name in ("b", "a", "c"):
        await api.post(maps(namespace), make.config_map(name))
    body = (await api.get(maps(namespace), labelSelector="", fieldSelector="metadata.name!=kube-root-ca.crt")).ok()
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert [item["metadata"]["name"] for item in body["items"]] == ["a", "b", "c"]
    assert "kind" not in body["items"][0]
    assert "apiVersion" not in body["items"][0]


async def test_empty_list(api: Api, namespace: str) -> None:
    """A list of nothing has an empty list of items."""
    assert (await api.get(f"/api/v1/namespaces/{namespace}/pods")).ok()["items"] == []


async def test_list_in_missing_namespace(api: Api) -> None:
    """Listing in a namespace that is not there is an empty list, not an error."""
    assert (await api.get("/api/v1/namespaces/no-such-namespace/pods")).ok()["items"] == []


async def test_list_of_all_namespaces(api: Api, namespace: str) -> None:
    """Without a namespace, objects of all namespaces are listed."""
    await api.post(maps(namespace), make.config_map("everywhere"))
    body = (await api.get("/api/v1/configmaps", fieldSelector="metadata.name=everywhere")).ok()
    assert namespace in [item["metadata"]["namespace"] for item in body["items"]]


async def test_update(api: Api, namespace: str) -> None:
    """PUT replaces the object; the version moves on and the identity stays."""
    first = (await api.post(maps(namespace), make.config_map("a", one="1", two="2"))).ok()
    second = (await api.put(f"{maps(namespace)}/a", make.config_map("a", two="3"))).ok()
    assert second["data"] == {"two": "3"}
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]


async def test_update_without_change(api: Api, namespace: str) -> None:
    """A write that changes nothing keeps the version."""
    first = (await api.post(maps(namespace), make.config_map("a", one="1"))).ok()
    assert (await api.put(f"{maps(namespace)}/a", first)).ok()["metadata"]["resourceVersion"] == first["metadata"][
        "resourceVersion"
    ]


async def test_conflict(api: Api, namespace: str) -> None:
    """A write on an old version is 409 Conflict."""
    first = (await api.post(maps(namespace), make.config_map("a", one="1"))).ok()
    await api.merge(f"{maps(namespace)}/a", {"data": {"one": "2"}})
    first["data"]["one"] = "3"
    body = (await api.put(f"{maps(namespace)}/a", first)).refused(
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )
    assert body["details"] == {"name": "a", "kind": "configmaps"}


async def test_generation(api: Api, namespace: str) -> None:
    """Generation counts changes of the spec, not of metadata."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    assert (await api.post(path, {"metadata": {"name": "a"}, "spec": spec})).ok()["metadata"]["generation"] == 1
    labelled = (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})).ok()
    assert labelled["metadata"]["generation"] == 1
    paused = (await api.merge(f"{path}/a", {"spec": {"paused": True}})).ok()
    assert paused["metadata"]["generation"] == 2


async def test_null_metadata(api: Api, namespace: str) -> None:
    """Creation timestamps written as null, as typed clients do, are accepted."""
    wanted = {"metadata": {"name": "a", "creationTimestamp": None}, "data": {"k": "v"}}
    assert (await api.post(maps(namespace), wanted)).code == 201


async def test_managed_fields(api: Api, namespace: str) -> None:
    """Every write records who set which fields."""
    body = (await api.post(maps(namespace), make.config_map("a", k="v"), fieldManager="tester")).ok()
    (entry,) = body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("tester", "Update", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["time"])


async def test_default_field_manager(api: Api, namespace: str) -> None:
    """Without a field manager, the user agent's first word is it."""
    body = (
        await api.with_headers(user_agent="probe/1.0 (test)").post(maps(namespace), make.config_map("a", k="v"))
    ).ok()
    assert body["metadata"]["managedFields"][0]["manager"] == "probe"


async def test_head_of_secrets(api: Api, namespace: str) -> None:
    """A Secret's stringData is folded into data and never comes back."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    body = (await api.post(path, {"metadata": {"name": "a"}, "stringData": {"k": "v"}})).ok()
    assert (body["data"], body["type"]) == ({"k": "dg=="}, "Opaque")
    assert "stringData" not in body


@pytest.mark.parametrize(("method", "path"), [("POST", "/a"), ("PUT", ""), ("PATCH", "")])
async def test_method_not_allowed(api: Api, namespace: str, method: str, path: str) -> None:
    """A verb that a path does not have is 405, without a word on the kind."""
    answer = await api.call(method, maps(namespace) + path, {}, "application/merge-patch+json")
    body = answer.refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    assert body["details"] == {}

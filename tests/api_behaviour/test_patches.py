"""The three patches that change an object in place."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.deployments import deployment, deployments
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import MERGE, Api, Json

MERGES = {
    "adds": ({"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    "replaces": ({"data": {"a": "9"}}, {"a": "9"}),
    "removes": ({"data": {"a": None}}, None),
    "removes-what-is-not-there": ({"data": {"x": None}}, {"a": "1"}),
    "removes-all": ({"data": None}, None),
    "nothing": ({}, {"a": "1"}),
}


@pytest.mark.parametrize("case", MERGES)
async def test_merge(api: Api, namespace: str, case: str) -> None:
    """A merge patch adds, replaces and, by null, removes members."""
    patch, data = MERGES[case]
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("m", a="1"))
    assert (await api.merge(f"{path}/m", patch)).ok().get("data") == data


async def test_merge_refuses_a_kind_that_is_no_text(api: Api, namespace: str) -> None:
    """A kind that is an object was answered with an internal error."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("m", a="1"))
    assert (await api.merge(f"{path}/m", {"kind": {"a": "ConfigMap"}})).code in (400, 422)


async def test_merge_replaces_lists(api: Api, namespace: str) -> None:
    """To a merge patch a list is one value."""
    await api.post(deployments(namespace), deployment())
    containers = [{"name": "three", "image": "third"}]
    body = (
        await api.merge(f"{deployments(namespace)}/a", {"spec": {"template": {"spec": {"containers": containers}}}})
    ).ok()
    assert [each["name"] for each in body["spec"]["template"]["spec"]["containers"]] == ["three"]


JSON_PATCHES: dict[str, tuple[list[Json], Json]] = {
    "add": ([{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
    "replace": ([{"op": "replace", "path": "/data/a", "value": "2"}], {"a": "2"}),
    "move": ([{"op": "move", "from": "/data/a", "path": "/data/b"}], {"b": "1"}),
    "copy": ([{"op": "copy", "from": "/data/a", "path": "/data/b"}], {"a": "1", "b": "1"}),
    "test": (
        [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}],
        {"a": "1", "b": "2"},
    ),
    "escape": (
        [
            {"op": "add", "path": "/metadata/labels", "value": {"x.y/z": "1"}},
            {"op": "replace", "path": "/metadata/labels/x.y~1z", "value": "2"},
        ],
        {"a": "1"},
    ),
    "in-order": (
        [{"op": "add", "path": "/data/b", "value": "2"}, {"op": "replace", "path": "/data/b", "value": "3"}],
        {"a": "1", "b": "3"},
    ),
}


@pytest.mark.parametrize("case", JSON_PATCHES)
async def test_json_patch(api: Api, namespace: str, case: str) -> None:
    """A JSON patch does its operations in order."""
    operations, data = JSON_PATCHES[case]
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("m", a="1"))
    body = (await api.json_patch(f"{path}/m", *operations)).ok()
    assert body["data"] == data
    if case == "escape":
        assert body["metadata"]["labels"] == {"x.y/z": "2"}


async def test_json_patch_of_lists(api: Api, namespace: str) -> None:
    """List elements are named by position; `-` is behind the last."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    wanted = make.config_map("m")
    wanted["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    await api.post(path, wanted)
    body = (
        await api.json_patch(
            f"{path}/m",
            {"op": "remove", "path": "/metadata/finalizers/0"},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"},
            {"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/d"},
        )
    ).ok()
    assert body["metadata"]["finalizers"] == ["example.com/d", "example.com/b", "example.com/c"]


STRATEGIC: dict[str, tuple[list[Json] | Json, list[tuple[str, str]]]] = {
    "changes-by-key": ([{"name": "two", "image": "new"}], [("one", "first"), ("two", "new")]),
    "adds-by-key": ([{"name": "zero", "image": "new"}], [("zero", "new"), ("one", "first"), ("two", "second")]),
    "deletes-by-key": ([{"name": "one", "$patch": "delete"}], [("two", "second")]),
    "replaces-list": ([{"$patch": "replace"}, {"name": "x", "image": "y"}], [("x", "y")]),
}


@pytest.mark.parametrize("case", STRATEGIC)
async def test_strategic_lists(api: Api, namespace: str, case: str) -> None:
    """A strategic patch merges lists by their key, and takes directives."""
    patch, expected = STRATEGIC[case]
    await api.post(deployments(namespace), deployment())
    answer = await api.strategic(f"{deployments(namespace)}/a", {"spec": {"template": {"spec": {"containers": patch}}}})
    containers = answer.ok()["spec"]["template"]["spec"]["containers"]
    assert [(each["name"], each["image"]) for each in containers] == expected


async def test_strategic_nested(api: Api, namespace: str) -> None:
    """Merging by key goes down into lists of lists."""
    await api.post(deployments(namespace), deployment())
    patch = [{"name": "one", "env": [{"name": "B", "value": "2"}]}]
    answer = await api.strategic(f"{deployments(namespace)}/a", {"spec": {"template": {"spec": {"containers": patch}}}})
    env = answer.ok()["spec"]["template"]["spec"]["containers"][0]["env"]
    assert sorted(each["name"] for each in env) == ["A", "B"]


async def test_strategic_order(api: Api, namespace: str) -> None:
    """$setElementOrder puts a merged list into order."""
    await api.post(deployments(namespace), deployment())
    patch = {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}], "containers": []}
    answer = await api.strategic(f"{deployments(namespace)}/a", {"spec": {"template": {"spec": patch}}})
    assert [each["name"] for each in answer.ok()["spec"]["template"]["spec"]["containers"]] == ["two", "one"]


async def test_strategic_primitive_list(api: Api, namespace: str) -> None:
    """A list of plain values with a merge strategy is a set; values are removed by $deleteFromPrimitiveList."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    wanted = make.config_map("m")
    wanted["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    await api.post(path, wanted)
    added = (await api.strategic(f"{path}/m", {"metadata": {"finalizers": ["example.com/c"]}})).ok()
    assert sorted(added["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    left = (await api.strategic(f"{path}/m", patch)).ok()
    assert sorted(left["metadata"]["finalizers"]) == ["example.com/b", "example.com/c"]


async def test_strategic_replace_map(api: Api, namespace: str) -> None:
    """$patch: replace takes the map as it is."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("m", a="1", b="2"))
    body = (await api.strategic(f"{path}/m", {"data": {"$patch": "replace", "c": "3"}})).ok()
    assert body["data"] == {"c": "3"}


async def test_strategic_retain_keys(api: Api, namespace: str) -> None:
    """$retainKeys drops the members it does not name: how a strategy is changed."""
    await api.post(deployments(namespace), deployment())
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    body = (await api.strategic(f"{deployments(namespace)}/a", patch)).ok()
    assert body["spec"]["strategy"] == {"type": "Recreate"}


async def test_strategic_null(api: Api, namespace: str) -> None:
    """A null removes a member here as well."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("m", a="1", b="2"))
    assert (await api.strategic(f"{path}/m", {"data": {"a": None}})).ok()["data"] == {"b": "2"}


async def test_gates_by_patch(api: Api, namespace: str) -> None:
    """A gate is taken off by key, and others stay."""
    await api.post(pods(namespace), make.pod("a", namespace).gate("x.example/one").gate("x.example/two").build())
    patch = {"spec": {"schedulingGates": [{"name": "x.example/one", "$patch": "delete"}]}}
    body = (await api.strategic(f"{pods(namespace)}/a", patch)).ok()
    assert body["spec"]["schedulingGates"] == [{"name": "x.example/two"}]
    last = (await api.merge(f"{pods(namespace)}/a", {"spec": {"schedulingGates": None}})).ok()
    assert "schedulingGates" not in last["spec"]


async def test_patch_version_precondition(api: Api, namespace: str) -> None:
    """A version in a patch that is current lets it through."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = (await api.post(path, make.config_map("m", a="1"))).ok()
    version = made["metadata"]["resourceVersion"]
    assert (await api.merge(f"{path}/m", {"metadata": {"resourceVersion": version}, "data": {"a": "2"}})).code == 200
    assert (await api.merge(f"{path}/m", {"metadata": {"resourceVersion": version}, "data": {"a": "3"}})).code == 409


async def test_yaml_bodies(api: Api, namespace: str) -> None:
    """Objects may be sent and asked for as YAML."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    text = b"metadata:\n  name: yam\ndata:\n  k: v\n"
    assert (await api.call("POST", path, text, "application/yaml")).ok()["data"] == {"k": "v"}
    answer = await api.with_headers(accept="application/yaml").get(f"{path}/yam")
    assert answer.headers["content-type"] == "application/yaml"
    assert answer.raw.startswith(b"apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")


async def test_json_patch_of_what_is_not_there(api: Api, namespace: str) -> None:
    """Replacing a member that is not there adds it; copying one makes an empty value."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await api.post(path, make.config_map("m", a="1"))
    replaced = await api.json_patch(f"{path}/m", {"op": "replace", "path": "/data/b", "value": "2"}, dryRun="All")
    assert replaced.ok()["data"] == {"a": "1", "b": "2"}
    copied = await api.json_patch(f"{path}/m", {"op": "copy", "from": "/data/x", "path": "/data/b"}, dryRun="All")
    assert copied.ok()["data"] == {"a": "1", "b": ""}


async def test_what_patches_say_and_nobody_knows(api: Api, namespace: str) -> None:
    """A member that operations lack, a directive that is none and a repeated field are told, and the rest is done."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, {"metadata": {"name": "a"}, "data": {"k": "v"}})).ok()
    operation = {"op": "add", "path": "/data/x", "value": "1", "extra": 2}
    answer = await api.json_patch(f"{path}/a", operation)
    assert (answer.ok()["data"], answer.warnings) == (
        {"k": "v", "x": "1"},
        '299 - "json patch unknown field \\"[0].extra\\""',
    )
    answer = await api.strategic(f"{path}/a", {"data": {"y": "2"}, "$foo": 1})
    assert (answer.ok()["data"]["y"], answer.warnings) == ("2", '299 - "unknown field \\"$foo\\""')
    answer = await api.call("PATCH", f"{path}/a", b'{"data":{"z":"3"},"data":{"z":"4"}}', MERGE)
    assert (answer.ok()["data"]["z"], answer.warnings) == ("4", '299 - "duplicate field \\"data\\""')


async def test_json_patch_begins_at_the_first_slash(api: Api, namespace: str) -> None:
    """What stands before it is nothing."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, {"metadata": {"name": "a"}})).ok()
    answer = await api.json_patch(f"{path}/a", {"op": "add", "path": "nothing/data", "value": {"k": "v"}})
    assert answer.ok()["data"] == {"k": "v"}


async def test_strategic_lists_that_are_not_there(api: Api, namespace: str) -> None:
    """The patch's elements are taken as they are, without those that say what to delete."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    (await api.post(path, {"metadata": {"name": "d"}, "spec": spec})).ok()
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "$patch": "delete"}]
    answer = await api.strategic(f"{path}/d", {"spec": {"template": {"spec": {"volumes": volumes}}}}, dryRun="All")
    assert answer.ok()["spec"]["template"]["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]

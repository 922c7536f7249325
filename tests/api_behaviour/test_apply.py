"""Server-side apply: ownership of fields, conflicts, and what is removed when an applier drops it."""

from __future__ import annotations

import json
from typing import Any

from tests import make
from tests.api_behaviour.deployments import deployment, deployments
from tests.api_behaviour.wire import Api, Json


def path(namespace: str) -> str:
    """One ConfigMap."""
    return f"/api/v1/namespaces/{namespace}/configmaps/a"


def wanted(**data: str) -> Json:
    """The ConfigMap with data."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def managers(body: Json) -> dict[tuple[str, str], Any]:
    """Fields by manager and operation."""
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in body["metadata"]["managedFields"]}


async def test_creates(api: Api, namespace: str) -> None:
    """Applying what is not there creates it: 201, owned by the applier."""
    answer = await api.apply(path(namespace), wanted(k="v"), "one")
    assert answer.code == 201
    assert managers(answer.ok()) == {("one", "Apply"): {"f:data": {"f:k": {}}}}


async def test_again(api: Api, namespace: str) -> None:
    """Applying the same again is 200 and changes nothing."""
    first = (await api.apply(path(namespace), wanted(k="v"), "one")).ok()
    answer = await api.apply(path(namespace), wanted(k="v"), "one")
    assert answer.code == 200
    assert answer.ok()["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_removes_what_it_drops(api: Api, namespace: str) -> None:
    """A field that its only owner no longer applies is removed."""
    await api.apply(path(namespace), wanted(a="1", b="2"), "one")
    assert (await api.apply(path(namespace), wanted(b="2"), "one")).ok()["data"] == {"b": "2"}


async def test_keeps_what_others_own(api: Api, namespace: str) -> None:
    """A field that another also applies stays when one drops it."""
    await api.apply(path(namespace), wanted(a="1", b="2"), "one")
    shared = (await api.apply(path(namespace), wanted(b="2"), "two")).ok()
    assert managers(shared) == {
        ("one", "Apply"): {"f:data": {"f:a": {}, "f:b": {}}},
        ("two", "Apply"): {"f:data": {"f:b": {}}},
    }
    assert (await api.apply(path(namespace), wanted(a="1"), "one")).ok()["data"] == {"a": "1", "b": "2"}


async def test_conflict(api: Api, namespace: str) -> None:
    """Another's field with another value is a conflict that names field and manager."""
    await api.apply(path(namespace), wanted(a="1"), "one")
    body = (await api.apply(path(namespace), wanted(a="2"), "two")).refused(
        409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .data.a'
    )
    assert body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]


async def test_conflict_with_update(api: Api, namespace: str) -> None:
    """A conflict with an updater says so, with the version it used."""
    await api.post(f"/api/v1/namespaces/{namespace}/configmaps", make.config_map("a", k="v"), fieldManager="ed")
    body = (await api.apply(path(namespace), wanted(k="w"), "two")).refused(409, "Conflict")
    assert body["details"]["causes"][0]["message"] == 'conflict with "ed" using v1'


async def test_force(api: Api, namespace: str) -> None:
    """Force takes the field over from its owner."""
    await api.apply(path(namespace), wanted(a="1", b="1"), "one")
    body = (await api.apply(path(namespace), wanted(a="2"), "two", force="true")).ok()
    assert body["data"] == {"a": "2", "b": "1"}
    assert managers(body) == {("one", "Apply"): {"f:data": {"f:b": {}}}, ("two", "Apply"): {"f:data": {"f:a": {}}}}


async def test_same_value_is_no_conflict(api: Api, namespace: str) -> None:
    """Agreeing on a value is shared ownership; whoever changes nothing has no time, and so comes first."""
    await api.apply(path(namespace), wanted(a="1"), "one")
    body = (await api.apply(path(namespace), wanted(a="1"), "two")).ok()
    assert [(e["manager"], "time" in e) for e in body["metadata"]["managedFields"]] == [("two", False), ("one", True)]


async def test_update_takes_ownership(api: Api, namespace: str) -> None:
    """A plain update of a field takes it away from its applier."""
    await api.apply(path(namespace), wanted(a="1", b="1"), "one")
    body = (await api.merge(path(namespace), {"data": {"a": "2"}}, fieldManager="ed")).ok()
    assert managers(body) == {("one", "Apply"): {"f:data": {"f:b": {}}}, ("ed", "Update"): {"f:data": {"f:a": {}}}}


async def test_apply_after_update_conflicts(api: Api, namespace: str) -> None:
    """The applier then conflicts with the updater."""
    await api.apply(path(namespace), wanted(a="1"), "one")
    await api.merge(path(namespace), {"data": {"a": "2"}}, fieldManager="ed")
    (await api.apply(path(namespace), wanted(a="1"), "one")).refused(
        409, "Conflict", 'Apply failed with 1 conflict: conflict with "ed" using v1: .data.a'
    )


async def test_list_by_key(api: Api, namespace: str) -> None:
    """Elements of a keyed list are owned one by one."""
    full = deployment()
    (await api.apply(f"{deployments(namespace)}/a", full, "one")).ok()
    extra = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "car"}]}}},
    }
    body = (await api.apply(f"{deployments(namespace)}/a", extra, "two")).ok()
    assert [each["name"] for each in body["spec"]["template"]["spec"]["containers"]] == ["one", "two", "side"]
    fields = managers(body)["two", "Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert fields == {'k:{"name":"side"}': {".": {}, "f:image": {}, "f:name": {}}}
    del full["spec"]["template"]["spec"]["containers"][1]
    left = (await api.apply(f"{deployments(namespace)}/a", full, "one")).ok()
    assert [each["name"] for each in left["spec"]["template"]["spec"]["containers"]] == ["one", "side"]


async def test_scalar_set(api: Api, namespace: str) -> None:
    """Finalizers are a set: two appliers' values are united."""
    for manager in ("one", "two"):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "finalizers": [f"example.com/{manager}"]},
        }
        (await api.apply(path(namespace), body, manager)).ok()
    live = (await api.get(path(namespace))).ok()
    assert sorted(live["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]
    assert managers(live)["two", "Apply"]["f:metadata"]["f:finalizers"] == {'v:"example.com/two"': {}}


async def test_owner_references_by_uid(api: Api, namespace: str) -> None:
    """Owner references are keyed by UID."""
    body = wanted(k="v")
    body["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-1"}]
    fields = managers((await api.apply(path(namespace), body, "one", dryRun="All")).ok())["one", "Apply"]
    assert fields["f:metadata"] == {"f:ownerReferences": {'k:{"uid":"u-1"}': {}}}


async def test_status_is_apart(api: Api, namespace: str) -> None:
    """A status is applied through its subresource and recorded as such."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(pods, make.pod("a", namespace).build())
    status = {"conditions": [{"type": "example.com/Fine", "status": "True"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": status}
    live = (await api.apply(f"{pods}/a/status", body, "one")).ok()
    (entry,) = [each for each in live["metadata"]["managedFields"] if each["manager"] == "one"]
    assert (entry["subresource"], entry["operation"]) == ("status", "Apply")
    keyed = entry["fieldsV1"]["f:status"]["f:conditions"]
    assert keyed == {'k:{"type":"example.com/Fine"}': {".": {}, "f:status": {}, "f:type": {}}}


async def test_clear_managed_fields(api: Api, namespace: str) -> None:
    """Setting managed fields to one empty entry clears them."""
    await api.apply(path(namespace), wanted(a="1"), "one")
    body = (await api.merge(path(namespace), {"metadata": {"managedFields": [{}]}})).ok()
    assert not body["metadata"].get("managedFields")


async def test_before_first_apply(api: Api, namespace: str) -> None:
    """Fields that were set without managers belong to before-first-apply."""
    await api.apply(path(namespace), wanted(a="1"), "one")
    await api.merge(path(namespace), {"metadata": {"managedFields": [{}]}})
    body = (await api.apply(path(namespace), wanted(b="1"), "two")).ok()
    assert managers(body)["before-first-apply", "Update"] == {"f:data": {".": {}, "f:a": {}}}


async def test_two_updaters(api: Api, namespace: str) -> None:
    """Updates record what each changed; one manager and version is one entry."""
    await api.post(f"/api/v1/namespaces/{namespace}/configmaps", make.config_map("a", k="v"), fieldManager="ed")
    await api.merge(path(namespace), {"data": {"j": "1"}}, fieldManager="al")
    body = (await api.merge(path(namespace), {"data": {"i": "1"}}, fieldManager="al")).ok()
    assert managers(body) == {
        ("ed", "Update"): {"f:data": {".": {}, "f:k": {}}},
        ("al", "Update"): {"f:data": {"f:i": {}, "f:j": {}}},
    }


async def test_apply_yaml(api: Api, namespace: str) -> None:
    """An applied object may be YAML."""
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
    assert (await api.apply(path(namespace), text, "one")).ok()["data"] == {"k": "v"}


async def test_generated_defaults_have_no_owner(api: Api, namespace: str) -> None:
    """What the server fills in on apply belongs to nobody."""
    body = (await api.apply(f"{deployments(namespace)}/a", deployment(), "one")).ok()
    assert body["spec"]["strategy"]["type"] == "RollingUpdate"
    assert "f:strategy" not in managers(body)["one", "Apply"]["f:spec"]


async def test_last_applied_annotation(api: Api, namespace: str) -> None:
    """When kubectl moves from client-side to server-side apply, its own earlier fields are no conflict."""
    first = wanted(k="v")
    first["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(wanted(k="v"))}
    await api.post(f"/api/v1/namespaces/{namespace}/configmaps", first, fieldManager="kubectl-client-side-apply")
    assert (await api.apply(path(namespace), wanted(k="w"), "kubectl")).code == 200


async def test_untracked(api: Api, namespace: str) -> None:
    """An object whose fields nobody owns is not tracked until somebody applies it."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert "managedFields" not in (await api.post(accounts, {"metadata": {"name": "a"}})).ok()["metadata"]
    labelled = (await api.merge(f"{accounts}/a", {"metadata": {"labels": {"x": "y"}}}, fieldManager="ed")).ok()
    assert "managedFields" not in labelled["metadata"]
    applied = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "labels": {"z": "1"}}}
    body = (await api.apply(f"{accounts}/a", applied, "one")).ok()
    assert set(managers(body)) == {("before-first-apply", "Update"), ("one", "Apply")}


async def test_who_scaled(api: Api, namespace: str) -> None:
    """Whoever scales owns the replicas through the scale, and kubectl's own past does not make up for it."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    body = deployment(paused=True)
    body["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 0}}
        )
    }
    (await api.post(path, body, fieldManager="first")).ok()
    (await api.merge(f"{path}/a/scale", {"spec": {"replicas": 1}}, fieldManager="kubectl")).ok()
    entries = (await api.get(f"{path}/a")).ok()["metadata"]["managedFields"]
    (scaled,) = [entry for entry in entries if entry.get("subresource") == "scale"]
    assert (scaled["manager"], scaled["operation"], "time" in scaled) == ("kubectl", "Update", False)
    assert entries[0] == scaled
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
    refused = (await api.apply(f"{path}/a", applied, "kubectl")).refused(409, "Conflict")
    why = 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas'
    assert refused["message"] == f"Apply failed with 1 conflict: {why}"

"""Label and field selectors, and lists in pages."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.wire import Api


async def fill(api: Api, namespace: str) -> str:
    """Four ConfigMaps with labels; the path of their collection."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name, labels in {
        "a": {"set": "s", "tier": "web"},
        "b": {"set": "s", "tier": "db"},
        "c": {"set": "s"},
        "d": {"set": "s", "tier": ""},
    }.items():
        wanted = make.config_map(name)
        wanted["metadata"]["labels"] = labels
        (await api.post(path, wanted)).ok()
    return path


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("set=s", "abcd"),
        ("set==s,tier=web", "a"),
        ("set,tier!=web", "bcd"),
        ("set,tier", "abd"),
        ("set,!tier", "c"),
        ("set, tier in (web, db)", "ab"),
        ("set,tier notin (web,db)", "cd"),
        ("tier in (),set", "d"),
        ("tier=,set", "d"),
        ("set=none", ""),
        ("set,tier in (web),tier notin (db)", "a"),
    ],
)
async def test_labels(api: Api, namespace: str, selector: str, names: str) -> None:
    """Label selectors by equality, set and existence; all requirements have to hold."""
    path = await fill(api, namespace)
    body = (await api.get(path, labelSelector=selector)).ok()
    assert [item["metadata"]["name"] for item in body["items"]] == list(names)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a,metadata.name!=b", ["c"]),
        ("spec.nodeName=", ["a", "b"]),
        ("spec.nodeName=n1", ["c"]),
        ("status.phase=Pending", ["a", "b", "c"]),
        ("status.phase!=Pending", []),
        ("spec.restartPolicy=Never", ["b"]),
        ("spec.schedulerName=other", ["b"]),
        ("spec.serviceAccountName=default", ["a", "b", "c"]),
        ("metadata.namespace=nowhere", []),
    ],
)
async def test_pod_fields(api: Api, namespace: str, selector: str, names: list[str]) -> None:
    """Pods are selected by name, node, phase, restart policy, scheduler and account."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    second = make.pod("b", namespace).scheduler("other").build()
    second["spec"]["restartPolicy"] = "Never"
    first = make.pod("a", namespace).gate("hold.example.com/x").build()
    for wanted in (first, second, make.pod("c", namespace).on("n1").build()):
        (await api.post(path, wanted)).ok()
    body = (await api.get(path, fieldSelector=selector)).ok()
    assert [item["metadata"]["name"] for item in body["items"]] == names


async def test_event_fields(api: Api, namespace: str) -> None:
    """Events are selected by what they are about."""
    path = f"/api/v1/namespaces/{namespace}/events"
    for number, name in enumerate(("a", "b")):
        involved = {"kind": "Pod", "name": name, "namespace": namespace}
        event = {
            "metadata": {"name": f"e{number}"},
            "involvedObject": involved,
            "reason": f"R{number}",
            "type": "Normal",
        }
        (await api.post(path, event)).ok()
    for selector, names in {
        "involvedObject.name=a": ["e0"],
        "reason=R1": ["e1"],
        "type=Normal,involvedObject.kind=Pod": ["e0", "e1"],
    }.items():
        body = (await api.get(path, fieldSelector=selector)).ok()
        assert [item["metadata"]["name"] for item in body["items"]] == names


async def test_pages(api: Api, namespace: str) -> None:
    """A limited list says how to go on and how many are left; all pages show one version."""
    path = await fill(api, namespace)
    first = (await api.get(path, labelSelector="set", limit=3)).ok()
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b", "c"]
    token = first["metadata"]["continue"]
    late = make.config_map("zz")
    late["metadata"]["labels"] = {"set": "late"}
    await api.post(path, late)
    second = (await api.get(path, labelSelector="set", limit=3, **{"continue": token})).ok()
    assert [item["metadata"]["name"] for item in second["items"]] == ["d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert not second["metadata"].get("continue")


async def test_remaining_count(api: Api, namespace: str) -> None:
    """Without a selector, a page says how many items remain."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name in "abc":
        (await api.post(path, make.pod(name, namespace).build())).ok()
    first = (await api.get(path, limit=1)).ok()
    assert first["metadata"]["remainingItemCount"] == 2
    last = (await api.get(path, limit=2, **{"continue": first["metadata"]["continue"]})).ok()
    assert "remainingItemCount" not in last["metadata"]


@pytest.mark.parametrize("version", ["0", ""])
async def test_list_versions(api: Api, namespace: str, version: str) -> None:
    """A list may be asked for at any version, or at the newest."""
    assert (await api.get(f"/api/v1/namespaces/{namespace}/pods", resourceVersion=version)).code == 200


async def test_list_at_exact_version(api: Api, namespace: str) -> None:
    """resourceVersionMatch=Exact shows the past."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, make.config_map("a"))).ok()
    then = (await api.get(path)).ok()["metadata"]["resourceVersion"]
    (await api.post(path, make.config_map("b"))).ok()
    body = (await api.get(path, resourceVersion=then, resourceVersionMatch="Exact", labelSelector="")).ok()
    names = [item["metadata"]["name"] for item in body["items"] if item["metadata"]["name"] in "ab"]
    assert (names, body["metadata"]["resourceVersion"]) == (["a"], then)


async def test_future_version(api: Api, namespace: str) -> None:
    """A version that does not exist yet is 504 Timeout: too large resource version."""
    answer = await api.get(f"/api/v1/namespaces/{namespace}/pods", resourceVersion="999999999", timeoutSeconds=1)
    body = answer.refused(504, "Timeout")
    assert body["message"].startswith("Timeout: Too large resource version: 999999999, current: ")
    assert body["details"]["causes"] == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]


async def test_delete_collection(api: Api, namespace: str) -> None:
    """Deleting a collection takes what the selector matches and answers with a list."""
    path = await fill(api, namespace)
    body = (await api.delete(path, labelSelector="tier")).ok()
    assert body["kind"] == "ConfigMapList"
    left = (await api.get(path, labelSelector="set")).ok()
    assert [item["metadata"]["name"] for item in left["items"]] == ["c"]


@pytest.mark.parametrize("query", [{"limit": "-1"}, {"limit": "1", "resourceVersion": "0"}])
async def test_whole_list(api: Api, namespace: str, query: dict[str, str]) -> None:
    """A negative limit is none, and a list at any version comes whole."""
    path = await fill(api, namespace)
    # What any version shows may be old, but not older than a watch that has seen it all.
    async with api.watch(path, labelSelector="set") as watch:
        await watch.take(4)
    body = (await api.get(path, labelSelector="set", **query)).ok()
    assert [item["metadata"]["name"] for item in body["items"]] == list("abcd")


async def test_escaped_field(api: Api, namespace: str) -> None:
    """A comma in a field's value is written with a backslash."""
    path = await fill(api, namespace)
    assert (await api.get(path, fieldSelector=r"metadata.name=a\,b")).ok()["items"] == []

"""The verbs of the API, as a client sees them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from spinney.kube.client.transport import Request
from tests import make
from tests.embedded.conftest import ADMIN, JSON_PATCH, MAPS, MERGE, PODS, STRATEGIC, Asker


async def test_create_fills_in_what_the_server_owns(ask: Asker) -> None:
    """A new pod gets a UID, a version, a generation, defaults and a first status."""
    pod = await ask("POST", PODS, make.pod("a").build())
    assert pod.status == 201
    assert pod["metadata"]["generation"] == 1
    assert pod["metadata"]["creationTimestamp"] == "2026-01-01T12:00:00Z"
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_a_name_is_taken_once(ask: Asker) -> None:
    """A second create of one name is refused in Kubernetes' words."""
    await ask("POST", PODS, make.pod("a").build())
    again = await ask("POST", PODS, make.pod("a").build())
    assert (again.status, again["reason"], again.message) == (409, "AlreadyExists", 'pods "a" already exists')


async def test_generate_name(ask: Asker) -> None:
    """Without a name, the server makes one from the prefix."""
    body = {"metadata": {"generateName": "a-"}, "data": {}}
    names = {(await ask("POST", MAPS, body))["metadata"]["name"] for _ in range(10)}
    assert len(names) == 10
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


async def test_update_needs_the_newest_version(ask: Asker) -> None:
    """A PUT with an old version is a conflict."""
    first = await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "1"}})
    await ask("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, kind=MERGE)
    late = await ask("PUT", f"{MAPS}/m", first.body)
    assert (late.status, late["reason"]) == (409, "Conflict")
    assert "please apply your changes to the latest version" in late.message


async def test_a_write_that_changes_nothing_is_no_write(ask: Asker) -> None:
    """The version stays when nothing changes."""
    first = await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "1"}})
    again = await ask("PATCH", f"{MAPS}/m", {"data": {"a": "1"}}, kind=MERGE)
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("kind", "patch", "names"),
    [
        (MERGE, {"spec": {"containers": [{"name": "x", "image": "y"}]}}, None),
        (STRATEGIC, {"spec": {"containers": [{"name": "main", "image": "y"}]}}, ["main"]),
        (JSON_PATCH, [{"op": "replace", "path": "/spec/containers/0/image", "value": "y"}], ["main"]),
    ],
)
async def test_three_kinds_of_patch(ask: Asker, kind: str, patch: object, names: list[str] | None) -> None:
    """A merge patch replaces lists, a strategic one merges them by key, a JSON patch goes by path."""
    await ask("POST", PODS, make.pod("a").build())
    answer = await ask("PATCH", f"{PODS}/a", patch, kind=kind)
    if names is None:
        assert answer.status == 422
        return
    assert [container["name"] for container in answer["spec"]["containers"]] == names
    assert answer["spec"]["containers"][0]["image"] == "y"


async def test_status_has_its_own_endpoint(ask: Asker) -> None:
    """The main endpoint keeps the status, the status endpoint keeps the spec, and only specs count generations."""
    await ask("POST", PODS, make.pod("a").build())
    main = await ask("PATCH", f"{PODS}/a", {"status": {"phase": "Running"}}, kind=MERGE)
    assert main["status"]["phase"] == "Pending"
    status = await ask(
        "PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}, kind=MERGE
    )
    assert status["status"]["phase"] == "Running"
    assert "nodeName" not in status["spec"]
    assert status["metadata"]["generation"] == 1


async def test_selectors(ask: Asker) -> None:
    """Lists filter by labels and by the fields of the kind."""
    for name, color in (("a", "red"), ("b", "blue")):
        await ask("POST", PODS, make.pod(name).label("color", color).on(f"node-{name}").build())
    for query, wanted in (
        ("labelSelector=color=red", ["a"]),
        ("labelSelector=color!=red", ["b"]),
        ("labelSelector=color in (red,blue)", ["a", "b"]),
        ("labelSelector=!color", []),
        ("fieldSelector=spec.nodeName=node-b", ["b"]),
        ("fieldSelector=metadata.name!=b", ["a"]),
    ):
        listing = await ask("GET", f"{PODS}?{query}")
        assert [item["metadata"]["name"] for item in listing["items"]] == wanted, query
    assert (await ask("GET", f"{PODS}?labelSelector=a in b")).status == 400
    unknown = await ask("GET", f"{PODS}?fieldSelector=spec.x=1")
    assert unknown.status == 400
    assert "field label not supported: spec.x" in unknown.message


async def test_pages_show_one_moment(ask: Asker) -> None:
    """Later pages show the list as it was at the first one."""
    for name in "abcd":
        await ask("POST", MAPS, {"metadata": {"name": name}})
    first = await ask("GET", f"{MAPS}?limit=2")
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    await ask("DELETE", f"{MAPS}/d")
    await ask("POST", MAPS, {"metadata": {"name": "cc"}})
    token = first["metadata"]["continue"]
    rest = await ask("GET", f"{MAPS}?limit=5&continue={token}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "d"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_gated_pod_cannot_be_bound(ask: Asker) -> None:
    """Gates go but never come, and while one is there the pod has no node."""
    await ask("POST", PODS, make.pod("a").gate("x.io/hold").build())
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    held = await ask("POST", f"{PODS}/a/binding", binding)
    assert (held.status, held["reason"]) == (409, "Conflict")
    assert "non-empty .spec.schedulingGates" in held.message
    more = {"spec": {"schedulingGates": [{"name": "x.io/hold"}, {"name": "x.io/more"}]}}
    assert (await ask("PATCH", f"{PODS}/a", more, kind=MERGE)).status == 422
    assert (await ask("PATCH", f"{PODS}/a", {"spec": {"schedulingGates": None}}, kind=MERGE)).status == 200
    assert (await ask("POST", f"{PODS}/a/binding", binding)).status == 201
    assert (await ask("GET", f"{PODS}/a"))["spec"]["nodeName"] == "n"
    twice = await ask("POST", f"{PODS}/a/binding", binding)
    assert 'pod a is already assigned to node "n"' in twice.message


async def test_deletion_waits_for_finalizers(ask: Asker) -> None:
    """An object with finalizers is only marked, and goes when the last one does."""
    await ask("POST", MAPS, {"metadata": {"name": "m", "finalizers": ["x.io/wait"]}})
    marked = await ask("DELETE", f"{MAPS}/m")
    assert marked["metadata"]["deletionTimestamp"]
    more = await ask("PATCH", f"{MAPS}/m", {"metadata": {"finalizers": ["x.io/wait", "x.io/b"]}}, kind=MERGE)
    assert more.status == 422
    await ask("PATCH", f"{MAPS}/m", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert (await ask("GET", f"{MAPS}/m")).status == 404


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


async def test_a_bound_pod_gets_its_grace(ask: Asker) -> None:
    """A pod on a node is marked with its grace period, and goes at once with zero grace."""
    await ask("POST", PODS, make.pod("a").on("n").build())
    marked = await ask("DELETE", f"{PODS}/a")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:30Z"
    await ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert (await ask("GET", f"{PODS}/a")).status == 404


async def test_watch_tells_what_happens(ask: Asker) -> None:
    """A watch starts with what is there and goes on with every change, under the selector's view."""
    await ask("POST", MAPS, {"metadata": {"name": "a", "labels": {"x": "1"}}})
    stream = await ask.watch(f"{MAPS}?labelSelector=x=1")
    await ask("POST", MAPS, {"metadata": {"name": "b"}})
    await ask("PATCH", f"{MAPS}/b", {"metadata": {"labels": {"x": "1"}}}, kind=MERGE)
    await ask("PATCH", f"{MAPS}/b", {"data": {"k": "v"}}, kind=MERGE)
    await ask("PATCH", f"{MAPS}/a", {"metadata": {"labels": None}}, kind=MERGE)
    await ask("DELETE", f"{MAPS}/b")
    lines = [msgspec.json.decode(line) for line in (await anext(stream)).splitlines()]
    changes = [(line["type"], line["object"]["metadata"]["name"]) for line in lines]
    assert changes == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a"), ("DELETED", "b")]
    await stream.aclose()


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


async def test_watch_resumes_where_it_was(ask: Asker) -> None:
    """A watch from a version tells only what came after it."""
    first = await ask("POST", MAPS, {"metadata": {"name": "a"}})
    await ask("POST", MAPS, {"metadata": {"name": "b"}})
    stream = await ask.watch(f"{MAPS}?resourceVersion={first['metadata']['resourceVersion']}")
    lines = [msgspec.json.decode(line) for line in (await anext(stream)).splitlines()]
    assert [line["object"]["metadata"]["name"] for line in lines] == ["b"]


async def test_owners_take_their_dependents_along(ask: Asker) -> None:
    """Background deletion removes dependents; orphaning lets them live."""
    for policy, survives in (("Background", False), ("Foreground", False), ("Orphan", True)):
        owner = await ask("POST", MAPS, {"metadata": {"name": "owner"}})
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        await ask("POST", MAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
        await ask("DELETE", f"{MAPS}/owner", {"propagationPolicy": policy})
        await ask.settle()
        assert (await ask("GET", f"{MAPS}/owner")).status == 404, policy
        child = await ask("GET", f"{MAPS}/child")
        assert (child.status == 200) is survives, policy
        if survives:
            assert "ownerReferences" not in child["metadata"]


async def test_a_namespace_goes_with_all_that_is_in_it(ask: Asker) -> None:
    """A namespace that is being deleted takes nothing new, and goes when it is empty."""
    await ask("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}})
    await ask("POST", "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "m", "finalizers": ["x.io/wait"]}})
    await ask("DELETE", "/api/v1/namespaces/x")
    await ask.settle()
    refused = await ask("POST", "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "late"}})
    assert (refused.status, refused["reason"]) == (403, "Forbidden")
    assert "because it is being terminated" in refused.message
    await ask("PATCH", "/api/v1/namespaces/x/configmaps/m", {"metadata": {"finalizers": None}}, kind=MERGE)
    await ask.settle()
    assert (await ask("GET", "/api/v1/namespaces/x")).status == 404


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

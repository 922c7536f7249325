"""Custom resource definitions: their life, what they serve, and what becomes of their objects."""

from __future__ import annotations

from tests import make
from tests.api_behaviour.crds import CRDS, at, established, install
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
SPEC = make.schema(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def widget(group: str, name: str = "a", **spec: object) -> Json:
    """A widget of a group."""
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def versions(answer: Answer) -> dict[str, list[str]]:
    """The versions of every group of /apis, which takes a moment to learn of a new one."""
    return {each["name"]: [version["version"] for version in each["versions"]] for each in answer.ok()["groups"]}


async def test_conditions(api: Api, cluster: Cluster) -> None:
    """A CRD is accepted and established, and says which names and versions it has."""
    group = f"{cluster.unique('cond')}.example.com"
    await install(api, make.crd(group, "Widget", SPEC))
    body = (await api.get(f"{CRDS}/widgets.{group}")).ok()
    conditions = {
        each["type"]: (each["status"], each["reason"], each["message"]) for each in body["status"]["conditions"]
    }
    assert conditions["NamesAccepted"] == ("True", "NoConflicts", "no conflicts found")
    assert conditions["Established"] == ("True", "InitialNamesAccepted", "the initial names have been accepted")
    assert body["status"]["storedVersions"] == ["v1"]
    assert body["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }


async def test_defaults(api: Api, cluster: Cluster) -> None:
    """List kind, singular name and conversion are filled in."""
    group = f"{cluster.unique('dflt')}.example.com"
    wanted = make.crd(group, "Widget", SPEC)
    wanted["spec"]["names"] = {"plural": "widgets", "kind": "Widget"}
    body = (await api.post(CRDS, wanted, dryRun="All")).ok()
    assert body["spec"]["names"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert body["spec"]["conversion"] == {"strategy": "None"}
    assert body["metadata"]["generation"] == 1


async def test_discovery(api: Api, cluster: Cluster) -> None:
    """The kind appears in discovery with short names, categories and subresources."""
    group = f"{cluster.unique('disc')}.example.com"
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    wanted = make.crd(group, "Widget", SPEC, subresources={"status": {}, "scale": scale})
    wanted["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}
    await install(api, wanted)
    await api.until("/apis", lambda answer: group in versions(answer))
    answer = await api.until(f"/apis/{group}/v1", lambda answer: answer.code == 200)
    resources = {each["name"]: each for each in answer.ok()["resources"]}
    assert set(resources) == {"widgets", "widgets/status", "widgets/scale"}
    widgets = resources["widgets"]
    assert (widgets["kind"], widgets["namespaced"], widgets["shortNames"], widgets["categories"]) == (
        "Widget",
        True,
        ["wd"],
        ["all"],
    )
    assert widgets["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert resources["widgets/status"]["verbs"] == ["get", "patch", "update"]
    scale_found = resources["widgets/scale"]
    assert (scale_found["group"], scale_found["version"], scale_found["kind"]) == ("autoscaling", "v1", "Scale")


async def test_objects(api: Api, cluster: Cluster, namespace: str) -> None:
    """Its objects live like others: generation, versions, lists of their own kind."""
    group = f"{cluster.unique('life')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    made = (await api.post(path, widget(group, size=1))).ok()
    assert (made["kind"], made["metadata"]["generation"]) == ("Widget", 1)
    changed = (await api.merge(f"{path}/a", {"spec": {"size": 2}})).ok()
    assert changed["metadata"]["generation"] == 2
    labelled = (await api.merge(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})).ok()
    assert labelled["metadata"]["generation"] == 2
    listed = (await api.get(path)).ok()
    assert (listed["kind"], listed["apiVersion"]) == ("WidgetList", f"{group}/v1")
    assert listed["items"][0]["kind"] == "Widget"


async def test_deletion_answer(api: Api, cluster: Cluster, namespace: str) -> None:
    """A widget's deletion answers with a Status that names group and kind."""
    group = f"{cluster.unique('del')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    made = (await api.post(path, widget(group))).ok()
    body = (await api.delete(f"{path}/a")).ok()
    assert body["details"] == {"name": "a", "group": group, "kind": "widgets", "uid": made["metadata"]["uid"]}


async def test_cluster_scope(api: Api, cluster: Cluster) -> None:
    """A cluster-scoped kind has no namespaces in its paths."""
    group = f"{cluster.unique('scope')}.example.com"
    path = await install(api, make.crd(group, "Widget", SPEC, scope="Cluster"))
    assert "namespace" not in (await api.post(path, widget(group))).ok()["metadata"]
    assert (await api.get(at(path, "default"))).code == 404


async def test_two_versions(api: Api, cluster: Cluster, namespace: str) -> None:
    """An object is served in every version; without conversion only the version's name changes."""
    group = f"{cluster.unique('two')}.example.com"
    wanted = make.crd(group, "Widget", SPEC)
    first = wanted["spec"]["versions"][0]
    wanted["spec"]["versions"].append({**first, "name": "v2", "storage": False})
    path = at(await install(api, wanted), namespace)
    (await api.post(path, widget(group, size=1))).ok()
    body = (await api.get(f"{path}/a".replace("/v1/", "/v2/"))).ok()
    assert (body["apiVersion"], body["spec"]) == (f"{group}/v2", {"size": 1})
    answer = await api.until("/apis", lambda answer: len(versions(answer).get(group, [])) == 2)
    assert versions(answer)[group] == ["v2", "v1"]


async def test_version_not_served(api: Api, cluster: Cluster, namespace: str) -> None:
    """A version that is not served is 404."""
    group = f"{cluster.unique('unserved')}.example.com"
    wanted = make.crd(group, "Widget", SPEC)
    first = wanted["spec"]["versions"][0]
    wanted["spec"]["versions"].append({**first, "name": "v2", "storage": False, "served": False})
    path = at(await install(api, wanted), namespace)
    assert (await api.get(path.replace("/v1/", "/v2/"))).code == 404


async def test_deprecated_version(api: Api, cluster: Cluster, namespace: str) -> None:
    """A deprecated version warns whoever uses it."""
    group = f"{cluster.unique('old')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC, deprecated=True)), namespace)
    answer = await api.get(path)
    assert answer.warnings == f'299 - "{group}/v1 Widget is deprecated"'


async def test_deletion(api: Api, cluster: Cluster, namespace: str) -> None:
    """A CRD that goes takes its objects along and stops to be served."""
    group = f"{cluster.unique('gone')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    (await api.post(path, widget(group))).ok()
    (await api.delete(f"{CRDS}/widgets.{group}")).ok()
    await api.until(f"{CRDS}/widgets.{group}", lambda answer: answer.code == 404)
    await api.until(path, lambda answer: answer.code == 404)
    await install(api, make.crd(group, "Widget", SPEC))
    assert (await api.get(path)).ok()["items"] == []


async def test_finalizer_of_the_crd(api: Api, cluster: Cluster) -> None:
    """A CRD that is deleted waits for its objects, by a finalizer, and answers with itself."""
    group = f"{cluster.unique('clean')}.example.com"
    await install(api, make.crd(group, "Widget", SPEC))
    body = (await api.delete(f"{CRDS}/widgets.{group}")).ok()
    assert (body["kind"], body["metadata"]["finalizers"]) == (
        "CustomResourceDefinition",
        ["customresourcecleanup.apiextensions.k8s.io"],
    )


async def test_name_conflict(api: Api, cluster: Cluster) -> None:
    """A second CRD of the same group and kind is not accepted."""
    group = f"{cluster.unique('clash')}.example.com"
    await install(api, make.crd(group, "Widget", SPEC))
    wanted = make.crd(group, "Widget", SPEC)
    wanted["metadata"]["name"] = f"gadgets.{group}"
    wanted["spec"]["names"] |= {"plural": "gadgets", "singular": "gadget"}
    (await api.post(CRDS, wanted)).ok()

    def refused(answer: Answer) -> bool:
        conditions = answer.ok()["status"].get("conditions") or []
        return any(each["type"] == "NamesAccepted" and each["status"] == "False" for each in conditions)

    answer = await api.until(f"{CRDS}/gadgets.{group}", refused)
    (condition,) = [each for each in answer.ok()["status"]["conditions"] if each["type"] == "NamesAccepted"]
    assert (condition["reason"], condition["message"]) == ("ListKindConflict", '"WidgetList" is already in use')
    assert not established(answer)


async def test_schema_change(api: Api, cluster: Cluster, namespace: str) -> None:
    """A changed schema holds for new writes; objects from before are read as they are, pruned."""
    group = f"{cluster.unique('change')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    (await api.post(path, widget(group, size="big", other="x"))).ok()
    tight = make.schema(spec={"type": "object", "properties": {"size": {"type": "string"}}})
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": tight}]
    (await api.json_patch(f"{CRDS}/widgets.{group}", *patch)).ok()
    await api.until(f"{path}/a", lambda answer: answer.ok()["spec"] == {"size": "big"})


async def test_printer_columns(api: Api, cluster: Cluster, namespace: str) -> None:
    """Printer columns show values by path and type; missing ones are empty; wide ones have a priority."""
    group = f"{cluster.unique('cols')}.example.com"
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big."},
        {"name": "Names", "type": "string", "jsonPath": ".spec.items[*].name", "priority": 1},
        {"name": "Ready", "type": "string", "jsonPath": '.spec.conditions[?(@.type=="Ready")].status'},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.a\\.b/c"},
    ]
    path = at(await install(api, make.crd(group, "Widget", SPEC, additionalPrinterColumns=columns)), namespace)
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    wanted = widget(group, size=3, items=[{"name": "x"}, {"name": "y"}], conditions=conditions, on=True)
    wanted["metadata"]["labels"] = {"a.b/c": "L"}
    (await api.post(path, wanted)).ok()
    (await api.post(path, widget(group, "b"))).ok()
    body = (await api.with_headers(accept=TABLE).get(path)).ok()
    assert [each["name"] for each in body["columnDefinitions"]] == [
        "Name",
        "Size",
        "Names",
        "Ready",
        "On",
        "Since",
        "Label",
    ]
    assert body["columnDefinitions"][1]["description"] == "How big."
    assert [each["priority"] for each in body["columnDefinitions"]] == [0, 0, 1, 0, 0, 0, 0]
    first, second = body["rows"]
    assert first["cells"][:5] == ["a", 3, "x", "True", True]
    assert first["cells"][6] == "L"
    assert second["cells"][:5] == ["b", None, None, None, None]


async def test_default_columns(api: Api, cluster: Cluster, namespace: str) -> None:
    """Without columns of its own a kind shows name and age."""
    group = f"{cluster.unique('plain')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    (await api.post(path, widget(group))).ok()
    body = (await api.with_headers(accept=TABLE).get(path)).ok()
    assert [each["name"] for each in body["columnDefinitions"]] == ["Name", "Age"]
    assert body["columnDefinitions"][1]["type"] == "date"


async def test_selectable_fields(api: Api, cluster: Cluster, namespace: str) -> None:
    """A version may name fields to select by."""
    group = f"{cluster.unique('sel')}.example.com"
    schema = make.schema(spec={"type": "object", "properties": {"color": {"type": "string"}}})
    path = at(
        await install(api, make.crd(group, "Widget", schema, selectableFields=[{"jsonPath": ".spec.color"}])), namespace
    )
    for name, color in {"a": "red", "b": "blue"}.items():
        (await api.post(path, widget(group, name, color=color))).ok()
    body = (await api.get(path, fieldSelector="spec.color=red")).ok()
    assert [item["metadata"]["name"] for item in body["items"]] == ["a"]


async def test_watch(api: Api, cluster: Cluster, namespace: str) -> None:
    """Custom resources can be watched like others."""
    group = f"{cluster.unique('watch')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    start = (await api.get(path)).ok()["metadata"]["resourceVersion"]
    async with api.watch(path, resourceVersion=start) as watch:
        (await api.post(path, widget(group))).ok()
        (await api.delete(f"{path}/a")).ok()
        assert await watch.take(2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_an_empty_status_subresource_stays(api: Api, cluster: Cluster) -> None:
    """A struct without members is kept, whatever else the definition needs to have dropped."""
    group = f"{cluster.unique('empty')}.example.com"
    wanted = make.crd(group, "Widget", SPEC, subresources={"status": {}})
    wanted["metadata"]["creationTimestamp"] = None
    body = (await api.post(CRDS, wanted, dryRun="All")).ok()
    assert body["spec"]["versions"][0]["subresources"] == {"status": {}}


async def test_versions_prune_by_their_own_schema(api: Api, cluster: Cluster, namespace: str) -> None:
    """Every version shows only its own fields; what is kept has the fields and defaults of the storage version."""
    group = f"{cluster.unique('prune')}.example.com"
    wanted = make.crd(group, "Widget", _spec(a={"type": "string", "default": "d1"}, b={"type": "integer"}))
    second = make.crd(group, "Widget", _spec(a={"type": "string"}, c={"type": "string", "default": "d2"}))
    wanted["spec"]["versions"].append({**second["spec"]["versions"][0], "name": "v2", "storage": False})
    path = at(await install(api, wanted), namespace)
    other = path.replace("/v1/", "/v2/")
    await api.until(other, lambda answer: answer.code == 200)
    (await api.post(path, widget(group, b=1))).ok()
    assert (await api.get(f"{other}/a")).ok()["spec"] == {"a": "d1"}
    made = (await api.post(other, {**widget(group, "b", c="x"), "apiVersion": f"{group}/v2"})).ok()
    assert made["spec"] == {"a": "d1"}


def _spec(**properties: Json) -> Json:
    return make.schema(spec=make.schema(**properties))


async def test_no_object_of_a_kind_that_goes(api: Api, cluster: Cluster, namespace: str) -> None:
    """A CRD that waits for its last object takes no new ones, and says what it waits for."""
    group = f"{cluster.unique('late')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", SPEC)), namespace)
    held = widget(group)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    (await api.post(path, held)).ok()
    going = (await api.delete(f"{CRDS}/widgets.{group}")).ok()
    reasons = {each["type"]: each["reason"] for each in going["status"]["conditions"]}
    assert reasons["Terminating"] == "InstanceDeletionPending"
    why = f'widgets.{group} "b" is forbidden: create not allowed while custom resource definition is terminating'
    await api.until(path, lambda answer: "deletionTimestamp" in answer.body["items"][0]["metadata"])
    (await api.post(path, widget(group, "b"))).refused(403, "Forbidden", why)
    await api.merge(f"{path}/a", {"metadata": {"finalizers": None}})
    await api.until(f"{CRDS}/widgets.{group}", lambda answer: answer.code == 404)


async def test_nulls_count_as_nothing(api: Api, cluster: Cluster, namespace: str) -> None:
    """A null for a field that cannot be null is dropped."""
    group = f"{cluster.unique('null')}.example.com"
    path = at(await install(api, make.crd(group, "Widget", _spec(size={"type": "integer"}))), namespace)
    assert "size" not in (await api.post(path, widget(group, size=None))).ok()["spec"]


async def test_a_format_that_is_not_known(api: Api, cluster: Cluster) -> None:
    """An unknown format is taken with a warning."""
    group = f"{cluster.unique('form')}.example.com"
    wanted = make.crd(group, "Widget", _spec(a={"type": "string", "format": "nope"}))
    answer = await api.post(CRDS, wanted, dryRun="All")
    assert (answer.code, answer.warnings) == (201, '299 - "unrecognized format \\"nope\\""')


async def test_an_apply_of_nothing_owns_nothing(api: Api, namespace: str) -> None:
    """A manager that claims no field leaves no entry, and a status sent to the main path is ignored."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    (await api.apply(f"{maps}/a", {**head, "data": {"k": "1"}}, "one")).ok()
    body = (await api.apply(f"{maps}/a", head, "two")).ok()
    assert [entry["manager"] for entry in body["metadata"]["managedFields"]] == ["one"]


async def test_a_pattern_ends_at_the_end(api: Api, cluster: Cluster, namespace: str) -> None:
    """A line break at the end does not match `$`, and a digit of another script is none."""
    group = f"{cluster.unique('pattern')}.example.com"
    properties = {name: {"type": "string", "pattern": pattern} for name, pattern in (("a", "^x$"), ("b", r"^\d$"))}
    schema = make.schema(spec={"type": "object", "properties": properties})
    path = await install(api, make.crd(group, "Widget", schema))
    refused = (await api.post(at(path, namespace), widget(group, a="x\n", b="\u0663"))).refused(422, "Invalid")
    assert sorted(cause["field"] for cause in refused["details"]["causes"]) == ["spec.a", "spec.b"]

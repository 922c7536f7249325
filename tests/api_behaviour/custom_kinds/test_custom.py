"""Custom resources: pruning, defaulting, rules, status, scale, apply."""

from __future__ import annotations

from typing import Any

import pytest

from tests import make
from tests.api_behaviour.crds import at, install, named, widgets
from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster


def widget(schema: str, name: str = "a", **spec: Any) -> Json:
    """A widget of a schema of `schemas.yaml`."""
    return {"apiVersion": f"{schema}.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


SHAPES: dict[str, tuple[Json, Json]] = {
    "fills-defaults": ({}, {"known": "filled", "nested": {"deep": 7}, "nothing": "x"}),
    "keeps-what-is-given": (
        {"known": "mine", "nothing": "y"},
        {"known": "mine", "nested": {"deep": 7}, "nothing": "y"},
    ),
    "prunes": ({"unknown": 1, "nested": {"strange": 2}}, {"known": "filled", "nested": {"deep": 7}, "nothing": "x"}),
    "defaults-in-lists": ({"list": [{"name": "a", "odd": 1}]}, {"list": [{"name": "a", "size": 3}]}),
    "defaults-in-maps": ({"map": {"k": {"odd": 1}}}, {"map": {"k": {"size": 4}}}),
    "keeps-unknown-where-open": (
        {"open": {"x": 1, "inner": {"a": "b", "c": "d"}}},
        {"open": {"x": 1, "inner": {"a": "b"}}},
    ),
    "null-takes-the-default": ({"known": None}, {"known": "filled"}),
    "null-stays-where-nullable": ({"nothing": None}, {"nothing": None}),
}


@pytest.mark.parametrize("case", SHAPES)
async def test_shape(api: Api, namespace: str, case: str) -> None:
    """What the schema does not name is pruned, what it has defaults for is filled in."""
    sent, expected = SHAPES[case]
    await install(api, named("shapes"))
    spec = (await api.post(widgets("shapes", namespace), widget("shapes", **sent))).ok()["spec"]
    assert {key: spec.get(key) for key in expected} == expected
    assert set(spec) <= set(expected) | {"known", "nested", "nothing"}


async def test_embedded_resource(api: Api, namespace: str) -> None:
    """An embedded object needs a kind, and its metadata is checked."""
    await install(api, named("shapes"))
    path = widgets("shapes", namespace)
    template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1}, "spec": {"any": "thing"}}
    spec = (await api.post(path, widget("shapes", template=template))).ok()["spec"]
    assert spec["template"]["spec"] == {"any": "thing"}
    answer = await api.post(path, widget("shapes", "b", template={"spec": {}}))
    body = answer.refused(422, "Invalid")
    assert [cause["field"] for cause in body["details"]["causes"]] == ["spec.template.apiVersion", "spec.template.kind"]


async def test_prune_warning(api: Api, namespace: str) -> None:
    """Pruned fields are warned of by default."""
    await install(api, named("shapes"))
    answer = await api.post(widgets("shapes", namespace), widget("shapes", odd=1))
    assert answer.warnings == r'299 - "unknown field \"spec.odd\""'


async def test_metadata_stays(api: Api, namespace: str) -> None:
    """Metadata keeps what Kubernetes knows and drops the rest."""
    await install(api, named("shapes"))
    wanted = widget("shapes")
    wanted["metadata"] |= {"labels": {"a": "b"}, "odd": 1}
    meta = (await api.post(widgets("shapes", namespace), wanted)).ok()["metadata"]
    assert meta["labels"] == {"a": "b"}
    assert "odd" not in meta


async def test_status_subresource(api: Api, namespace: str) -> None:
    """With a status subresource, each path changes only its part, and only the spec counts generations."""
    await install(api, named("shapes"))
    path = widgets("shapes", namespace)
    made = (await api.post(path, {**widget("shapes"), "status": {"phase": "Early"}})).ok()
    assert "status" not in made
    body = (await api.merge(f"{path}/a/status", {"status": {"phase": "Done"}, "spec": {"known": "no"}})).ok()
    assert (body["status"]["phase"], body["spec"]["known"], body["metadata"]["generation"]) == ("Done", "filled", 1)
    body = (await api.merge(f"{path}/a", {"status": {"phase": "No"}, "spec": {"known": "yes"}})).ok()
    assert (body["status"]["phase"], body["spec"]["known"], body["metadata"]["generation"]) == ("Done", "yes", 2)


async def test_status_defaults(api: Api, namespace: str) -> None:
    """Defaults of the status are filled in when it is written."""
    await install(api, named("shapes"))
    path = widgets("shapes", namespace)
    await api.post(path, widget("shapes"))
    body = (await api.merge(f"{path}/a/status", {"status": {"phase": "Done"}})).ok()
    assert body["status"] == {"phase": "Done", "replicas": 0}


async def test_without_status_subresource(api: Api, cluster: Cluster, namespace: str) -> None:
    """Without one, the status is a part like others, and every change counts."""
    group = f"{cluster.unique('nostat')}.example.com"
    schema = make.schema(
        spec={"type": "object"}, status={"type": "object", "properties": {"phase": {"type": "string"}}}
    )
    path = at(await install(api, make.crd(group, "Widget", schema)), namespace)
    wanted = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}, "status": {"phase": "Early"}}
    assert (await api.post(path, wanted)).ok()["status"] == {"phase": "Early"}
    body = (await api.merge(f"{path}/a", {"status": {"phase": "Late"}})).ok()
    assert (body["status"], body["metadata"]["generation"]) == ({"phase": "Late"}, 2)
    assert (await api.get(f"{path}/a/status")).code == 404


async def test_scale_subresource(api: Api, cluster: Cluster, namespace: str) -> None:
    """A scale reads and writes the paths that the CRD names."""
    group = f"{cluster.unique('scale')}.example.com"
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.now",
        "labelSelectorPath": ".status.selector",
    }
    schema = make.schema(
        spec={"type": "object", "properties": {"size": {"type": "integer"}}},
        status={"type": "object", "properties": {"now": {"type": "integer"}, "selector": {"type": "string"}}},
    )
    path = at(
        await install(api, make.crd(group, "Widget", schema, subresources={"status": {}, "scale": scale})), namespace
    )
    wanted = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 3}}
    made = (await api.post(path, wanted)).ok()
    await api.merge(f"{path}/a/status", {"status": {"now": 2, "selector": "app=a"}})
    body = (await api.get(f"{path}/a/scale")).ok()
    assert (body["kind"], body["spec"], body["status"]) == (
        "Scale",
        {"replicas": 3},
        {"replicas": 2, "selector": "app=a"},
    )
    assert body["metadata"]["uid"] == made["metadata"]["uid"]
    changed = (await api.merge(f"{path}/a/scale", {"spec": {"replicas": 5}})).ok()
    assert changed["spec"] == {"replicas": 5}
    widget = (await api.get(f"{path}/a")).ok()
    assert (widget["spec"]["size"], widget["metadata"]["generation"]) == (5, 2)


RULES: dict[str, tuple[Json, int]] = {
    "holds": ({"min": 1, "max": 2}, 201),
    "holds-by-default": ({}, 201),
    "optional-absent": ({"max": 9}, 201),
    "optional-new": ({"once": "new"}, 201),
    "quantity": ({"quantity": "2Gi"}, 201),
    "list": ({"items": [{"name": "a"}]}, 201),
    "breaks": ({"min": 3, "max": 2}, 422),
}


@pytest.mark.parametrize("case", RULES)
async def test_rules(api: Api, namespace: str, case: str) -> None:
    """Rules see the object with its defaults."""
    sent, code = RULES[case]
    await install(api, named("rules"))
    assert (await api.post(widgets("rules", namespace), widget("rules", **sent))).code == code


async def test_transition(api: Api, namespace: str) -> None:
    """A transition rule is asked only where there was a value before."""
    await install(api, named("rules"))
    path = widgets("rules", namespace)
    await api.post(path, widget("rules"))
    assert (await api.merge(f"{path}/a", {"spec": {"frozen": "a"}})).code == 200
    assert (await api.merge(f"{path}/a", {"spec": {"frozen": "a", "max": 12}})).code == 200
    body = (await api.merge(f"{path}/a", {"spec": {"frozen": "b"}})).refused(422, "Invalid")
    assert body["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "message": 'Invalid value: "b": frozen is immutable', "field": "spec.frozen"}
    ]
    assert (await api.merge(f"{path}/a", {"spec": {"frozen": None}})).code == 200


async def test_ratcheting(api: Api, cluster: Cluster, namespace: str) -> None:
    """A field that was bad before the schema got stricter may stay while it is not touched."""
    group = f"{cluster.unique('ratchet')}.example.com"
    loose = make.schema(
        spec={"type": "object", "properties": {"name": {"type": "string"}, "other": {"type": "string"}}}
    )
    path = at(await install(api, make.crd(group, "Widget", loose)), namespace)
    wanted = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"name": "abcdef"}}
    (await api.post(path, wanted)).ok()
    operation = {
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/name/maxLength",
        "value": 3,
    }
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
    (await api.json_patch(crd, operation)).ok()
    wanted["metadata"] = {"generateName": "b-"}

    await api.repeat(lambda: api.post(path, wanted, dryRun="All"), lambda answer: answer.code == 422)
    assert (await api.merge(f"{path}/a", {"spec": {"other": "x"}})).code == 200
    (await api.merge(f"{path}/a", {"spec": {"name": "ghijkl"}})).refused(422, "Invalid")


async def test_apply_lists(api: Api, namespace: str) -> None:
    """Apply merges lists and maps as the schema says: atomic, set or keyed."""
    await install(api, named("shapes"))
    path = f"{widgets('shapes', namespace)}/a"
    shape = widget("shapes", set=["a"], keyed=[{"name": "a", "value": "1"}], whole={"a": "1"})
    two = widget("shapes", set=["b"], keyed=[{"name": "b", "value": "2"}])
    (await api.apply(path, shape, "one")).ok()
    spec = (await api.apply(path, two, "two")).ok()["spec"]
    assert sorted(spec["set"]) == ["a", "b"]
    assert [each["name"] for each in spec["keyed"]] == ["a", "b"]
    for field, value in {"atomic": ["x"], "whole": {"b": "2"}}.items():
        (await api.apply(path, widget("shapes", **{field: value}), "three", force="true")).ok()
        clash = {"atomic": ["y"], "whole": {"c": "3"}}[field]
        body = (await api.apply(path, widget("shapes", **{field: clash}), "four")).refused(409, "Conflict")
        assert body["details"]["causes"][0]["field"] == f".spec.{field}"
        (await api.apply(path, widget("shapes"), "three")).ok()


async def test_no_strategic_merge(api: Api, namespace: str) -> None:
    """A merge patch replaces lists of custom resources whole."""
    await install(api, named("shapes"))
    path = widgets("shapes", namespace)
    await api.post(path, widget("shapes", keyed=[{"name": "a"}, {"name": "b"}]))
    body = (await api.merge(f"{path}/a", {"spec": {"keyed": [{"name": "c"}]}})).ok()
    assert body["spec"]["keyed"] == [{"name": "c"}]


async def test_int_or_string(api: Api, namespace: str) -> None:
    """An int-or-string keeps the type it was given."""
    await install(api, named("limits"))
    path = widgets("limits", namespace)
    for name, amount in {"a": 5, "b": "50%"}.items():
        body = (await api.post(path, widget("limits", name, size=1, amount=amount))).ok()
        assert body["spec"]["amount"] == amount


async def test_numbers(api: Api, namespace: str) -> None:
    """An integer where a number is asked for is fine, and a whole float is an integer."""
    await install(api, named("limits"))
    body = (await api.post(widgets("limits", namespace), widget("limits", size=1, ratio=2))).ok()
    assert body["spec"]["ratio"] == 2
    raw = b'{"apiVersion":"limits.example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"size":3.0}}'
    assert (await api.post(widgets("limits", namespace), raw)).code == 201

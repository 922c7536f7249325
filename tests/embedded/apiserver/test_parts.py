"""The small parts that the API server is made of, as tables of rules."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spinney.api.crd import crds
from spinney.cel.costs import Budget
from spinney.embedded.apiserver.access.credentials import Authority, write_kubeconfig
from spinney.embedded.apiserver.calls import split_path
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources.ages import age, duration
from spinney.embedded.apiserver.schema.cel_rules import Rule, Rules
from spinney.embedded.apiserver.schema.json_path import find
from spinney.embedded.apiserver.schema.shapes import built_in_shape
from spinney.embedded.apiserver.schema.structural import Defaults, prune
from spinney.embedded.apiserver.schema.structural_checks import Checker
from spinney.embedded.apiserver.store.store import Store, TooOld
from spinney.embedded.apiserver.write import field_sets, json_patch, strategic_merge
from tests import make

POD = built_in_shape("", "v1", "Pod")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, "5s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (3600, "60m"),
        (10800, "3h"),
        (90000, "25h"),
        (400000, "4d15h"),
    ],
)
def test_ages(seconds: int, text: str) -> None:
    """Spans are told in the one or two units that matter."""
    assert duration(seconds) == text
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age((now - timedelta(seconds=seconds)).isoformat(), now) == text


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.n", [1]),
        (".spec.items[*].name", ["x", "y"]),
        (".spec.items[1].name", ["y"]),
        (".spec.items[-1:].name", ["y"]),
        (".spec.items[:1].name", ["x"]),
        ('.spec.items[?(@.name=="y")].v', [2]),
        (".metadata.labels.a\\.b/c", ["L"]),
        (".spec.missing.deeper", []),
    ],
)
def test_json_paths(path: str, values: list[Any]) -> None:
    """The paths that printer columns use."""
    items = [{"name": "x", "v": 1}, {"name": "y", "v": 2}]
    assert find({"metadata": {"labels": {"a.b/c": "L"}}, "spec": {"n": 1, "items": items}}, path) == values


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/api/v1/namespaces/d/pods/a/status", ("", "v1", "d", "pods", "a", "status")),
        ("/api/v1/namespaces/d", ("", "v1", "", "namespaces", "d", "")),
        ("/api/v1/namespaces/d/status", ("", "v1", "", "namespaces", "d", "status")),
        ("/apis/apps/v1/deployments", ("apps", "v1", "", "deployments", "", "")),
        ("/apis/apps/v1", None),
        ("/version", None),
    ],
)
def test_paths(path: str, parts: tuple[str, ...] | None) -> None:
    """A path says group, version, namespace, resource, name and subresource."""
    assert split_path(path) == parts


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("a=1", True),
        ("a!=1", False),
        ("b", False),
        ("!b", True),
        ("a in (1,2)", True),
        ("a notin (1)", False),
        ("a>0", True),
    ],
)
def test_label_selectors(text: str, matches: bool) -> None:
    """Equality, sets, existence and numbers."""
    assert selectors.matches(selectors.parse_labels(text), {"a": "1"}) is matches


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        ([{"name": "b", "image": "x"}], ["a", "b", "c"]),
        ([{"name": "new", "image": "x"}], ["new", "a", "b", "c"]),
        ([{"$patch": "delete", "name": "b"}], ["a", "c"]),
        ([{"name": "only"}, {"$patch": "replace"}], ["only"]),
    ],
)
def test_strategic_lists(patch: list[Any], names: list[str]) -> None:
    """Elements merge by key; new ones come first; directives delete and replace."""
    target = {"spec": {"containers": [{"name": name, "image": "i"} for name in "abc"]}}
    merged = strategic_merge.merge(target, {"spec": {"containers": patch}}, POD)
    assert [container["name"] for container in merged["spec"]["containers"]] == names
    assert [container["name"] for container in target["spec"]["containers"]] == ["a", "b", "c"]


def test_a_merge_patch_leaves_the_original_alone() -> None:
    """What a patch touches is copied, what it does not touch is shared."""
    old = {"a": {"b": 1, "c": {"d": 2}}, "e": [1]}
    new = json_patch.merge(old, {"a": {"b": None, "x": 3}})
    assert new == {"a": {"c": {"d": 2}, "x": 3}, "e": [1]}
    assert old["a"] == {"b": 1, "c": {"d": 2}}
    assert new["e"] is old["e"]


def test_field_sets() -> None:
    """A change owns the fields that it touched, by the keys of keyed lists."""
    old = {"spec": {"containers": [{"name": "a", "image": "x"}], "nodeName": "n"}}
    new = {"spec": {"containers": [{"name": "a", "image": "y"}, {"name": "b"}]}}
    changes = field_sets.compare(old, new, POD)
    containers = changes.changed["f:spec"]["f:containers"]
    assert containers == {'k:{"name":"a"}': {"f:image": {}}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}
    assert changes.removed == {"f:spec": {"f:nodeName": {}}}
    assert field_sets.paths({"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}) == [
        '.spec.containers[name="a"].image'
    ]
    both = field_sets.union({"f:a": {}}, {"f:a": {"f:b": {}}, "f:c": {}})
    assert both == {"f:a": {".": {}, "f:b": {}}, "f:c": {}}
    assert field_sets.difference(both, {"f:a": {}}) == {"f:a": {"f:b": {}}, "f:c": {}}
    assert field_sets.intersection(both, {"f:a": {"f:b": {}}}) == {"f:a": {"f:b": {}}}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1, "default": 1},
        "list": {
            "type": "array",
            "items": {"type": "object", "properties": {"on": {"type": "boolean", "default": True}}},
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def test_structural_schemas() -> None:
    """Unknown fields go, except where the schema is open; defaults come, also in lists; the rest is told."""
    dropped: list[str] = []
    value = prune({"x": 1, "list": [{"y": 2}], "open": {"z": 3}}, SCHEMA, "", dropped)
    assert (value, dropped) == ({"list": [{}], "open": {"z": 3}}, ["x", "list[0].y"])
    defaults = Defaults(SCHEMA)
    value = defaults.fill(value)
    assert value == {"n": 1, "list": [{"on": True}], "open": {"z": 3}}
    assert defaults.fill(value) is value
    checker = Checker()
    checker.check({"n": 0}, SCHEMA, "")
    assert [str(error) for error in checker.errors] == [
        "n: Invalid value: 0: n in body should be greater than or equal to 1"
    ]
    checker = Checker()
    checker.check({"n": 0}, SCHEMA, "", {"n": 0})
    assert not checker.errors


@pytest.mark.parametrize(("number", "accepted"), [(2.0, True), (2.5, False), (1e308, False), (float(1 << 53), False)])
def test_an_integer_of_three_hundred_digits_was_stored(number: float, accepted: bool) -> None:
    """A float counts as an integer only where it tells one from the next: nobody could read such an object."""
    checker = Checker()
    checker.check({"n": number}, SCHEMA, "")
    assert (not checker.errors) == accepted


@pytest.mark.parametrize(
    ("rule", "value", "old", "message"),
    [
        ({"rule": "self.a > 1"}, {"a": 2}, None, None),
        ({"rule": "self.a > 1", "message": "too small"}, {"a": 1}, None, "Invalid value: too small"),
        ({"rule": "self > 1"}, 1, None, "Invalid value: 1: failed rule: self > 1"),
        ({"rule": "self == oldSelf"}, 1, None, None),
        ({"rule": "self == oldSelf", "message": "immutable"}, 1, 2, "Invalid value: 1: immutable"),
        ({"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": True}, 1, None, None),
        ({"rule": "self.b == 1"}, {}, None, 'Invalid value: "object": no such key: b evaluating rule: self.b == 1'),
        (
            {"rule": "quantity(self).isLessThan(quantity('1Gi'))", "message": "big"},
            "2Gi",
            None,
            'Invalid value: "2Gi": big',
        ),
        (
            {"rule": "self > 5", "messageExpression": "'at most ' + string(self)"},
            3,
            None,
            "Invalid value: 3: at most 3",
        ),
    ],
)
def test_rules(rule: dict[str, Any], value: Any, old: Any, message: str | None) -> None:
    """A rule holds, or says why not."""
    error = Rule.of(rule, {}).check(value, old, "spec", Budget())
    assert (error.message if error else None) == message


def test_the_store_remembers_a_while() -> None:
    """Recent writes can be read back, older ones are too old, and an earlier moment can be seen again."""
    store = Store(window=2)
    for name in "abc":
        store.put("t", name, {"metadata": {"uid": name}}, {})
    table = store.table("t")
    assert [event.new.name for event in table.since(2)] == ["b", "c"]
    with pytest.raises(TooOld):
        table.since(1)
    assert sorted(table.at(3)) == ["a", "b"]


def test_sets_of_hundreds_of_replicas_are_not_refused_for_what_their_rules_would_cost() -> None:
    """What a rule does not look at costs nothing: the status of a large set stopped every change of it."""
    (definition,) = (each for each in crds() if each["spec"]["names"]["kind"] == "PodCliqueSet")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    pcs = make.pcs("large", replicas=500).clique("a", 2).clique("b", 3).group("g", ["b"])
    for clique in pcs.object["spec"]["template"]["cliques"]:
        (container,) = clique["spec"]["podSpec"]["containers"]
        container["env"] = [{"name": f"NAME_{number}", "value": "x"} for number in range(150)]
        container["command"] = ["sh", "-c", "true\n" * 5_000]
    pcs.object["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeAnyOrder"
    old = pcs.build()
    status = {"podGangStatuses": [{"name": f"large-{number}", "phase": "Running"} for number in range(500)]}
    assert Rules(schema, root=True).check({**old, "status": status}, old) == []


def test_a_kubeconfig_was_written_into_a_file_that_somebody_else_had_made(tmp_path: Path) -> None:
    """Whoever opened the draft before sees nothing of the key."""
    path = tmp_path / "kubeconfig"
    with (tmp_path / f".{path.name}.{os.getpid()}").open("w+") as draft:
        write_kubeconfig(path, "https://127.0.0.1:1", Authority(datetime(2026, 1, 1, tzinfo=UTC)))
        assert draft.read() == ""
    assert "client-key-data" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600

"""Differences between documents: what we compute turns the one document into the other."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.meta import Json
from spinney.kube.difference import covers, exact_merge_patch, json_patch, merge_patch, without_none

LEAVES = st.booleans() | st.integers(2, 5) | st.text("a/~", max_size=2)
KEYS = st.text("ab/~", max_size=2)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=4)


def apply_json_patch(document: Json, operations: list[Json]) -> Any:
    """The operations of RFC 6902 that we use, done the plain way."""
    root: Any = {"": deepcopy(document)}
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")]
        target = root
        for part in parents:
            target = target[part]
        if operation["op"] == "remove":
            del target[last]
        else:
            target[last] = operation["value"]
    return root[""]


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


@given(MAPS, MAPS)
def test_a_json_patch_leads_from_one_document_to_the_other(old: Json, new: Json) -> None:
    """Applied to the one, the patch gives the other; between equals it is empty."""
    assert apply_json_patch(old, list(json_patch(old, new))) == new
    assert list(json_patch(new, deepcopy(new))) == []


def test_a_json_patch_names_only_what_differs() -> None:
    """Keys are escaped as JSON pointers want it; a list that differs is replaced whole."""
    old = {"labels": {"a/b": "1", "gone": "x"}, "spec": {"list": [1, 2], "same": [1]}}
    new = {"labels": {"a/b": "2"}, "spec": {"list": [1], "same": [1], "more": {}}}
    assert list(json_patch(old, new)) == [
        {"op": "remove", "path": "/labels/gone"},
        {"op": "replace", "path": "/labels/a~1b", "value": "2"},
        {"op": "replace", "path": "/spec/list", "value": [1]},
        {"op": "add", "path": "/spec/more", "value": {}},
    ]


@given(MAPS, MAPS)
def test_an_exact_merge_patch_leads_from_one_map_to_the_other(live: Json, wanted: Json) -> None:
    """Members that go are named with null."""
    assert apply_merge_patch(live, exact_merge_patch(live, wanted)) == wanted
    assert exact_merge_patch(wanted, deepcopy(wanted)) == {}


@given(MAPS, MAPS)
def test_after_a_merge_patch_all_that_is_wanted_is_covered(live: Json, wanted: Json) -> None:
    """What is there beyond that stays; where all is covered the patch is empty."""
    patched = apply_merge_patch(live, merge_patch(live, wanted))
    assert covers(patched, wanted)
    assert covers(live, wanted) is (merge_patch(live, wanted) == {})


@pytest.mark.parametrize(
    ("live", "wanted", "covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": None}, True),
        ({"a": 1}, {"a": None}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({}, {"a": []}, True),
        ({}, {"a": {}}, False),
        ({}, {"optional": 1}, True),
        ({"optional": 2}, {"optional": 1}, False),
    ],
)
def test_covers(live: Json, wanted: Json, covered: bool) -> None:
    """More may be there, but no more items; None must be absent; an optional field may be missing, not differ."""
    assert covers(live, wanted, ("optional",)) is covered


def test_a_document_to_create_has_no_none() -> None:
    """A None stands for a field that must be absent."""
    assert without_none({"a": None, "b": {"c": None, "d": [None]}}) == {"b": {"d": [None]}}

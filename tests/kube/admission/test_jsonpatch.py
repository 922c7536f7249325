"""JSON patches: what we compute turns the one document into the other."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spinney.api.meta import Json
from spinney.kube.admission.jsonpatch import diff

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.text("a/~", max_size=2)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=4)
)


def apply(document: Any, operations: list[Json]) -> Any:
    """The operations of RFC 6902 that we use, done the plain way."""
    root = {"root": deepcopy(document)}
    for operation in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in f"/root{operation['path']}".split("/")[1:]]
        at: Any = root
        for part in parts[:-1]:
            at = at[int(part)] if isinstance(at, list) else at[part]
        last = parts[-1]
        if isinstance(at, list):
            _apply_to_list(at, last, operation)
        elif operation["op"] == "remove":
            del at[last]
        else:
            at[last] = operation["value"]
    return root["root"]


def _apply_to_list(at: list[Any], last: str, operation: Json) -> None:
    if operation["op"] == "remove":
        del at[int(last)]
    elif operation["op"] == "add":
        at.append(operation["value"])
    else:
        at[int(last)] = operation["value"]


def test_only_what_differs() -> None:
    """A patch touches nothing that stays."""
    before = {"metadata": {"labels": {"a/b": "1"}}, "spec": {"list": [1, 2, 3]}}
    after = {"metadata": {"labels": {"a/b": "2", "c": "3"}}, "spec": {"list": [1, 5]}}
    assert diff(before, after) == [
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "add", "path": "/metadata/labels/c", "value": "3"},
        {"op": "replace", "path": "/spec/list/1", "value": 5},
        {"op": "remove", "path": "/spec/list/2"},
    ]


@given(DOCUMENTS, DOCUMENTS)
def test_any_document_becomes_any_other(before: Any, after: Any) -> None:
    """Applied to the one, the patch gives the other; between equals it is empty."""
    operations = diff(before, after)
    assert apply(before, operations) == after
    assert diff(after, deepcopy(after)) == []

"""Bodies that are no JSON or YAML, too deep, too many or too large, and patches without end."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.meta import Json
from tests import make
from tests.embedded.conftest import APPLY, JSON_PATCH, MAPS, MERGE, STRATEGIC, Asker


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        (b"", "Input data was truncated (<empty>)"),
        (b"{", "Input data was truncated ({)"),
        (b'{"a":tru}', 'JSON is malformed: invalid character (byte 9) ({"a":tru})'),
        (b"[1 2]", "JSON is malformed: expected ',' or ']' (byte 3) (5b3120325d)"),
        (b'{"a":1} x', 'JSON is malformed: trailing characters (byte 9) ({"a":1} x)'),
        (b"[]", "expected an object, got an array (5b5d)"),
        (b'{"kind":1}', 'kind: expected a string, got a number ({"kind":1})'),
    ],
)
async def test_what_is_no_json(ask: Asker, body: bytes, ending: str) -> None:
    """A body that does not parse is a bad request that says what is wrong, and where."""
    answer = await ask("POST", MAPS, body)
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert answer.message.endswith(ending)


@pytest.mark.parametrize("kind", ["application/json", "application/yaml", MERGE, JSON_PATCH, STRATEGIC, APPLY])
@pytest.mark.parametrize("shape", [b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b"[" * 10_000 + b"]" * 10_000])
async def test_deep_nesting(ask: Asker, kind: str, shape: bytes) -> None:
    """Ten thousand levels are refused, in every language."""
    await ask("POST", MAPS, {"metadata": {"name": "m"}})
    method, path = ("POST", MAPS) if kind in ("application/json", "application/yaml") else ("PATCH", f"{MAPS}/m")
    answer = await ask(method, f"{path}?fieldManager=x", shape, kind=kind)
    assert 400 <= answer.status < 500
    assert (await ask("GET", f"{MAPS}/m")).status == 200


BOMB = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"a: " + b"[" * 60_000, "more than 128 levels deep"),
        (b"- " * 300 + b"x", "more than 128 levels deep"),
        (BOMB, "more than 20000 values, aliases expanded"),
        (b"a: &a [*a]", "anchor 'a' contains itself"),
    ],
)
@pytest.mark.parametrize(("method", "kind"), [("POST", "application/yaml"), ("PATCH", APPLY)])
async def test_yaml_that_stopped_the_process(ask: Asker, body: bytes, problem: str, method: str, kind: str) -> None:
    """Depth and expanded size are bounded before anything is composed; a review is read from anyone who may log in."""
    path = MAPS if method == "POST" else f"{MAPS}/m?fieldManager=x"
    answer = await ask(method, path, body, kind=kind)
    assert answer.status == 400
    assert problem in answer.message
    assert (await ask("GET", MAPS)).status == 200


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"a: 0x" + b"f" * 3000, "a number has more than 400 digits"),
        (b"%TAG !a! b\n---\na: 1", "%TAG directives are not supported"),
        (b"a: !!bool x", "'x' is no bool"),
        (b"a: !!set {a}", "is not supported"),
        (b"a: .inf", "is not a number that JSON has"),
        (b"a: *b", "unknown anchor 'b'"),
        (b"[a]: 1", "a key must be a string"),
    ],
)
async def test_yaml_that_froze_the_process_or_ended_in_an_exception(ask: Asker, body: bytes, problem: str) -> None:
    """Numbers, tags and directives that PyYAML reads in quadratic time, or into what JSON does not have."""
    answer = await ask("POST", MAPS, body, kind="application/yaml")
    assert answer.status == 400
    assert problem in answer.message


async def test_text_that_yaml_1_1_reads_as_a_number_of_base_sixty(ask: Asker) -> None:
    """It is a text, as for Kubernetes; reading it as a number took minutes."""
    body = b"metadata: {name: m}\ndata: {a: 1" + b":1" * 5000 + b"}\n"
    answer = await ask("POST", MAPS, body, kind="application/yaml")
    assert (answer.status, answer["data"]["a"]) == (201, "1" + ":1" * 5000)


async def test_more_values_than_one_object_may_have(ask: Asker) -> None:
    """The work for one request is bounded by the number of its values, not only by its bytes."""
    answer = await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {f"k{n}": "" for n in range(60_000)}})
    assert answer.status == 413
    assert "values, limit is 50000" in answer.message


@pytest.mark.parametrize(
    "operations",
    [
        # Each copy doubles what is copied next.
        [{"op": "add", "path": "/x", "value": ["a"]}, *[{"op": "copy", "from": "/x", "path": "/x/-"}] * 60],
        [{"op": "add", "path": "/x", "value": [1] * 30_000}, *[{"op": "add", "path": "/x/0", "value": 1}] * 4_000],
    ],
)
async def test_patches_whose_operations_copy_without_end(ask: Asker, operations: list[Json]) -> None:
    """All operations of one patch together copy a bounded number of values."""
    await ask("POST", MAPS, {"metadata": {"name": "m"}})
    answer = await ask("PATCH", f"{MAPS}/m", operations, kind=JSON_PATCH)
    assert answer.status == 413
    assert "copy more than 1000000 values" in answer.message


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (JSON_PATCH, [{"op": "move", "from": 5, "path": "/a"}]),
        (JSON_PATCH, [{"op": "copy", "from": None, "path": "/a"}]),
        (JSON_PATCH, [{"op": "replace", "path": "/metadata/finalizers/²", "value": "a.b/c"}]),
        (STRATEGIC, {"$retainKeys": 5}),
        (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}),
        (STRATEGIC, {"metadata": {"$setElementOrder/finalizers": 5}}),
    ],
)
async def test_patches_that_ended_in_an_exception(ask: Asker, kind: str, patch: Any) -> None:
    """A member of a patch of another type than it must have is the client's mistake."""
    await ask("POST", MAPS, {"metadata": {"name": "m", "finalizers": ["a.b/c"]}})
    assert 400 <= (await ask("PATCH", f"{MAPS}/m", patch, kind=kind)).status < 500


@pytest.mark.parametrize("entry", [{"fieldsV1": {"f:data": 5}}, {"manager": "a", "fieldsV1": {"k:{": {}}}])
async def test_entries_of_managed_fields_that_cannot_be_read(ask: Asker, entry: Json) -> None:
    """They are ignored, and every later write of the object goes on."""
    await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
    document = {"metadata": {"managedFields": [{"apiVersion": "v1", "operation": "Update", **entry}]}}
    assert (await ask("PATCH", f"{MAPS}/m", document, kind=MERGE)).status == 200
    assert (await ask("PATCH", f"{MAPS}/m", {"data": None}, kind=MERGE)).status == 200


async def test_a_resource_version_in_another_script(ask: Asker) -> None:
    """Only ASCII digits are a version."""
    answer = await ask("GET", f"{MAPS}?watch=1&resourceVersion=%C2%B2&timeoutSeconds=1")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert "is not a resource version" in answer.message


async def test_a_large_list_in_yaml_is_json(ask: Asker) -> None:
    """JSON is YAML; to write it anew would stop everybody else."""
    await ask("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "x" * 100_000}})
    answer = await ask("GET", MAPS, accept="application/yaml")
    assert answer.status == 200
    assert answer["kind"] == "ConfigMapList"


async def test_aliases_within_bounds_are_expanded(ask: Asker) -> None:
    """An anchor may be used several times."""
    body = b"metadata: {name: m, labels: &l {a: b}, annotations: *l}\n"
    answer = await ask("POST", MAPS, body, kind="application/yaml")
    assert (answer.status, answer["metadata"]["annotations"]) == (201, {"a": "b"})


async def test_a_large_body(ask: Asker) -> None:
    """More than three megabytes is too much."""
    answer = await ask("POST", MAPS, b'{"metadata":{"name":"m"},"data":{"k":"' + b"x" * 50_000_000 + b'"}}')
    assert (answer.status, answer["reason"]) == (413, "RequestEntityTooLarge")
    assert answer.message == "Request entity too large: limit is 3145728"


@pytest.mark.parametrize("patch", [b"{", b'{"spec":\xff}', b"[]", b"[" * 5000, b"5"])
@pytest.mark.parametrize("kind", [MERGE, STRATEGIC, JSON_PATCH])
async def test_a_patch_of_a_scale_that_is_no_json_ended_in_an_exception(ask: Asker, kind: str, patch: bytes) -> None:
    """It is the client's mistake, as for every other patch; found by inputs that coverage guided."""
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": make.pod("p").build()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert (await ask("POST", sets, {"metadata": {"name": "r"}, "spec": spec})).status == 201
    answer = await ask("PATCH", f"{sets}/r/scale", patch, kind=kind)
    # An empty list of operations changes nothing.
    assert answer.status == 200 if (kind, patch) == (JSON_PATCH, b"[]") else 400 <= answer.status < 500


@pytest.mark.parametrize(
    "body",
    [
        f"data:\n  a: &a {'x' * 50_000}\n" + "".join(f"  b{n}: *a\n" for n in range(100)),
        f"a: &a\n  ? {'x' * 50_000}\n  : 1\nb:\n" + "- *a\n" * 100,
        f"a: &a {'x' * 50_000}\nb:\n" + "  ? *a\n  : 1\n" * 100,
    ],
)
async def test_aliases_of_a_long_text_filled_the_memory(ask: Asker, body: str) -> None:
    """What aliases stand for is bounded in characters, not only in values, wherever they are."""
    answer = await ask("POST", MAPS, body.encode(), kind="application/yaml")
    assert answer.status == 400
    assert "aliases stand for more than 4194304 characters" in answer.message

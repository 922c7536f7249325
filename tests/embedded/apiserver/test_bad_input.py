"""Whatever comes in, the server answers as Kubernetes would, and stays up."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from spinney.api.meta import Json
from spinney.kube.chance import Chance
from tests import make
from tests.embedded.conftest import APPLY, JSON_PATCH, MAPS, MERGE, PODS, STRATEGIC, Asker

BUDGET = 1500
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.pop("group"),
        lambda spec: spec.update(scope="Everywhere"),
        lambda spec: spec.update(versions=[]),
        lambda spec: spec["versions"][0].update(storage=False),
        lambda spec: spec["versions"][0].pop("schema"),
        lambda spec: spec["versions"][0]["schema"].update(openAPIV3Schema={"type": "string"}),
        lambda spec: spec["versions"][0]["schema"]["openAPIV3Schema"].update(properties={"spec": {}}),
        lambda spec: spec["names"].update(plural="Not A Name"),
        lambda spec: spec["versions"][0]["schema"]["openAPIV3Schema"].update(
            {"x-kubernetes-validations": [{"rule": "self.("}]}
        ),
    ],
)
async def test_bad_definitions(ask: Asker, change: Callable[[Any], None]) -> None:
    """A definition that makes no sense is refused and serves nothing."""
    definition = make.crd("x.io", "Thing", {"type": "object"})
    change(definition["spec"])
    answer = await ask("POST", CRDS, definition)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert (await ask("GET", "/apis/x.io/v1/things")).status == 404


LEAVES: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63,
    1.5,
    "",
    "x" * 300,
    "\x00",
    "ü/%$",
    [],
    {},
    [{}],
    {"": None},
    {"a": {"b": []}},
)


def spoiled(document: Any, chance: Chance) -> Any:
    """A copy of a document with one value, anywhere in it, replaced by something else."""
    copy = msgspec.json.decode(msgspec.json.encode(document))
    node, places = copy, 0
    while isinstance(node, dict | list) and node and places < 8:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = keys[int(chance.random() * len(keys))]
        below = node[key]
        if not isinstance(below, dict | list) or not below or chance.random() < 0.3:
            node[key] = LEAVES[int(chance.random() * len(LEAVES))]
            return copy
        node, places = below, places + 1
    return LEAVES[int(chance.random() * len(LEAVES))]


async def test_wrong_values_anywhere(ask: Asker) -> None:
    """Values of wrong types, anywhere in an object or a patch, never break the server."""
    chance = Chance(7)
    pod = make.pod("p").request(cpu="1").label("a", "b").gate("x.io/g").build()
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
        "spec": {
            "replicas": 1,
            "selector": {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
            },
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]},
        },
    }
    definition = make.crd("x.io", "Thing", {"type": "object", "properties": {"spec": {"type": "object"}}})
    seeds = [
        ("/api/v1/namespaces/default/pods", pod),
        ("/apis/apps/v1/namespaces/default/deployments", deployment),
        (CRDS, definition),
        ("/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
    ]
    for number in range(BUDGET):
        path, document = seeds[number % len(seeds)]
        answer = await ask("POST", f"{path}?dryRun=All", spoiled(document, chance))
        assert answer.status < 500, (answer.body, number)
    await ask("POST", PODS, pod)
    operations = [
        {"op": "add", "path": "/metadata/labels/x", "value": "y"},
        {"op": "remove", "path": "/spec/containers/0"},
    ]
    patches = {
        MERGE: {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "main"}]}},
        STRATEGIC: {"spec": {"containers": [{"name": "main", "image": "y"}]}, "metadata": {"finalizers": ["a.b/c"]}},
        JSON_PATCH: operations,
        APPLY: pod,
    }
    for number in range(BUDGET):
        kind = list(patches)[number % len(patches)]
        path = f"{PODS}/p?dryRun=All&fieldManager=m"
        answer = await ask("PATCH", path, spoiled(patches[kind], chance), kind=kind)
        assert answer.status < 500, (answer.body, number)
    assert (await ask("GET", f"{PODS}/p")).status == 200


async def test_random_bytes_and_selectors(ask: Asker) -> None:
    """Random bodies and queries are answered, whatever is in them."""
    chance = Chance(11)
    letters = b'{}[]":,\\ntruefalse0123456789-+.eE \n\x00\xff'
    for number in range(BUDGET):
        body = bytes(letters[int(chance.random() * len(letters))] for _ in range(int(chance.random() * 40)))
        kind = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")[number % 3]
        assert (await ask("POST", MAPS, body, kind=kind)).status < 500
    marks = "a=!,()<> in notin==.-/"
    for _ in range(BUDGET):
        text = "".join(marks[int(chance.random() * len(marks))] for _ in range(int(chance.random() * 12)))
        for name in ("labelSelector", "fieldSelector", "continue", "limit", "resourceVersion", "resourceVersionMatch"):
            answer = await ask("GET", f"{PODS}?{name}={text.replace('&', '')}")
            assert answer.status < 500, (name, text, answer.body)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": 5}}),
        (f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": "n"}),
        (f"{PODS}/p/binding", {"metadata": 7, "target": {"name": "n"}}),
        (f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": [1]}),
        (f"{PODS}/p/eviction", {"metadata": [], "deleteOptions": {"gracePeriodSeconds": "x"}}),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": 7}}),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": "x"}}),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"groups": 5, "user": {}}}),
        ("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"expirationSeconds": "long"}}),
    ],
)
async def test_a_field_of_a_wrong_type_was_stored_or_an_error_of_ours(ask: Asker, path: str, body: Any) -> None:
    """A binding to node 5 made every watch of pods unreadable; reviews and evictions answered 500."""
    await ask("POST", PODS, make.pod("p").build())
    await ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    answer = await ask("POST", path, body)
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert "expected" in answer.message


THINGS = "/apis/x.io/v1/namespaces/default/things"
THING = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}


@pytest.mark.parametrize("rule", [{"pattern": "^(a+)+$"}, {"not": {"pattern": r"^\W*(a+)+\W$"}}])
async def test_a_pattern_that_froze_the_server(ask: Asker, rule: dict[str, Any]) -> None:
    """The patterns of definitions are matched in time linear in the value."""
    schema = {"type": "object", "properties": {"text": {"type": "string", **rule}}}
    assert (await ask("POST", CRDS, make.crd("x.io", "Thing", schema))).status == 201
    answer = await ask("POST", THINGS, {**THING, "text": "a" * 10_000 + "!"})
    assert answer.status == 422


@pytest.mark.parametrize(
    ("schema", "value", "status"),
    [
        ({"pattern": r"^\s$"}, "\u2003", 422),
        ({"pattern": r"^\s$"}, " ", 201),
        ({"pattern": r"^[\d]+$"}, "٣", 422),
        ({"not": {"pattern": r"^\d$"}}, "5", 422),
        ({"oneOf": [{"pattern": r"^\d"}, {"pattern": "^5"}]}, "5", 422),
        ({"anyOf": [{"pattern": r"^\d"}, {"pattern": "^5"}]}, "5", 201),
    ],
)
async def test_patterns_mean_what_go_means(ask: Asker, schema: dict[str, Any], value: str, status: int) -> None:
    """The compiled check of a schema never decides where its engine and Go differ."""
    spec = {"type": "object", "properties": {"text": {"type": "string", **schema}}}
    await ask("POST", CRDS, make.crd("x.io", "Thing", spec))
    assert (await ask("POST", THINGS, {**THING, "text": value})).status == status


@pytest.mark.parametrize(
    "token",
    [b'{"x":' + b"[" * 5000, b"[" * 5000, b'{"rv":99999999999,"start":"x"}', b'{"rv":1,"start":[]}', b"\xff"],
)
async def test_a_continue_token_that_ended_in_an_exception(ask: Asker, token: bytes) -> None:
    """Deep JSON, a version from the future and wrong types are the client's mistakes."""
    answer = await ask("GET", f"{PODS}?continue={base64.urlsafe_b64encode(token).decode()}")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")
    assert "invalid continue token" in answer.message


@pytest.mark.parametrize("amount", ["9" * 100_000, "9" * 300, "9" * 40])
async def test_a_quantity_of_thousands_of_digits_ended_in_an_exception(ask: Asker, amount: str) -> None:
    """One that no code after this could read is refused; one that is only too large is capped."""
    answer = await ask("POST", PODS, make.pod("p").request(cpu=amount).build())
    if len(amount) > 256:
        assert (answer.status, "quantities must match" in answer.message) == (400, True)
    else:
        assert answer["spec"]["containers"][0]["resources"]["requests"]["cpu"] == str(2**63 - 1)


@pytest.mark.parametrize("moment", ["2026-99-99T99:99:99Z", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z"])
async def test_a_day_that_no_calendar_has_was_stored(ask: Asker, moment: str) -> None:
    """Nothing that reads it later could."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
    await ask("POST", PODS, make.pod("p").build())
    answer = await ask("PATCH", f"{PODS}/p/status", {"status": {"conditions": [condition]}}, kind=MERGE)
    assert (answer.status, "is not a time as in RFC 3339" in answer.message) == (422, True)


async def test_the_last_days_of_a_month(ask: Asker) -> None:
    """They are days like others."""
    days = ["2026-01-31T00:00:00Z", "2026-04-30T23:59:59Z", "2028-02-29T00:00:00Z"]
    conditions = [{"type": f"T{n}", "status": "True", "lastTransitionTime": day} for n, day in enumerate(days)]
    await ask("POST", PODS, make.pod("p").build())
    answer = await ask("PATCH", f"{PODS}/p/status", {"status": {"conditions": conditions}}, kind=MERGE)
    assert [each["lastTransitionTime"] for each in answer["status"]["conditions"]] == days


def _any_of_two(levels: int) -> Json:
    schema: Json = {"required": ["a"]}
    for _ in range(levels):
        schema = {"anyOf": [schema, schema]}
    return schema


HEAVY = "^(a|b)*a(a|b){200}c$"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, **_any_of_two(12)}, {"a": None}),
        ({"type": "string", "pattern": HEAVY}, "ab" * 40_000),
        ({"type": "array", "items": {"type": "string", "pattern": HEAVY}}, ["ab" * 1000] * 100),
        ({"type": "array", "items": {"type": "string", "allOf": [{"pattern": HEAVY}] * 50}}, ["ab" * 100] * 100),
    ],
)
async def test_a_schema_whose_checks_took_minutes(ask: Asker, schema: Json, value: Any) -> None:
    """The checks of one object are counted, those of alternatives and the states of patterns included."""
    await ask("POST", CRDS, make.crd("x.io", "Thing", {"type": "object", "properties": {"value": schema}}))
    answer = await ask("POST", THINGS, {**THING, "value": value})
    assert (answer.status, "takes too long to check" in answer.message) == (422, True)


async def test_rules_by_the_hundred_thousand(ask: Asker) -> None:
    """What all rules of one object cost together is bounded, in Kubernetes' words."""
    rule = {"rule": "self.matches('^(a+)+$')"}
    text = {"type": "string", "x-kubernetes-validations": [rule] * 30}
    schema = {"type": "object", "properties": {"value": {"type": "array", "items": text}}}
    assert (await ask("POST", CRDS, make.crd("x.io", "Thing", schema))).status == 201
    answer = await ask("POST", THINGS, {**THING, "value": ["a"] * 5000})
    assert (answer.status, "running out of cost budget" in answer.message) == (422, True)


async def test_a_multiple_of_zero_ended_in_an_exception(ask: Asker) -> None:
    """JSON schema does not allow it; its definition is read all the same."""
    number = {"type": "number", "multipleOf": 0}
    schema = {"type": "object", "properties": {"value": number}}
    assert (await ask("POST", CRDS, make.crd("x.io", "Thing", schema))).status < 500
    assert (await ask("POST", THINGS, {**THING, "value": 1})).status < 500


@pytest.mark.parametrize("form", ["duration", "hostname", "email", "ipv6", "cidr", "mac", "uuid", "date-time"])
async def test_a_format_that_took_quadratic_time(ask: Asker, form: str) -> None:
    """A text that is longer than any of its format is none."""
    text = {"type": "string", "format": form}
    await ask("POST", CRDS, make.crd("x.io", "Thing", {"type": "object", "properties": {"value": text}}))
    assert (await ask("POST", THINGS, {**THING, "value": "1" * 500_000})).status == 422


async def test_an_image_that_took_quadratic_time(ask: Asker) -> None:
    """It has no tag that matters."""
    pod = make.pod("p").build()
    pod["spec"]["containers"][0]["image"] = "A" * 100_000
    assert (await ask("POST", PODS, pod)).status == 201


async def test_a_quota_of_thousands_of_names_slowed_every_later_write(ask: Asker) -> None:
    """Usage is counted for each name after every change in the namespace, so there are at most a thousand."""
    quotas = "/api/v1/namespaces/default/resourcequotas"
    hard = {f"a.b/c{number}": "1" for number in range(1001)}
    answer = await ask("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    assert (answer.status, answer["details"]["causes"][0]["field"]) == (422, "spec.hard")
    hard.popitem()
    assert (await ask("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})).status == 201


async def test_a_token_that_is_no_ascii_ended_in_an_exception(ask: Asker) -> None:
    """It is none of ours, whatever it is."""
    nobody = Asker(ask.server, user=None)
    assert (await nobody("GET", "/api", authorization="Bearer \u00ff.\u00fe.\udcff")).status == 401


@pytest.mark.parametrize("path", ["/api/v1/nodes/n/proxy", "/api/v1/namespaces/default/services/s/proxy/x"])
async def test_the_right_to_a_proxy_read_and_wrote_the_object_itself(ask: Asker, path: str) -> None:
    """Nothing listens behind a simulated node or service: no method does anything there."""
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}
    await ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    await ask("POST", "/api/v1/namespaces/default/services", service)
    stored = path.partition("/proxy")[0]
    before = (await ask("GET", stored)).body
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE"):
        answer = await ask(
            method, path, {**before, "metadata": {**before["metadata"], "labels": {"a": "b"}}}, kind=MERGE
        )
        assert (answer.status, answer.message) == (400, "address not allowed")
    assert (await ask("GET", stored)).body == before


async def test_defaults_of_a_long_list_filled_the_memory(ask: Asker) -> None:
    """Thousands of empty items may ask for kilobytes of defaults each: that is refused before it is made."""
    members = {f"p{number}": {"type": "string", "default": "y" * 1000} for number in range(100)}
    items = {"type": "array", "items": {"type": "object", "properties": members}}
    schema = {"type": "object", "properties": {"value": items}}
    assert (await ask("POST", CRDS, make.crd("x.io", "Thing", schema))).status == 201
    assert (await ask("POST", THINGS, {**THING, "value": [{}]})).status == 201
    answer = await ask("POST", THINGS, {**THING, "value": [{}] * 40_000})
    assert (answer.status, answer["reason"]) == (413, "RequestEntityTooLarge")


LONG = "k" * 40_000
LONG_KEY = {LONG: {f"a{n}": n for n in range(1_000)}}
THINGS = "/apis/x.io/v1/namespaces/default/things"


@pytest.mark.parametrize(
    ("method", "kind", "body"),
    [
        ("POST", "application/json", {"apiVersion": "x.io/v1", "kind": "Thing", "spec": LONG_KEY}),
        ("PATCH", APPLY, {"apiVersion": "x.io/v1", "kind": "Thing", "spec": LONG_KEY}),
        ("PATCH", MERGE, {"spec": LONG_KEY}),
        ("PATCH", JSON_PATCH, [{"op": "add", "path": f"/spec/{LONG}", "value": LONG_KEY[LONG]}]),
    ],
)
async def test_a_long_key_filled_the_memory(ask: Asker, method: str, kind: str, body: Any) -> None:
    """Each error, conflict and owned field names the keys above it: 1,000 fields took 40 MB, 40,000 all there is."""
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": texts}}}
    await ask("POST", CRDS, make.crd("x.io", "Thing", schema))
    await ask.settle()
    await ask("POST", THINGS, {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}})
    path = THINGS if method == "POST" else f"{THINGS}/t?fieldManager=m"
    answer = await ask(method, path, body, kind=kind)
    assert (answer.status, answer["reason"]) == (413, "RequestEntityTooLarge")
    assert "the paths of its fields have more than" in answer.message


@pytest.mark.parametrize("validation", ["Strict", "Warn"])
async def test_fields_repeated_by_the_thousand_filled_the_memory(ask: Asker, validation: str) -> None:
    """Each was told with its path, however long, and all of them in one header: a hundred are, as by Kubernetes."""
    repeated = ",".join(['"a":1'] * 5_000)
    body = f'{{"metadata":{{"name":"m"}},"{LONG}":{{{repeated}}}}}'.encode()
    answer = await ask("POST", f"{MAPS}?fieldValidation={validation}", body)
    text = answer.message if validation == "Strict" else answer.headers["warning"]
    assert 0 < text.count("field") <= 100
    assert len(answer.headers.get("warning", "")) < 8_192


async def test_json_that_is_no_yaml_ended_in_an_exception(ask: Asker) -> None:
    """A body of YAML is read as JSON first, and YAML has shorter keys; repeated ones were looked for in YAML only."""
    body = f'{{"metadata":{{"name":"m","name":"m"}},"{LONG}":1}}'.encode()
    assert (await ask("POST", MAPS, body, kind="application/yaml")).status == 201


async def test_retained_keys_by_the_thousand_took_quadratic_time(ask: Asker) -> None:
    """Each key of a patch is looked up once."""
    await ask("POST", MAPS, {"metadata": {"name": "m"}})
    names = {f"k{n}": "" for n in range(20_000)}
    answer = await ask("PATCH", f"{MAPS}/m", {"data": {"$retainKeys": [*names], **names}}, kind=STRATEGIC)
    assert len(answer["data"]) == 20_000


@pytest.mark.parametrize("query", ["timeoutSeconds=", "limit=", "watch=true&timeoutSeconds="])
async def test_a_number_of_hundreds_of_digits_ended_in_an_exception(ask: Asker, query: str) -> None:
    """A number of a query has 64 bits; 400 digits ended a watch in an exception, and left it open."""
    answer = await ask("GET", f"{PODS}?{query}{'9' * 400}")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("key", ["v:" + "[" * 50_000, "k:" + '{"a":' * 50_000])
async def test_a_field_path_of_thousands_of_levels_ended_in_an_exception(ask: Asker, key: str) -> None:
    """Entries that cannot be read are ignored, like other bad ones."""
    await ask("POST", MAPS, {"metadata": {"name": "m"}})
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsV1": {key: {}}}
    answer = await ask("PUT", f"{MAPS}/m", {"metadata": {"name": "m", "managedFields": [entry]}})
    assert answer.status == 200
    assert "x" not in [each["manager"] for each in answer["metadata"].get("managedFields", ())]


async def test_a_last_applied_configuration_of_thousands_of_levels_ended_in_an_exception(ask: Asker) -> None:
    """One that cannot be read is none."""
    last = {"kubectl.kubernetes.io/last-applied-configuration": "[" * 50_000}
    await ask("POST", MAPS, {"metadata": {"name": "m", "annotations": last}})
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    answer = await ask("PATCH", f"{MAPS}/m?fieldManager=kubectl", applied, kind=APPLY)
    assert (answer.status, answer["data"]) == (200, {"a": "b"})


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-10:00"])
async def test_a_time_beyond_all_years_ended_in_an_exception(ask: Asker, moment: str) -> None:
    """In UTC, there is no such year."""
    answer = await ask("POST", MAPS, {"metadata": {"name": "m", "creationTimestamp": moment}})
    assert (answer.status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1])
async def test_a_pod_that_may_take_ages_to_stop_could_not_be_deleted(ask: Asker, seconds: int) -> None:
    """The time by which it has to stop was no date."""
    spec = {"nodeName": "n", "terminationGracePeriodSeconds": seconds, "containers": [{"name": "c", "image": "c"}]}
    assert (await ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})).status == 201
    for options in (None, {"gracePeriodSeconds": seconds}):
        answer = await ask("DELETE", f"{PODS}/p", options)
        assert (answer.status, answer["metadata"]["deletionGracePeriodSeconds"]) == (200, 2**31 - 1)


async def test_operations_that_go_deeper_and_deeper(ask: Asker) -> None:
    """Each operation of a patch may add what a body may have, below what the one before it added."""
    await ask("POST", CRDS, make.crd("x.io", "Thing", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    await ask.settle()
    await ask("POST", THINGS, {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}})
    value = msgspec.json.decode('{"a":' * 100 + "{}" + "}" * 100)
    operations = [{"op": "add", "path": "/a" * (1 + 101 * n), "value": value} for n in range(12)]
    answer = await ask("PATCH", f"{THINGS}/t", operations, kind=JSON_PATCH)
    assert (answer.status, answer.message) == (400, "error applying patch: exceeded max depth")


async def test_a_column_of_strange_values_ended_in_an_exception(ask: Asker) -> None:
    """A date without a time zone is no date, and an index of thousands of digits selects nothing."""
    definition = make.crd("x.io", "Thing", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": "Day", "type": "date", "jsonPath": ".day"},
        {"name": "Item", "type": "string", "jsonPath": f".list[{'9' * 900}]"},
    ]
    await ask("POST", CRDS, definition)
    await ask.settle()
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "day": "2026-01-01", "list": [1]}
    await ask("POST", THINGS, thing)
    answer = await ask("GET", THINGS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert answer["rows"][0]["cells"][:2] == ["t", "<invalid>"]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("additionalPrinterColumns", [{"name": "A", "type": "string", "jsonPath": ".a"}] * 101),
        ("additionalPrinterColumns", [{"name": "A", "type": "string", "jsonPath": "." + "a" * 2_000}]),
        ("selectableFields", [{"jsonPath": f".f{n}"} for n in range(9)]),
        ("subresources", {"scale": {"specReplicasPath": ".spec" + ".a" * 1_000, "statusReplicasPath": ".status.n"}}),
    ],
)
async def test_columns_by_the_thousand_stopped_everybody_else(ask: Asker, member: str, value: Any) -> None:
    """Every row of a list has all columns, and every write looks up all selectable fields."""
    fields = {f"f{n}": {"type": "string"} for n in range(9)}
    definition = make.crd("x.io", "Thing", {"type": "object", "properties": fields})
    definition["spec"]["versions"][0][member] = value
    answer = await ask("POST", CRDS, definition)
    assert (answer.status, answer["reason"]) == (422, "Invalid")
    assert "Too many" in answer.message or "Too long" in answer.message


@pytest.mark.parametrize("name", ["a\nb", "a\r\nSet-Cookie: b", "a\x00b", "a\x7fb"])
async def test_a_field_with_a_line_break_ended_the_connection(ask: Asker, name: str) -> None:
    """The warning of an unknown field is a header, which cannot hold it: the object was stored, and nobody was told."""
    answer = await ask("POST", MAPS, {"metadata": {"name": "m"}, name: 1, "other": 1})
    assert (answer.status, answer.headers["warning"]) == (201, '299 - "unknown field \\"other\\""')

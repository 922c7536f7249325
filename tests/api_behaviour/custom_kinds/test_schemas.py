"""What schemas of custom resources can say: formats of texts, embedded objects, and functions that rules may use."""

from __future__ import annotations

from typing import Any

from tests import make
from tests.api_behaviour.crds import CRDS, at, install
from tests.api_behaviour.wire import Api, Json

# Each format with texts that have it, and texts that do not.
FORMATS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "date-time": (("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5+01:00"), ("2020-13-01T00:00:00Z", "2020-01-01", "x")),
    "date": (("2020-02-29",), ("2021-02-29", "2020-1-1")),
    "duration": (("1h30m", "1d"), ("x",)),
    "byte": (("YQ==",), ("a", "!")),
    "uuid": (("123e4567-e89b-12d3-a456-426614174000",), ("x",)),
    "ipv4": (("1.2.3.4",), ("1.2.3", "::1")),
    "ipv6": (("::1",), ("1.2.3.4", "x")),
    "cidr": (("1.2.3.0/24", "::/0"), ("1.2.3.4",)),
    "mac": (("00:11:22:33:44:55",), ("x",)),
    "email": (("a@b.c",), ("a",)),
    "hostname": (("a", "a.example"), ("a.b", "A_b", "-a")),
    "uri": (("http://a", "/a"), ("x", "")),
    "k8s-short-name": (("a",), ("A", "a.b")),
    "k8s-long-name": (("a.b",), ("A",)),
    "password": (("anything",), ()),
    "unheard-of": (("anything",), ()),
}

# Rules over a text, with a value that keeps each and one that breaks it.
RULES: dict[str, tuple[str, str]] = {
    "isIP(self) && ip(self).family() == 4": ("1.2.3.4", "::1"),
    "ip(self).isLoopback() && !ip(self).isGlobalUnicast()": ("127.0.0.1", "1.2.3.4"),
    "cidr(self).containsIP('10.0.0.1')": ("10.0.0.0/8", "11.0.0.0/8"),
    "cidr(self).containsCIDR('10.1.0.0/16') && cidr(self).prefixLength() == 8": ("10.0.0.0/8", "10.1.0.0/16"),
    "isSemver(self) && semver(self).major() >= 1": ("1.0.0", "0.1.0"),
    "semver(self).isGreaterThan(semver('1.2.3-rc.1'))": ("1.2.3", "1.2.3-alpha"),
    "quantity(self).add(quantity('1Gi')).isGreaterThan(quantity('2Gi'))": ("2Gi", "1Gi"),
    "quantity(self).sub(1).asInteger() == 4": ("5", "4"),
    "!format.dns1123Label().validate(self).hasValue()": ("ab", "A_"),
    "url(self).getScheme() == 'https'": ("https://a", "http://a"),
}


def schema(properties: Json, **more: Any) -> Json:
    """A schema whose spec has these properties."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **more}}}


async def serve(api: Api, group: str, namespace: str, properties: Json, **more: Any) -> str:
    """The collection of widgets of a schema."""
    return at(await install(api, make.crd(f"{group}.example.com", "Widget", schema(properties, **more))), namespace)


def widget(path: str, **spec: Any) -> Json:
    """An object for a collection."""
    return {"apiVersion": "/".join(path.split("/")[2:4]), "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


async def test_texts_have_their_format(api: Api, namespace: str) -> None:
    """A text that is not of its format is refused; a format that nobody knows allows every text."""
    names = {form: f"f{number}" for number, form in enumerate(FORMATS)}
    path = await serve(api, "formats", namespace, {names[form]: {"type": "string", "format": form} for form in FORMATS})
    for form, (good, bad) in FORMATS.items():
        for text in good:
            answer = await api.post(path, widget(path, **{names[form]: text}), dryRun="All")
            assert answer.code == 201, (form, text, answer.raw)
        for text in bad:
            answer = await api.post(path, widget(path, **{names[form]: text}), dryRun="All")
            why = f'spec.{names[form]} in body must be of type {form}: "{text}"'
            assert answer.code == 422, (form, text, answer.raw)
            assert answer.message.endswith(why)


async def test_rules_have_the_functions_of_kubernetes(api: Api, namespace: str) -> None:
    """Addresses, networks, versions, quantities, formats and URLs in rules."""
    names = {rule: f"r{number}" for number, rule in enumerate(RULES)}
    properties = {
        names[rule]: {"type": "string", "maxLength": 40, "x-kubernetes-validations": [{"rule": rule}]} for rule in RULES
    }
    path = await serve(api, "libraries", namespace, properties)
    for rule, (good, bad) in RULES.items():
        kept = await api.post(path, widget(path, **{names[rule]: good}), dryRun="All")
        assert kept.code == 201, (rule, kept.raw)
        broken = await api.post(path, widget(path, **{names[rule]: bad}), dryRun="All")
        assert broken.code == 422, (rule, broken.raw)
        assert broken.message.endswith(f'spec.{names[rule]}: Invalid value: "{bad}": failed rule: {rule}')


async def test_moments_and_durations_in_rules(api: Api, namespace: str) -> None:
    """Texts with these formats are compared as what they are, in their own rules and in those above."""
    moment = {"type": "string", "format": "date-time"}
    after = [{"rule": "self > timestamp('2020-01-01T00:00:00Z')", "message": "too early"}]
    longer = [{"rule": "self > duration('1h')", "message": "too short"}]
    properties = {
        "start": {**moment, "x-kubernetes-validations": after},
        "end": moment,
        "lasts": {"type": "string", "format": "duration", "x-kubernetes-validations": longer},
    }
    order = [{"rule": "!has(self.end) || self.end - self.start >= duration('24h')", "message": "less than a day"}]
    path = await serve(api, "moments", namespace, properties, **{"x-kubernetes-validations": order})
    start = "2021-01-01T00:00:00Z"
    (await api.post(path, widget(path, start=start, end="2021-01-02T00:00:00Z", lasts="90m"), dryRun="All")).ok()
    for spec, why in (
        ({"start": "2019-01-01T00:00:00Z"}, 'spec.start: Invalid value: "2019-01-01T00:00:00Z": too early'),
        ({"lasts": "30m"}, 'spec.lasts: Invalid value: "30m": too short'),
        ({"start": start, "end": "2021-01-01T23:00:00Z"}, "spec: Invalid value: less than a day"),
    ):
        answer = await api.post(path, widget(path, **spec), dryRun="All")
        assert answer.code == 422, answer.raw
        assert answer.message.endswith(why)


async def test_a_rule_over_the_whole_object(api: Api, namespace: str) -> None:
    """Its path is nothing; and a division by zero is told."""
    rule = {"rule": "self.metadata.name != 'bad'", "message": "bad name"}
    divided = [{"rule": "10 / self > 1", "message": "too large"}]
    whole = {
        **schema({"by": {"type": "integer", "x-kubernetes-validations": divided}}),
        "x-kubernetes-validations": [rule],
    }
    path = at(await install(api, make.crd("whole.example.com", "Widget", whole)), namespace)
    bad = {**widget(path), "metadata": {"name": "bad"}}
    refused = (await api.post(path, bad, dryRun="All")).refused(422, "Invalid")
    assert refused["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "message": "Invalid value: bad name", "field": "<nil>"}
    ]
    zero = (await api.post(path, widget(path, by=0), dryRun="All")).message
    assert zero.endswith('spec.by: Invalid value: "integer": division by zero evaluating rule: too large')


async def test_an_object_inside_of_an_object(api: Api, namespace: str) -> None:
    """It says what it is, and its metadata is that of any object."""
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    path = await serve(api, "inner", namespace, {"inner": inner})
    head = {"apiVersion": "v1", "kind": "Pod"}
    answer = await api.post(
        path, widget(path, inner={**head, "metadata": {"name": "UP", "foo": 1}, "spec": {"a": 1}}), dryRun="All"
    )
    assert answer.ok()["spec"]["inner"] == {**head, "metadata": {"name": "UP"}, "spec": {"a": 1}}
    assert answer.warnings == '299 - "unknown field \\"spec.inner.metadata.foo\\""'
    nothing = await api.post(path, widget(path, inner={}), dryRun="All")
    assert nothing.message.endswith("[spec.inner.apiVersion: Required value, spec.inner.kind: Required value]")
    labels = await api.post(path, widget(path, inner={**head, "metadata": {"labels": {"a": 1}}}), dryRun="All")
    labels.refused(400, "BadRequest")
    assert labels.message.startswith('Widget in version "v1" cannot be handled as a Widget: spec.inner.metadata')
    wrong = (await api.post(path, widget(path, inner={"apiVersion": "a/b/c", "kind": "1"}), dryRun="All")).message
    assert 'spec.inner.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c' in wrong
    assert 'spec.inner.kind: Invalid value: "1": may have mixed case, but should otherwise match' in wrong


async def test_numbers_and_nulls_as_they_are_kept(api: Api, namespace: str) -> None:
    """A whole number is one however it is written; a null stays where it is allowed, applied or not."""
    properties = {
        "whole": {"type": "integer"},
        "none": {"type": "string", "nullable": True},
        "text": {"type": "string"},
    }
    path = await serve(api, "kept", namespace, properties)
    body = b'{"apiVersion":"%s","kind":"Widget","metadata":{"name":"w"},"spec":{"whole":1e3,"none":null,"text":null}}'
    document = body % "/".join(path.split("/")[2:4]).encode()
    made = await api.call("POST", path, document, dryRun="All")
    assert made.ok()["spec"] == {"whole": 1000, "none": None}
    applied = (await api.apply(f"{path}/w", widget(path, none=None), "m")).ok()
    assert applied["spec"] == {"none": None}
    assert applied["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:none": {}}}


async def test_a_finalizer_without_a_domain_is_warned_of(api: Api, namespace: str) -> None:
    """When it is added, and not again."""
    path = await serve(api, "finalizers", namespace, {})
    document = widget(path)
    document["metadata"]["finalizers"] = ["mine"]
    why = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    made = await api.post(path, document)
    assert made.warnings == f'299 - "metadata.finalizers: \\"mine\\": {why}"'
    assert not (await api.merge(f"{path}/w", {"metadata": {"labels": {"a": "b"}}})).warnings
    (await api.merge(f"{path}/w", {"metadata": {"finalizers": None}})).ok()


async def test_a_default_that_breaks_a_rule(api: Api, namespace: str) -> None:
    """A default has to hold by the rules of its own schema."""
    properties = {"f": {"type": "string", "default": "y", "x-kubernetes-validations": [{"rule": "self == 'x'"}]}}
    answer = await api.post(CRDS, make.crd("asks.example.com", "Widget", schema(properties)), dryRun="All")
    where = "spec.validation.openAPIV3Schema.properties[spec].properties[f].default"
    assert (answer.code, answer.message.partition(" is invalid: ")[2]) == (
        422,
        f"{where}: Invalid value: \"y\": failed rule: self == 'x'",
    )


async def test_columns_say_where_they_come_from(api: Api, namespace: str) -> None:
    """A column without a description names its path; a value that is not of its type is not shown."""
    columns = [
        {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
        {"name": "Flag", "type": "boolean", "jsonPath": ".spec.text"},
        {"name": "Count", "type": "integer", "jsonPath": ".spec.text"},
        {"name": "Size", "type": "number", "jsonPath": ".spec.size", "description": "how large"},
        {"name": "When", "type": "date", "jsonPath": ".spec.size"},
    ]
    properties = schema({"text": {"type": "string"}, "size": {"type": "integer"}})
    crd = make.crd("columns.example.com", "Widget", properties, additionalPrinterColumns=columns)
    path = at(await install(api, crd), namespace)
    (await api.post(path, widget(path, text="a", size=3))).ok()
    table = (await api.with_headers(accept="application/json;as=Table;v=v1;g=meta.k8s.io").get(path)).ok()
    descriptions = [column["description"] for column in table["columnDefinitions"][1:]]
    text = "Custom resource definition column (in JSONPath format): .spec.text"
    size = "Custom resource definition column (in JSONPath format): .spec.size"
    assert descriptions == [text, text, text, "how large", size]
    assert table["rows"][0]["cells"] == ["w", "a", None, None, 3, None]


async def test_the_scale_of_an_object_without_replicas(api: Api, namespace: str) -> None:
    """Is an error, and so is a negative one."""
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    properties = schema({"replicas": {"type": "integer"}})
    crd = make.crd("scaled.example.com", "Widget", properties, subresources={"scale": scale})
    path = at(await install(api, crd), namespace)
    (await api.post(path, widget(path))).ok()
    answer = await api.get(f"{path}/w/scale")
    assert answer.code in (400, 500)
    assert 'the spec replicas field ".spec.replicas" does not exist' in answer.message
    (await api.merge(f"{path}/w", {"spec": {"replicas": 1}})).ok()
    (await api.merge(f"{path}/w/scale", {"spec": {"replicas": -1}})).refused(
        422,
        "Invalid",
        'Widget.scaled.example.com "w" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer',
    )


async def test_selectable_fields_of_a_definition(api: Api) -> None:
    """Each is one field of a plain type, named once."""
    where = "spec.versions[0].selectableFields"
    for paths, why in (
        ((".spec",), f'{where}[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or '),
        ((".spec.a", ".spec.a"), f'{where}[1].jsonPath: Duplicate value: ".spec.a"'),
    ):
        fields = [{"jsonPath": path} for path in paths]
        crd = make.crd("selected.example.com", "Widget", schema({"a": {"type": "string"}}), selectableFields=fields)
        # Where versions share a schema, the server looks for it in another place and says something else.
        other = schema({"a": {"type": "string"}, "b": {"type": "string"}})
        version = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": other}}
        crd["spec"]["versions"].append(version)
        answer = await api.post(CRDS, crd, dryRun="All")
        assert answer.code == 422, answer.raw
        assert why in answer.message

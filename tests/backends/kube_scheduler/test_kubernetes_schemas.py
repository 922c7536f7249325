"""What we write for kube-scheduler, held against the schemas and the rules of each Kubernetes release."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest

from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster
from spinney.backends.kube_scheduler.backend import BACKEND
from spinney.backends.kube_scheduler.releases import GANG_APIS, served_by
from spinney.kube.difference import without_none
from tests import data
from tests.backends import matrix

RELEASES = [release for release in GANG_APIS if release != "1.34"]
LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
MOST_TEMPLATES, MOST_LEVELS = 8, 4


def objects(release: str) -> Iterator[tuple[str, Json]]:
    """Every object of every gang of the matrix, with what it is for."""
    for title, builder in matrix.gangs().items():
        translation = BACKEND.translate(convert(PodGang, builder.build()), Cluster(served_by(release, [BACKEND])))
        for wanted in translation.objects:
            body = without_none(wanted.body)
            yield title, {"apiVersion": wanted.resource.api_version, "kind": wanted.resource.kind, **body}


def closed(schema: Any) -> Any:
    """A schema that refuses fields it does not know."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {**inner, "additionalProperties": False} if isinstance(inner.get("properties"), dict) else inner


def validator(group_version: str, kind: str) -> jsonschema_rs.Validator:
    """The schema of a kind, unknown fields refused, metadata left open."""
    version = group_version.rpartition("/")[2]
    (path,) = data.path("crds/k8s").glob(f"scheduling.k8s.io_{version}_k8s-*.json")
    schemas = deepcopy(json.loads(path.read_text())["schemas"])
    schemas = {name: closed(schema) for name, schema in schemas.items()}
    for shared in ("ObjectMeta", "Condition", "Time"):
        schemas[f"io.k8s.apimachinery.pkg.apis.meta.v1.{shared}"] = {}
    root = {"components": {"schemas": schemas}, "$ref": f"#/components/schemas/io.k8s.api.scheduling.{version}.{kind}"}
    return jsonschema_rs.validator_for(root)


@pytest.mark.parametrize("release", RELEASES)
def test_every_object_has_the_releases_shape(release: str) -> None:
    """No field that the release does not know, and none missing."""
    for title, body in objects(release):
        errors = [error.message for error in validator(body["apiVersion"], body["kind"]).iter_errors(body)]
        assert errors == [], f"{title}: {body['kind']} {body['metadata']['name']}"


@pytest.mark.parametrize("release", RELEASES)
def test_limits_that_no_schema_tells_are_kept(release: str) -> None:
    """Eight templates to a list, four levels, unique names that are DNS labels, one member of each policy."""
    for title, body in objects(release):
        if body["kind"] != "Workload":
            continue
        names = list(template_names(body["spec"]))
        assert len(names) == len(set(names)), title
        assert all(map(LABEL.match, names)), title
        assert all(count <= MOST_TEMPLATES for count in lengths(body["spec"])), title
        assert depth(body["spec"]) <= MOST_LEVELS, title


@pytest.mark.parametrize("release", RELEASES)
def test_policies_have_exactly_one_member_and_a_positive_minimum(release: str) -> None:
    """A gang of 0 is refused by the API server."""
    for title, body in objects(release):
        for policy in policies(body["spec"]):
            (member,) = policy
            counts = policy[member].values() if member == "gang" else [1]
            assert all(count >= 1 for count in counts), title


_LISTS = ("podGroups", "podGroupTemplates", "compositePodGroupTemplates")


def template_names(spec: Json) -> Iterator[str]:
    """The names of all templates of a Workload."""
    for key in _LISTS:
        for template in spec.get(key) or ():
            yield template["name"]
            yield from template_names(template)


def lengths(spec: Json) -> Iterator[int]:
    """The lengths of all lists of templates."""
    for key in _LISTS:
        groups = spec.get(key) or ()
        yield len(groups)
        for template in groups:
            yield from lengths(template)


def depth(spec: Json) -> int:
    """How deep templates nest."""
    below = [depth(template) for key in _LISTS for template in spec.get(key) or ()]
    return 1 + max(below) if below else 0


def policies(value: Any) -> Iterator[Json]:
    """Every policy in a spec."""
    if isinstance(value, list):
        for item in value:
            yield from policies(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("policy", "schedulingPolicy"):
                yield item
            else:
                yield from policies(item)

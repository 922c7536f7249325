"""Our CRDs say what upstream's say: same properties, types, required members and defaults, exemptions listed here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from spinney.api.crd import FOREIGN, OURS, definition
from spinney.api.meta import Json, Object
from tests import data

FILES = {
    "podcliquesets.grove.io": "grove/grove.io_podcliquesets.yaml",
    "podcliques.grove.io": "grove/grove.io_podcliques.yaml",
    "podcliquescalinggroups.grove.io": "grove/grove.io_podcliquescalinggroups.yaml",
    "clustertopologybindings.grove.io": "grove/grove.io_clustertopologybindings.yaml",
    "podgangs.scheduler.grove.io": "grove/scheduler.grove.io_podgangs.yaml",
    "podgroups.scheduling.run.ai": "kai/scheduling.run.ai_podgroups.yaml",
    "queues.scheduling.run.ai": "kai/scheduling.run.ai_queues.yaml",
    "bindrequests.scheduling.run.ai": "kai/scheduling.run.ai_bindrequests.yaml",
    "topologies.kai.scheduler": "kai/kai.scheduler_topologies.yaml",
    "configs.kai.scheduler": "kai/kai.scheduler_configs.yaml",
    "schedulingshards.kai.scheduler": "kai/kai.scheduler_schedulingshards.yaml",
    "podgroups.scheduling.volcano.sh": "volcano/v1.15.1/scheduling.volcano.sh_podgroups.yaml",
    "queues.scheduling.volcano.sh": "volcano/v1.15.1/scheduling.volcano.sh_queues.yaml",
    "hypernodes.topology.volcano.sh": "volcano/v1.15.1/topology.volcano.sh_hypernodes.yaml",
    "podgroups.scheduling.sigs.k8s.io": "koordinator/scheduling.sigs.k8s.io_podgroups.yaml",
    "computedomains.resource.nvidia.com": "workloads/resource.nvidia.com_computedomains.yaml",
}

# Parts of Kubernetes' own types that stay as the user wrote them; their insides are checked where pods are made.
OPAQUE = {"podSpec", "metrics", "affinity"}

# What a user may leave out here and not upstream; docs/differences.md gives the reasons.
RELAXED = {".spec.roleName", ".spec.template.cliques[].spec.roleName"}

COMPARED = ("type", "format", "default", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems")
COMPARED += ("maxItems", "exclusiveMinimum", "x-kubernetes-int-or-string", "x-kubernetes-map-type")


def upstream(name: str) -> Json:
    """The definition that the other project ships."""
    text = data.path(f"crds/{FILES[name]}").read_text()
    document: Json = next(part for part in yaml.load_all(text, Loader=yaml.CSafeLoader) if part)
    return document


def schema(crd: Json) -> Json:
    """The schema of a definition's one version."""
    crd_schema: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return crd_schema


def differences(theirs: Json, ours: Json, path: str = "") -> Iterator[str]:
    """Everything that theirs says and ours does not."""
    for key in COMPARED:
        if key in theirs and theirs[key] != ours.get(key):
            yield f"{path}: {key} {theirs[key]!r} there, {ours.get(key)!r} here"
    if path.rpartition(".")[2] in OPAQUE:
        return
    missing = set(theirs.get("required", ())) - set(ours.get("required", ()))
    yield from (f"{path}.{name}: required there" for name in missing if f"{path}.{name}" not in RELAXED)
    added = set(ours.get("required", ())) - set(theirs.get("required", ()))
    yield from (f"{path}.{name}: required only here" for name in added)
    for name, part in theirs.get("properties", {}).items():
        if name not in ours.get("properties", {}):
            yield f"{path}.{name}: missing here"
        else:
            yield from differences(part, ours["properties"][name], f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in theirs:
            yield from differences(theirs[key], ours.get(key, {}), f"{path}{mark}")


def messages(node: Any) -> Iterator[tuple[str, str]]:
    """Every CEL rule below a node, with its message."""
    if isinstance(node, dict):
        for rule in node.get("x-kubernetes-validations", ()):
            yield rule["rule"], rule["message"]
        for key, part in node.items():
            if key not in OPAQUE:
                yield from messages(part)
    elif isinstance(node, list):
        for part in node:
            yield from messages(part)


@pytest.mark.parametrize("kind", OURS + FOREIGN, ids=lambda kind: f"{kind.resource.plural}.{kind.resource.group}")
class TestLikeUpstream:
    """For each kind that we define."""

    def test_every_property_is_there_with_its_type_default_and_limits(self, kind: type[Object]) -> None:
        """A manifest that upstream's schema accepts means the same to ours."""
        ours = definition(kind)
        assert list(differences(schema(upstream(ours["metadata"]["name"])), schema(ours))) == []

    def test_names_scope_and_subresources_are_the_same(self, kind: type[Object]) -> None:
        """kubectl finds the kind under the same names, and scales it by the same paths."""
        ours = definition(kind)
        theirs = upstream(ours["metadata"]["name"])
        assert ours["spec"]["names"] == theirs["spec"]["names"]
        assert ours["spec"]["scope"] == theirs["spec"]["scope"]
        our_version, other = ours["spec"]["versions"][0], theirs["spec"]["versions"][0]
        assert our_version["name"] == other["name"]
        assert our_version["subresources"] == other.get("subresources", {})

    def test_every_printer_column_is_there(self, kind: type[Object]) -> None:
        """Ours may add columns, never lack one."""
        ours = definition(kind)
        theirs = upstream(ours["metadata"]["name"])
        our_columns = ours["spec"]["versions"][0].get("additionalPrinterColumns", [])
        for column in theirs["spec"]["versions"][0].get("additionalPrinterColumns", []):
            assert column in our_columns

    def test_every_rule_is_there_with_its_message(self, kind: type[Object]) -> None:
        """Tools look for upstream's messages word by word."""
        ours = definition(kind)
        assert set(messages(schema(upstream(ours["metadata"]["name"])))) <= set(messages(schema(ours)))


def test_the_comparison_sees_what_differs() -> None:
    """A comparison that finds nothing anywhere would prove nothing."""
    theirs = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    ours = {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}}
    assert sorted(differences(theirs, ours)) == [
        ".a: missing here",
        ".a: required there",
        ".b: required only here",
        ".b: type 'integer' there, 'string' here",
    ]

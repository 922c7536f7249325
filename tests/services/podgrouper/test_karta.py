"""Kinds that bring their own rule in a Karta."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.meta import Json
from spinney.services.podgrouper.context import Settings
from spinney.services.podgrouper.grouping import GroupingError, Topology
from spinney.services.podgrouper.kinds.jq import ask
from tests.services.podgrouper.grouping import Owners, grouped, leaves, member, workload

ROLE = '.metadata.labels["example.com/role"]'
JOB = workload("example.com/v1", "CustomJob", {"lead": {"replicas": 1}, "crew": {"replicas": 3}})


def component(name: str, role: str = "", **more: Any) -> Json:
    """A part of the workload that has pods."""
    selector = {"componentTypeSelector": {"keyPath": ROLE, "value": role or name}}
    described: Json = {
        "name": name,
        "ownerRef": "job",
        "specDefinition": {"podTemplateSpecPath": f".spec.{name}.template"},
        "scaleDefinition": {"replicasPath": f".spec.{name}.replicas"},
        "podSelector": selector,
    }
    return {**described, **more}


def karta(gang: Json, *children: Json, name: str = "custom") -> Json:
    """A Karta for CustomJobs."""
    kind = {"group": "example.com", "version": "v1", "kind": "CustomJob"}
    structure = {
        "rootComponent": {"name": "job", "kind": kind},
        "childComponents": list(children or (component("lead"), component("crew"))),
    }
    return {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "metadata": {"name": name, "labels": {f"run.ai/karta-{part}": value for part, value in kind.items()}},
        "spec": {"structureDefinition": structure, "optimizationInstructions": {"gangScheduling": gang}},
    }


SUBGROUPS = {"podGroup": {"name": "all", "subGroups": [{"componentName": "lead"}, {"componentName": "crew"}]}}


async def test_components_become_subgroups() -> None:
    """Each named component is a subgroup as large as its replicas; all of them are needed; pods go by selector."""
    group = await grouped(JOB, member({"example.com/role": "crew"}), Owners([karta(SUBGROUPS)]))
    assert group.name == "pg-u-all"
    assert (group.min_member, group.min_subgroup) == (None, 2)
    assert leaves(group) == {"lead": 1, "crew": 3}
    assert group.pod_subgroup == "crew"


async def test_without_subgroups_all_pods_are_the_minimum() -> None:
    """The group's minimum is the scale of the whole workload."""
    group = await grouped(JOB, world=Owners([karta({"podGroup": {"name": "all"}})]))
    assert (group.min_member, group.subgroups) == (4, ())


async def test_a_karta_names_a_topology() -> None:
    """For the group and for each subgroup."""
    rack = {"topologyName": "dc", "requiredTopologyLevel": "rack"}
    zone = {"topologyName": "dc", "preferredTopologyLevel": "zone"}
    gang = {"podGroup": {"name": "all", "topology": zone, "subGroups": [{"componentName": "crew", "topology": rack}]}}
    group = await grouped(JOB, world=Owners([karta(gang)]))
    assert group.topology == Topology("dc", "", "zone")
    assert group.subgroups[0].topology == Topology("dc", "rack", "")


async def test_keys_of_pods_make_groups() -> None:
    """In the older form pods with the same keys are one group, as large as the component at hand."""
    member_of = {"componentName": "crew", "groupByKeyPaths": [ROLE, '.metadata.labels["zone"] // "none"']}
    gang = {"podGroups": [{"name": "crew", "members": [member_of]}]}
    group = await grouped(JOB, member({"example.com/role": "crew"}), Owners([karta(gang)]))
    assert (group.name, group.min_member) == ("pg-u-crew-none", 3)
    with pytest.raises(GroupingError, match="component lead of the pod belongs to no pod group"):
        await grouped(JOB, member({"example.com/role": "lead"}), Owners([karta(gang)]))


async def test_one_instance_of_a_component_counts_for_itself() -> None:
    """Several definitions in one list are told apart by their ids, in the workload and on the pod."""
    services = component(
        "service",
        scaleDefinition={"replicasPath": ".spec.services[] | (.replicas // 1) * (.nodes // 1)"},
        instanceIdPath=".spec.services | to_entries[] | .key",
        podSelector={"componentInstanceSelector": {"idPath": ROLE}},
    )
    by_role = {"componentName": "service", "groupByKeyPaths": [ROLE], "filters": ['.metadata.name != "x"']}
    described = karta({"podGroups": [{"name": "s", "members": [by_role]}]}, services)
    top = workload("example.com/v1", "CustomJob", {"services": {"front": {}, "decode": {"replicas": 2, "nodes": 4}}})
    group = await grouped(top, member({"example.com/role": "decode"}), Owners([described]))
    assert (group.name, group.min_member) == ("pg-u-decode", 8)


@pytest.mark.parametrize(
    ("gang", "children", "message"),
    [
        (SUBGROUPS, (component("lead"),), "component 'crew' is not defined"),
        (SUBGROUPS, (component("lead", scaleDefinition={}), component("crew")), "component lead says nowhere"),
        ({"podGroup": {"name": "a", "topology": {"topologyName": "dc"}}}, (), "needs topologyName and a required or"),
    ],
)
async def test_a_karta_that_cannot_be_followed_says_why(gang: Json, children: tuple[Json, ...], message: str) -> None:
    """The message names the Karta's component."""
    with pytest.raises(GroupingError, match=message):
        await grouped(JOB, world=Owners([karta(gang, *children)]))


async def test_two_kartas_for_a_kind_are_an_error() -> None:
    """Both are named."""
    with pytest.raises(GroupingError, match="Kartas custom, second all tell how to group CustomJob"):
        await grouped(JOB, world=Owners([karta(SUBGROUPS), karta(SUBGROUPS, name="second")]))


async def test_kartas_give_way_to_rules_and_can_be_switched_off() -> None:
    """Without one, or with the fallback off, a kind is grouped by default."""
    assert (await grouped(JOB)).name == "pg-w-u"
    group = await grouped(JOB, world=Owners([karta(SUBGROUPS)]), settings=Settings(karta_fallback=False))
    assert group.name == "pg-w-u"


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        (".a.b", [1]),
        ('.a["b"]', [1]),
        ('."a".b', [1]),
        (".nothing.at.all", [None]),
        (".list[].n", [1, 2]),
        (".list[0].n", [1]),
        (".list[-1].n", [2]),
        (".list | .[] | .n", [1, 2]),
        (".list | length", [2]),
        (".list | map(.n)", [[1, 2]]),
        (".list[] | select(.n > 1) | .n", [2]),
        (".nothing // 7", [7]),
        (".nothing[]? // 7", [7]),
        ("(.a.b // 5) * ((.list | length) - 1) + 2 * 3", [7]),
        ("10 - 2 - 3", [5]),
        ("-1", [-1]),
        ('.a.b == 1 and .text != "x" or false', [True]),
        (".a | keys", [["b"]]),
        (".a | to_entries[] | .key", ["b"]),
        (".text | tonumber", [12.0]),
        (".a | type", ["object"]),
        ("1", [1]),
    ],
)
def test_queries(query: str, answer: list[Any]) -> None:
    """What Kartas use of jq."""
    assert ask(query, {"a": {"b": 1}, "list": [{"n": 1}, {"n": 2}], "text": "12"}) == answer


@pytest.mark.parametrize("query", ["", ".a |", "nope(.a)", ".a[", "$x", ".text.deep"])
def test_a_query_that_makes_no_sense_is_named(query: str) -> None:
    """The message repeats it."""
    with pytest.raises(GroupingError, match="query"):
        ask(query, {"text": "12"})

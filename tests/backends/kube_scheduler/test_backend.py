"""kube-scheduler: the gang API of each Kubernetes release."""

from __future__ import annotations

import pytest

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster
from spinney.backends.kube_scheduler import v1_35, v1_36, v1_37, v1_37_composite
from spinney.backends.kube_scheduler.backend import BACKEND, SHAPES, Shape
from spinney.backends.served import Served
from spinney.kube.difference import without_none
from tests import make

SERVES = {
    "1.35": Served(frozenset(v1_35.SHAPE.resources)),
    "1.36": Served(frozenset(v1_36.SHAPE.resources)),
    "1.37": Served(frozenset(v1_37.SHAPE.resources)),
    "1.37+composite": Served(frozenset(v1_37_composite.SHAPE.resources)),
}


def written(gang: make.GangBuilder, release: str) -> dict[str, Json]:
    """The specs of all objects of a gang, by `Kind/name`."""
    translation = BACKEND.translate(convert(PodGang, gang.build()), Cluster(SERVES[release]))
    return {f"{w.resource.kind}/{w.name}": without_none(w.body["spec"]) for w in translation.objects}


def lost(gang: make.GangBuilder, release: str) -> list[str]:
    """The fields of a gang that a release cannot express."""
    translation = BACKEND.translate(convert(PodGang, gang.build()), Cluster(SERVES[release]))
    return [loss.field for loss in translation.losses]


def sample() -> make.GangBuilder:
    """The gang of the reference's samples: two roles, one elastic, one packed more tightly."""
    return (
        make.gang("svc-0", "ml")
        .priority("inference-high")
        .packed(required="block")
        .group("prefill", 2, pods=3, required="rack")
        .group("decode", 2)
    )


CONTROLLER = {"apiGroup": "scheduler.grove.io", "kind": "PodGang", "name": "svc-0"}


def test_on_135_all_roles_are_one_group() -> None:
    """Groups of a Workload know nothing of each other, so the minimum is the sum."""
    assert written(sample(), "1.35") == {
        "Workload/svc-0": {
            "controllerRef": CONTROLLER,
            "podGroups": [{"name": "gang", "policy": {"gang": {"minCount": 4}}}],
        }
    }
    assert lost(sample(), "1.35") == [
        "spec.topologyConstraint.packConstraint.required",
        "spec.podgroups[0].topologyConstraint.packConstraint.required",
    ]


def test_on_136_the_group_is_an_object_and_may_have_one_topology_key() -> None:
    """The gang's own key survives, that of a role does not."""
    group = {
        "schedulingPolicy": {"gang": {"minCount": 4}},
        "schedulingConstraints": {"topology": [{"key": "block"}]},
        "disruptionMode": "PodGroup",
        "priorityClassName": "inference-high",
    }
    assert written(sample(), "1.36") == {
        "Workload/svc-0": {"controllerRef": CONTROLLER, "podGroupTemplates": [{"name": "gang", **group}]},
        "PodGroup/svc-0": {
            "podGroupTemplateRef": {"workload": {"workloadName": "svc-0", "podGroupTemplateName": "gang"}},
            **group,
        },
    }
    assert lost(sample(), "1.36") == ["spec.podgroups[0].topologyConstraint.packConstraint.required"]


def test_on_137_without_composite_groups_the_gang_is_flat() -> None:
    """As on 1.36, in the words of v1beta1."""
    group = {
        "schedulingPolicy": {"gang": {"minCount": 4}},
        "schedulingConstraints": {"topology": [{"key": "block"}]},
        "disruptionMode": {"all": {}},
        "priorityClassName": "inference-high",
    }
    assert written(sample(), "1.37")["PodGroup/svc-0"] == {
        "workloadRef": {"workloadName": "svc-0", "templateName": "gang"},
        **group,
    }


def test_on_137_with_composite_groups_nothing_required_is_lost() -> None:
    """A root that waits for both roles, and a group with minimum and topology for each."""
    common = {"disruptionMode": {"all": {}}, "priorityClassName": "inference-high"}
    root = {
        "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "block"}]},
        **common,
    }
    prefill = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        **common,
    }
    decode = {"schedulingPolicy": {"gang": {"minCount": 2}}, **common}
    templates = [{"name": "svc-0-prefill", **prefill}, {"name": "svc-0-decode", **decode}]
    assert written(sample(), "1.37+composite") == {
        "Workload/svc-0": {
            "controllerRef": CONTROLLER,
            "compositePodGroupTemplates": [{"name": "gang", **root, "podGroupTemplates": templates}],
        },
        "CompositePodGroup/svc-0": {"workloadRef": {"workloadName": "svc-0", "templateName": "gang"}, **root},
        "PodGroup/svc-0-prefill": {
            "parentCompositePodGroupName": "svc-0",
            "workloadRef": {"workloadName": "svc-0", "templateName": "svc-0-prefill"},
            **prefill,
        },
        "PodGroup/svc-0-decode": {
            "parentCompositePodGroupName": "svc-0",
            "workloadRef": {"workloadName": "svc-0", "templateName": "svc-0-decode"},
            **decode,
        },
    }
    assert lost(sample(), "1.37+composite") == []


def test_a_group_of_roles_is_a_nested_composite_group() -> None:
    """Its name carries the gang's: a scaled gang's root may have the config's own name."""
    gang = make.gang("svc-0").group("a", 1).group("b", 2).group("r", 1).config("sg-0", ["a", "b"], required="rack")
    objects = written(gang, "1.37+composite")
    assert objects["CompositePodGroup/svc-0"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    nested = objects["CompositePodGroup/svc-0.svc-0-sg-0"]
    assert nested["parentCompositePodGroupName"] == "svc-0"
    assert nested["schedulingConstraints"] == {"topology": [{"key": "rack"}]}
    assert objects["PodGroup/svc-0-a"]["parentCompositePodGroupName"] == "svc-0.svc-0-sg-0"
    assert objects["PodGroup/svc-0-r"]["parentCompositePodGroupName"] == "svc-0"


def test_more_groups_than_a_workload_may_list_share_a_template() -> None:
    """Only templates are limited to eight, groups are not."""
    gang = make.gang("big-0")
    for index in range(12):
        gang.group(f"r{index}", 1)
    objects = written(gang, "1.37+composite")
    (template,) = objects["Workload/big-0"]["compositePodGroupTemplates"]
    assert [group["name"] for group in template["podGroupTemplates"]] == ["pods"]
    assert objects["PodGroup/big-0-r11"]["workloadRef"]["templateName"] == "pods"
    assert objects["CompositePodGroup/big-0"]["schedulingPolicy"] == {"gang": {"minGroupCount": 12}}
    assert written(gang, "1.35")["Workload/big-0"]["podGroups"] == [
        {"name": "gang", "policy": {"gang": {"minCount": 12}}}
    ]


def test_template_names_fit_a_dns_label() -> None:
    """A long group name is shortened in the template; the PodGroup keeps it."""
    gang = make.gang("s" * 60 + "-0").group("workers", 1)
    objects = written(gang, "1.37+composite")
    name = next(key for key in objects if key.startswith("PodGroup/")).removeprefix("PodGroup/")
    assert name == "s" * 60 + "-0-workers"
    assert len(objects[f"PodGroup/{name}"]["workloadRef"]["templateName"]) == 63


@pytest.mark.parametrize("release", SERVES)
def test_a_role_without_a_minimum_holds_nobody(release: str) -> None:
    """It adds nothing to the minimum, and a composite group does not count it."""
    objects = written(make.gang("a-0").group("x", 2).group("y", 0, pods=3), release)
    if release == "1.37+composite":
        assert objects["CompositePodGroup/a-0"]["schedulingPolicy"] == {"gang": {"minGroupCount": 1}}
        assert objects["PodGroup/a-0-y"]["schedulingPolicy"] == {"basic": {}}
    else:
        assert '{"gang": {"minCount": 2}}'.replace('"', "'") in str(objects)


@pytest.mark.parametrize("release", ["1.36", "1.37", "1.37+composite"])
def test_one_role_is_a_gang_of_its_own(release: str) -> None:
    """What binds the only role binds the gang: its key is not lost."""
    gang = make.gang("a-0").packed(required="block").group("w", 4, required="rack")
    assert lost(gang, release) == []
    assert "rack" in str(written(gang, release)["PodGroup/a-0" if release != "1.37+composite" else "PodGroup/a-0-w"])


@pytest.mark.parametrize(
    ("release", "index", "link"),
    [
        ("1.35", 0, {"workloadRef": {"name": "svc-0", "podGroup": "gang"}}),
        ("1.35", 2, {"workloadRef": {"name": "svc-0", "podGroup": "gang"}}),
        ("1.36", 2, {"schedulingGroup": {"podGroupName": "svc-0"}}),
        ("1.37", 1, {"schedulingGroup": {"podGroupName": "svc-0"}}),
        ("1.37", 2, {}),
        ("1.37+composite", 2, {"schedulingGroup": {"podGroupName": "svc-0-prefill"}}),
    ],
)
def test_pods_are_linked_at_creation(release: str, index: int, link: Json) -> None:
    """Everyone joins, except surplus where one gated pod would hold the whole group."""
    pod = make.pod("p", "ml").label("grove.io/podclique", "svc-0-prefill")
    pod.label("grove.io/podclique-pod-index", str(index))
    prepared = BACKEND.prepare(pod.build(), convert(PodGang, sample().build()), SERVES[release])
    fields = {key: prepared["spec"][key] for key in ("workloadRef", "schedulingGroup") if key in prepared["spec"]}
    assert (fields, prepared["spec"]["schedulerName"]) == (link, "default-scheduler")


@pytest.mark.parametrize(
    ("release", "held"), [("1.35", True), ("1.36", True), ("1.37", True), ("1.37+composite", False)]
)
def test_surplus_is_held_where_roles_are_flattened(release: str, held: bool) -> None:
    """In a flat group surplus takes the room of other roles; in a tree each role has its own minimum."""
    assert BACKEND.capabilities(SERVES[release]).surplus_held == held


def test_the_most_expressive_shape_that_is_served_wins() -> None:
    """A cluster that serves several versions gets the newest shape."""
    everything = Served(frozenset(resource for shape in SHAPES for resource in shape.resources))
    shapes: list[Shape] = [v1_37_composite.SHAPE]
    assert BACKEND.capabilities(everything) is shapes[0].capabilities


def test_without_a_gang_api_nothing_is_written_and_nothing_promised() -> None:
    """The controller tells the user; pods are only given their scheduler."""
    gang = convert(PodGang, sample().build())
    assert BACKEND.capabilities(Served()).api == ""
    assert BACKEND.translate(gang, Cluster(Served())).objects == ()
    pod = BACKEND.prepare(make.pod("p").label("grove.io/podclique", "x").build(), gang, Served())
    assert set(pod["spec"]) == {"containers", "schedulerName"}


def test_from_137_on_pods_of_different_priority_are_refused() -> None:
    """kube-scheduler fails such a gang as a whole."""
    pcs = convert(
        PodCliqueSet, make.pcs("a").clique("x", priorityClassName="high").clique("y", priorityClassName="low").build()
    )
    (problem,) = BACKEND.check(pcs, SERVES["1.37"])
    assert "'high', 'low'" in problem.message
    assert BACKEND.check(pcs, SERVES["1.35"]) == ()

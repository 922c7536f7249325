"""Koordinator: one PodGroup per role, tied into a gang group."""

from __future__ import annotations

import json

import pytest

from spinney.api.grove import ClusterTopologyBinding
from spinney.api.koordinator import PodGroup
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster, Translation
from spinney.backends.koordinator import BACKEND
from spinney.backends.served import Served
from spinney.kube.difference import without_none
from tests import make

SERVED = Served(frozenset({PodGroup.resource}))
TOPOLOGY: Json = {
    "metadata": {"name": "default"},
    "spec": {
        "networkTopologySpec": [
            {"topologyLayer": "Rack", "parentTopologyLayer": "Block", "labelKey": ["r"]},
            {"topologyLayer": "Block", "labelKey": ["b"]},
            {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "Rack"},
        ]
    },
}


def translated(gang: make.GangBuilder, *topology: Json) -> Translation:
    """What the backend makes of a gang."""
    return BACKEND.translate(convert(PodGang, gang.build()), Cluster(SERVED, topology))


def written(gang: make.GangBuilder, *topology: Json) -> dict[str, Json]:
    """Its PodGroups by name, without owners and labels."""
    bodies = {wanted.name: without_none(wanted.body) for wanted in translated(gang, *topology).objects}
    for body in bodies.values():
        del body["metadata"]["ownerReferences"], body["metadata"]["labels"]
    return bodies


def test_every_role_is_a_group_and_all_name_each_other() -> None:
    """All or nothing across roles, each with its own minimum."""
    gang = make.gang("svc-0", "ml").group("prefill", 2, pods=3).group("decode", 2)
    groups = '["ml/svc-0-prefill","ml/svc-0-decode"]'
    bodies = written(gang)
    assert bodies["svc-0-prefill"] == {
        "metadata": {
            "name": "svc-0-prefill",
            "namespace": "ml",
            "annotations": {
                "gang.scheduling.koordinator.sh/groups": groups,
                "gang.scheduling.koordinator.sh/mode": "Strict",
                "gang.scheduling.koordinator.sh/match-policy": "once-satisfied",
                "gang.scheduling.koordinator.sh/total-number": "3",
            },
        },
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 600},
    }
    assert bodies["svc-0-decode"]["metadata"]["annotations"]["gang.scheduling.koordinator.sh/groups"] == groups


def gathered(body: Json) -> Json:
    """The gather strategy of a PodGroup."""
    spec: Json = json.loads(body["metadata"]["annotations"]["gang.scheduling.koordinator.sh/network-topology-spec"])
    return spec


@pytest.mark.parametrize(
    ("topology", "layers"),
    [((TOPOLOGY,), ["Block", "NodeTopologyLayer"]), ((), ["BLayer", "NodeTopologyLayer"])],
)
def test_topology_of_the_gang_is_a_gather_strategy_on_every_group(
    topology: tuple[Json, ...], layers: list[str]
) -> None:
    """Layers are named as the cluster's topology names them; without one, by convention."""
    gang = make.gang("a-0").packed(required="b", preferred="kubernetes.io/hostname").group("x", 1).group("y", 1)
    for body in written(gang, *topology).values():
        assert gathered(body) == {
            "gatherStrategy": [
                {"layer": layers[0], "strategy": "MustGather"},
                {"layer": layers[1], "strategy": "PreferGather"},
            ]
        }


def test_topology_of_a_role_is_lost_and_so_is_a_level_the_cluster_does_not_have() -> None:
    """One strategy holds for the whole gang group."""
    gang = make.gang("a-0").packed(required="zone").group("x", 1, required="r").group("y", 1)
    assert [loss.asked for loss in translated(gang, TOPOLOGY).losses] == ["r", "zone"]


def test_the_topology_of_an_only_role_is_the_gangs() -> None:
    """Nothing is lost where the gang has one role."""
    gang = make.gang("a-0").packed(required="b").group("x", 2, required="r")
    assert translated(gang, TOPOLOGY).losses == ()
    assert gathered(written(gang, TOPOLOGY)["a-0-x"])["gatherStrategy"][0]["layer"] == "Rack"


def test_a_role_without_a_minimum_is_left_out() -> None:
    """A PodGroup with minMember 0 stays Pending for ever; its pods go free."""
    builder = make.gang("a-0").group("x", 1).group("y", 0, pods=1)
    assert list(written(builder)) == ["a-0-x"]
    pod = make.pod("p").label("grove.io/podclique", "a-0-y").build()
    prepared = BACKEND.prepare(pod, convert(PodGang, builder.build()), SERVED)
    assert "pod-group.scheduling.sigs.k8s.io" not in prepared["metadata"]["labels"]


@pytest.mark.parametrize(
    ("requested", "on_pod"), [("koord-scheduler", "koord-scheduler"), ("my-koord", "my-koord"), ("", "koord-scheduler")]
)
def test_a_pod_joins_its_roles_group_and_keeps_its_profile(requested: str, on_pod: str) -> None:
    """Membership is a label; a name that contains koord is one of Koordinator's profiles."""
    gang = make.gang("a-0").annotate("quota.scheduling.koordinator.sh/name", "team").group("x", 1)
    pod = make.pod("p").label("grove.io/podclique", "a-0-x").scheduler(requested).build()
    prepared = BACKEND.prepare(pod, convert(PodGang, gang.build()), SERVED)
    assert prepared["spec"]["schedulerName"] == on_pod
    labels = prepared["metadata"]["labels"]
    assert labels["pod-group.scheduling.sigs.k8s.io"] == "a-0-x"
    assert labels["quota.scheduling.koordinator.sh/name"] == "team"


def test_long_names_fit_a_label_and_agree_between_pod_and_group() -> None:
    """A pod names its group in a label of at most 63 characters."""
    gang = make.gang("s" * 70).group("x", 1)
    (name,) = written(gang)
    pod = make.pod("p").label("grove.io/podclique", "s" * 70 + "-x").build()
    prepared = BACKEND.prepare(pod, convert(PodGang, gang.build()), SERVED)
    assert prepared["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io"] == name
    assert len(name) <= 63


def test_phases_are_passed_on() -> None:
    """Koordinator's own words end up in the gang's condition."""
    gang = make.gang("a-0").group("x", 1).typed(PodGang)
    objects = [{"kind": "PodGroup", "metadata": {"name": "a-0-x"}, "status": {"phase": "Scheduling"}}]
    assert BACKEND.ready(gang, objects).message == "PodGroups: a-0-x Scheduling"


@pytest.mark.parametrize(
    ("keys", "topology", "drift"),
    [
        (["b", "r", "kubernetes.io/hostname"], [TOPOLOGY], ""),
        (["b", "x"], [TOPOLOGY], "no layer of ClusterNetworkTopology default has the label key x"),
        (["r", "b"], [TOPOLOGY], "ClusterNetworkTopology default orders the levels ['b', 'r'], the binding ['r', 'b']"),
        (["b"], [], "there is no ClusterNetworkTopology named default, or it has no layers"),
    ],
)
def test_layers_must_cover_every_level_in_order(keys: list[str], topology: list[Json], drift: str) -> None:
    """Hosts are built in; every other level needs a layer with its key."""
    levels = [{"domain": f"d{index}", "key": key} for index, key in enumerate(keys)]
    binding = convert(ClusterTopologyBinding, {"metadata": {"name": "t"}, "spec": {"levels": levels}})
    assert BACKEND.topology_drift(binding, "t", topology) == drift

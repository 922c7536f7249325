"""Koordinator: one PodGroup per role, tied into a gang group."""

from __future__ import annotations

import json

import pytest

from spinney.api.grove import ClusterTopologyBinding
from spinney.api.koordinator import PodGroup
from spinney.api.meta import Json, convert
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.interface import Cluster, Translation
from spinney.backends.koordinator import BACKEND
from spinney.backends.koordinator.groups import HELD
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


def translated(gang: make.GangBuilder, *topology: Json, looked: bool = True) -> Translation:
    """What the backend makes of a gang on a cluster with these topology objects, or on one nobody looked at."""
    return BACKEND.translate(convert(PodGang, gang.build()), Cluster(SERVED, topology if looked else None))


def written(gang: make.GangBuilder, *topology: Json, looked: bool = True) -> dict[str, Json]:
    """Its PodGroups by name, without owners and labels."""
    bodies = {wanted.name: without_none(wanted.body) for wanted in translated(gang, *topology, looked=looked).objects}
    for body in bodies.values():
        del body["metadata"]["ownerReferences"], body["metadata"]["labels"]
    return bodies


def gathered(body: Json) -> Json:
    """The gather strategy of a PodGroup."""
    spec: Json = json.loads(body["metadata"]["annotations"]["gang.scheduling.koordinator.sh/network-topology-spec"])
    return spec


@pytest.mark.parametrize(
    ("looked", "layers"), [(True, ["Block", "NodeTopologyLayer"]), (False, ["BLayer", "NodeTopologyLayer"])]
)
def test_topology_of_the_gang_is_a_gather_strategy_on_every_group(looked: bool, layers: list[str]) -> None:
    """Layers are named as the cluster's topology names them; offline, by convention."""
    gang = make.gang("a-0").packed(required="b", preferred="kubernetes.io/hostname").group("x", 1).group("y", 1)
    for body in written(gang, TOPOLOGY, looked=looked).values():
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
    assert gathered(written(gang, TOPOLOGY)["a-0-x-uid-1"])["gatherStrategy"][0]["layer"] == "Rack"


@pytest.mark.parametrize(
    ("requested", "on_pod"), [("koord-scheduler", "koord-scheduler"), ("my-koord", "my-koord"), ("", "koord-scheduler")]
)
def test_a_pod_joins_its_roles_group_and_keeps_its_profile(requested: str, on_pod: str) -> None:
    """Membership is a label; a name that contains koord is one of Koordinator's profiles."""
    gang = make.gang("a-0").annotate("quota.scheduling.koordinator.sh/name", "team").group("x", 1)
    member = make.pod("p").label("grove.io/podclique", "a-0-x").scheduler(requested).build()
    prepared = BACKEND.prepare(member, convert(PodGang, gang.build()), SERVED)
    assert prepared["spec"]["schedulerName"] == on_pod
    labels = prepared["metadata"]["labels"]
    assert labels["pod-group.scheduling.sigs.k8s.io"] == "a-0-x-uid-1"
    assert labels["quota.scheduling.koordinator.sh/name"] == "team"


def pod(index: int, gang: PodGang, gate: str = "", on: str = "", role: str = "x") -> Pod:
    """A prepared pod of a gang's role."""
    builder = make.pod(f"p{index}").label("grove.io/podclique", f"{gang.name}-{role}")
    body = BACKEND.prepare(builder.label("grove.io/podclique-pod-index", str(index)).build(), gang, SERVED)
    body["spec"] |= {"schedulingGates": [{"name": gate}]} if gate else {}
    body["spec"] |= {"nodeName": on} if on else {}
    return convert(Pod, body)


def test_a_name_that_is_used_again_gives_other_groups() -> None:
    """Koordinator took a new gang for satisfied because an earlier one of its name had been."""
    first = written(make.gang("a-0", uid="11111111-2222").group("x", 1))
    second = written(make.gang("a-0", uid="99999999-2222").group("x", 1))
    assert (list(first), list(second)) == (["a-0-x-11111111"], ["a-0-x-99999999"])


def test_pods_beyond_the_minimum_are_no_members_and_wait_for_the_gang() -> None:
    """As members they would never run with the shipped configuration, and topology would count them."""
    gang = make.gang("a-0").group("x", 2, pods=4).typed(PodGang)
    members = ["pod-group.scheduling.sigs.k8s.io" in pod(index, gang).metadata.labels for index in range(4)]
    assert members == [True, True, False, False]
    assert BACKEND.capabilities(SERVED).surplus_held


@pytest.mark.parametrize(
    ("gates", "on", "minimum"),
    [
        (["", ""], "", 2),
        (["g", ""], "", HELD),
        (["g", "g"], "", HELD),
        ([""], "", HELD),
        ([], "", HELD),
        (["", "g"], "node-1", 2),
    ],
    ids=["no gates", "one gate", "all gated", "one pod", "no pods", "one bound, one replaced"],
)
def test_a_gated_pod_holds_the_gang_back(gates: list[str], on: str, minimum: int) -> None:
    """Koordinator counted gated pods as present and bound the others alone."""
    gang = make.gang("a-0").group("x", 2).typed(PodGang)
    pods = [pod(index, gang, gate, on if index == 0 else "") for index, gate in enumerate(gates)]
    (group,) = BACKEND.translate(gang, Cluster(SERVED, (), pods=pods)).objects
    assert group.body["spec"]["minMember"] == minimum


def test_a_minimum_that_was_raised_asks_for_no_more_members_than_there_are() -> None:
    """Running pods cannot become members: a replacement would wait for them for ever."""
    before, after = make.gang("a-0").group("x", 2, pods=3), make.gang("a-0").group("x", 3, pods=3)
    pods = [pod(index, before.typed(PodGang), on="n") for index in range(3)]
    (group,) = BACKEND.translate(after.typed(PodGang), Cluster(SERVED, (), pods=pods)).objects
    assert group.body["spec"]["minMember"] == 2


def test_a_gang_from_before_keeps_the_names_that_its_pods_carry() -> None:
    """Renaming its PodGroups would take the group away from running pods."""
    builder = make.gang("a-0").group("x", 2, pods=3)
    stored = [{"kind": "PodGroup", "metadata": {"name": "a-0-x"}}]
    remembered = BACKEND.remembered(builder.typed(PodGang), stored)
    for key, value in remembered.items():
        builder.annotate(key, value)
    gang = builder.typed(PodGang)
    assert list(written(builder)) == ["a-0-x"]
    assert pod(2, gang).metadata.labels["pod-group.scheduling.sigs.k8s.io"] == "a-0-x"
    (group,) = BACKEND.translate(gang, Cluster(SERVED, (), pods=[pod(0, gang, "g")])).objects
    assert group.body["spec"]["minMember"] == 2
    renamed = [{"kind": "PodGroup", "metadata": {"name": "a-0-x-uid-1"}}]
    assert BACKEND.remembered(make.gang("a-0").group("x", 2).typed(PodGang), renamed) == {}


def test_topology_for_which_the_cluster_is_not_set_up_is_not_written() -> None:
    """Even a preference blocks a gang where Koordinator knows no topology."""
    gang = make.gang("a-0").packed(required="b", preferred="r").group("x", 1)
    (body,) = written(gang).values()
    assert "gang.scheduling.koordinator.sh/network-topology-spec" not in body["metadata"]["annotations"]
    assert [(loss.asked, loss.bearable) for loss in translated(gang).losses] == [("b", False), ("r", True)]


def deployment(*arguments: str) -> Json:
    """The Deployment of Koordinator's scheduler."""
    pod_spec = {"containers": [{"name": "scheduler", "args": list(arguments)}]}
    spec = {"template": {"spec": pod_spec}}
    return {"metadata": {"name": "koord-scheduler", "namespace": "koordinator-system"}, "spec": spec}


def configuration(**arguments: bool) -> Json:
    """Its ConfigMap."""
    profiles = [{"pluginConfig": [{"name": "Coscheduling", "args": arguments}]}]
    data = {"koord-scheduler-config": json.dumps({"profiles": profiles})}
    return {"metadata": {"name": "koord-scheduler-config", "namespace": "koordinator-system"}, "data": data}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ([None, None], ""),
        ([deployment("--enable-network-topology-manager=true"), configuration(awareNetworkTopology=True)], ""),
        ([deployment("--v=2"), None], "runs without --enable-network-topology-manager"),
        ([None, configuration()], "does not set awareNetworkTopology: true"),
    ],
    ids=["unreadable", "switched on", "no flag", "no argument"],
)
def test_a_switch_that_is_off_is_told_with_how_to_set_it(settings: list[Json | None], problem: str) -> None:
    """What can be known beforehand is checked; what nobody may read is not held against the gang."""
    given_settings = {
        setting: item for setting, item in zip(BACKEND.settings, settings, strict=True) if item is not None
    }
    cluster = Cluster(SERVED, [TOPOLOGY], settings=given_settings)
    translation = BACKEND.translate(make.gang("a-0").packed(required="b").group("x", 1).typed(PodGang), cluster)
    lines = [*BACKEND.setup_problems(cluster), *(loss.missing for loss in translation.losses)]
    assert len(lines) == (2 if problem else 0)
    assert all(problem in line for line in lines)


def test_an_unknown_quota_is_told() -> None:
    """Koordinator would use its default quota without a word."""
    gang = make.gang("a-0").annotate("quota.scheduling.koordinator.sh/name", "team").group("x", 1).typed(PodGang)
    message = BACKEND.missing_queue(gang, Cluster(SERVED, queues=[{"metadata": {"name": "other"}}]))
    assert "there is no ElasticQuota 'team' (there are: other)" in message
    assert BACKEND.missing_queue(gang, Cluster(SERVED, queues=[{"metadata": {"name": "team"}}])) == ""


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

"""Rules between pods: what they require of each other, and what they prefer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from spinney.api.affinity import Taint
from spinney.api.core import Namespace, Pod
from spinney.api.meta import Json, convert
from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.intake.pod_tasks import task_spec
from spinney.scheduler.state.specs import Constraints, Match, PodTerm, SpreadTerm
from tests import make
from tests.scheduler.clusters import Cluster, outcome
from tests.scheduler.service.parts import PARTS, WITH_KUBE_SCHEDULER
from tests.services.stage import stage
from tests.virtual_time import virtual

WEB = PodTerm("host", (Match("app", "In", ("web",)),))
SOCIAL = Config(actions=("allocate",), plugins=(*Config().plugins, PluginConfig("podaffinity")))


def three_nodes() -> Cluster:
    cluster = Cluster().queue("q", 100)
    for name in ("n0", "n1", "n2"):
        cluster.node(name, 4, host=name, zone="a" if name == "n0" else "b")
    return cluster


def change(cluster: Cluster, key: str, **spec: Any) -> Cluster:
    cluster.state.set_task(replace(cluster.state.tasks[key].spec, **spec))
    return cluster


def where(cluster: Cluster, config: Config = SOCIAL) -> dict[str, str]:
    return {key: node for key, (_, node, _) in outcome(cluster.plan(config=config)).items()}


def test_a_pod_finds_one_without_rules_of_its_own() -> None:
    """Affinity looks at the labels of any pod, and so does anti-affinity, in both directions."""
    cluster = three_nodes().job("r", "q", ["n1"]).job("j", "q", [""])
    change(cluster, "r-0", labels={"app": "web"})
    assert where(change(cluster, "j-0", constraints=Constraints(affinity=(WEB,)))) == {"j-0": "n1"}
    assert where(change(cluster, "j-0", constraints=Constraints(anti_affinity=(WEB,)))) == {"j-0": "n0"}
    change(cluster, "j-0", constraints=Constraints(), labels={"app": "web"})
    assert where(change(cluster, "r-0", constraints=Constraints(anti_affinity=(WEB,)))) == {"j-0": "n0"}


def test_labels_set_tasks_of_one_gang_apart() -> None:
    """Of two tasks that ask for the same, only the one that a running pod repels keeps away from it."""
    cluster = three_nodes().job("r", "q", ["n0"], gpus=3).job("j", "q", ["", ""])
    change(cluster, "r-0", constraints=Constraints(anti_affinity=(WEB,)))
    change(cluster, "j-1", labels={"app": "web"})
    assert where(cluster) == {"j-0": "n0", "j-1": "n1"}


@pytest.mark.parametrize(("weight", "node"), [(10, "n2"), (-10, "n0")])
def test_a_pod_prefers_to_be_near_or_apart(weight: int, node: str) -> None:
    """A preference outweighs the wish to fill nodes up; without the plugin it counts nothing."""
    cluster = three_nodes().job("r", "q", ["n2"]).job("f", "q", ["n1"], gpus=2).job("j", "q", [""])
    change(cluster, "r-0", labels={"app": "web"})
    change(cluster, "f-0", labels={"app": "web"}) if weight < 0 else None
    change(cluster, "j-0", constraints=Constraints(preferred=((weight, WEB),)))
    assert where(cluster) == {"j-0": node}
    assert where(cluster, Config(actions=("allocate",))) == {"j-0": "n1"}


def test_preferences_of_running_pods_count_too() -> None:
    """A running pod that likes web pods draws one to its node, by its weight against others."""
    cluster = three_nodes().job("a", "q", ["n1"]).job("b", "q", ["n2"]).job("j", "q", [""])
    change(cluster, "j-0", labels={"app": "web"})
    change(cluster, "a-0", constraints=Constraints(preferred=((3, WEB),)))
    assert where(change(cluster, "b-0", constraints=Constraints(preferred=((4, WEB),)))) == {"j-0": "n2"}
    assert where(change(cluster, "b-0", constraints=Constraints(preferred=((-9, WEB),)))) == {"j-0": "n1"}


def test_pods_of_a_gang_that_like_each_other_stay_in_one_zone() -> None:
    """The first goes where it is best, the others follow as far as there is room."""
    cluster = three_nodes().job("f", "q", ["n0"], gpus=2).job("j", "q", [""] * 4)
    like = Constraints(preferred=((1, replace(WEB, topology_key="zone")),))
    for number in range(4):
        change(cluster, f"j-{number}", constraints=like, labels={"app": "web"})
    assert sorted(where(cluster).values()) == ["n0", "n0", "n1", "n1"]


def test_spreading_looks_at_allowed_nodes_only() -> None:
    """A zone that the pod's selector rules out does not count as the emptiest."""
    term = SpreadTerm("zone", matches=(Match("app", "In", ("web",)),))
    cluster = three_nodes().job("j", "q", ["", ""])
    for key in ("j-0", "j-1"):
        rules = Constraints(spread=(term,), node_selector=(("zone", "b"),))
        change(cluster, key, constraints=rules, labels={"app": "web"})
    assert len(where(cluster)) == 2


def test_spreading_over_a_label_that_no_node_has_failed_the_plan() -> None:
    """The pod waits, others are placed."""
    cluster = Cluster(8).queue("q", 100).job("j", "q", [""]).job("k", "q", [""])
    change(cluster, "j-0", constraints=Constraints(spread=(SpreadTerm("no/such"),)))
    assert where(cluster) == {"k-0": "n0"}


@pytest.mark.parametrize(
    ("policies", "placed"),
    [({}, 2), ({"selected_only": False}, 1), ({"tolerated_only": True}, 2), ({"min_domains": 3}, 1)],
)
def test_policies_say_which_nodes_are_to_be_even(policies: dict[str, Any], placed: int) -> None:
    """A zone that a pod cannot use counts as empty only if its policies say so; too few domains leave one pod each."""
    term = SpreadTerm("zone", matches=(Match("app", "In", ("web",)),), **policies)
    cluster = three_nodes().job("j", "q", ["", ""], minimum=1)
    for key in ("j-0", "j-1"):
        rules = Constraints(spread=(term,), node_selector=(("zone", "b"),))
        change(cluster, key, constraints=rules, labels={"app": "web"})
    assert len(where(cluster)) == placed


def test_tainted_nodes_are_left_out_of_an_even_spread_on_request() -> None:
    """With `nodeTaintsPolicy: Honor` a tainted zone is none of those to be even; without it, pods wait for it."""
    for policy, placed in ((True, 2), (False, 1)):
        cluster = three_nodes().job("j", "q", ["", ""], minimum=1)
        spec = cluster.state.nodes.spec(cluster.state.nodes.rows["n0"])
        cluster.state.set_node(replace(spec, taints=(Taint(key="kept", effect="NoSchedule"),)))
        term = SpreadTerm("zone", matches=(Match("app", "In", ("web",)),), tolerated_only=policy)
        for key in ("j-0", "j-1"):
            change(cluster, key, constraints=Constraints(spread=(term,)), labels={"app": "web"})
        assert len(where(cluster)) == placed


def test_pods_that_would_rather_be_spread_are() -> None:
    """`ScheduleAnyway` evens zones out where it can, but never keeps a pod waiting."""
    wish = SpreadTerm("zone", matches=(Match("app", "In", ("web",)),), hard=False)
    cluster = three_nodes().job("r", "q", ["n1"]).job("j", "q", [""] * 7)
    change(cluster, "r-0", labels={"app": "web"})
    for number in range(7):
        change(cluster, f"j-{number}", constraints=Constraints(spread=(wish,)), labels={"app": "web"})
    nodes = where(cluster)
    assert nodes["j-0"] == "n0"
    assert sum(node == "n0" for node in nodes.values()) == 4
    assert len(nodes) == 7


def test_pods_and_nodes_have_wishes() -> None:
    """The node that a pod prefers is taken, a node that would rather be left alone is not, if others have room."""
    cluster = three_nodes().job("j", "q", [""])
    liked = Constraints(preferred_nodes=((5, (Match("host", "In", ("n2",)),)), (3, (Match("zone", "In", ("a",)),))))
    assert where(change(cluster, "j-0", constraints=liked)) == {"j-0": "n2"}
    change(cluster, "j-0", constraints=Constraints())
    for name in ("n0", "n1"):
        spec = cluster.state.nodes.spec(cluster.state.nodes.rows[name])
        cluster.state.set_node(replace(spec, taints=(Taint(key="busy", effect="PreferNoSchedule"),)))
    assert where(cluster) == {"j-0": "n2"}


def test_host_ports_clash_on_every_address() -> None:
    """A port without an address takes it on all of them."""
    spec = described({"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]})
    cluster = Cluster(8, 8).queue("q", 100).job("r", "q", ["n0"]).job("j", "q", [""])
    change(cluster, "r-0", constraints=spec)
    change(cluster, "j-0", constraints=Constraints(host_ports=(("10.0.0.1", "TCP", 80),)))
    assert where(cluster) == {"j-0": "n1"}


def described(spec: Json, labels: dict[str, str] | None = None) -> Constraints:
    built = make.pod("p").build()
    built["metadata"].setdefault("labels", {}).update(labels or {})
    built["spec"].update(spec)
    return task_spec(convert(Pod, built), None, datetime(2026, 1, 1, tzinfo=UTC)).constraints


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
@pytest.mark.parametrize("text", ["99999999999999999999", "NaN", "-1", "many"])
def test_a_share_that_no_device_has_broke_the_books(key: str, text: str) -> None:
    """A pod of another scheduler that is on a node already may ask for anything."""
    built = make.pod("p").annotate(key, text).on("n0").build()
    cluster = Cluster(2).queue("q", 100).job("other", "q", ["n0"]).job("j", "q", [""])
    gpu = task_spec(convert(Pod, built), None, datetime(2026, 1, 1, tzinfo=UTC)).gpu
    change(cluster, "other-0", gpu=gpu, gpu_groups=("group",))
    assert where(cluster)["j-0"] == "n0"


def test_preferred_terms_are_read() -> None:
    """Weights of anti-affinity are below zero; a term without namespaces is about the pod's own."""
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": term}]}
    constraints = described({"affinity": {"podAffinity": rule, "podAntiAffinity": rule}})
    own = replace(WEB, namespaces=("default",))
    assert constraints.preferred == ((7, own), (-7, own))


def test_spreading_and_wishes_are_read() -> None:
    """Labels named by key are compared with the pod's own; policies and the wish to be spread are kept."""
    selector = {"matchLabels": {"app": "web"}}
    spread = {
        "topologyKey": "zone",
        "maxSkew": 2,
        "minDomains": 3,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
        "matchLabelKeys": ["rev", "absent"],
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
    }
    term = {"topologyKey": "host", "labelSelector": selector, "matchLabelKeys": ["rev"], "mismatchLabelKeys": ["team"]}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    wish = {"weight": 9, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    near = {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
    constraints = described(
        {"topologySpreadConstraints": [spread], "affinity": {"podAntiAffinity": apart, "nodeAffinity": near}},
        {"rev": "7", "team": "a"},
    )
    app, rev = Match("app", "In", ("web",)), Match("rev", "In", ("7",))
    assert constraints.spread == (
        SpreadTerm("zone", 2, (app, rev), 3, hard=False, selected_only=False, tolerated_only=True),
    )
    assert constraints.anti_affinity == (PodTerm("host", (app, rev, Match("team", "NotIn", ("a",))), ("default",)),)
    assert constraints.preferred_nodes == ((9, (Match("disk", "Exists"),)),)


@virtual
async def test_namespaces_are_chosen_by_their_labels() -> None:
    """A pod waits for one to be near to, until a namespace gets the label that its rule names."""
    async with stage(*PARTS, before=WITH_KUBE_SCHEDULER) as world:
        client = world.client
        await world.node("n1", host="n1")
        await world.gang("web", members=1, gpus=1)
        await asyncio.sleep(5)
        await client.patch(Pod, ("default", "web-0"), {"metadata": {"labels": {"app": "web"}}})
        await world.gang("near", members=0, gpus=0, minimum=1)
        built = make.pod("near-0").scheduler("kai-scheduler").annotate("pod-group-name", "near").build()
        term = {"topologyKey": "host", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "a"}}}
        rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        built["spec"]["affinity"] = {"podAffinity": rules}
        await client.create(Pod, built, "default")
        await asyncio.sleep(5)
        assert await world.placed("near") == {"near-0": ""}
        await client.patch(Namespace, "default", {"metadata": {"labels": {"team": "a"}}})
        await asyncio.sleep(5)
        assert await world.placed("near") == {"near-0": "n1"}

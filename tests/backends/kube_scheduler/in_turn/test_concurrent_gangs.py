"""Which gangs may be placed at the same time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core import Node
from spinney.api.meta import Json, convert
from spinney.api.pod import Pod
from spinney.backends.kube_scheduler.in_turn.concurrent_gangs import ConcurrentPods
from spinney.backends.kube_scheduler.in_turn.node_info import node_infos, request_of
from spinney.backends.kube_scheduler.in_turn.placement import ClusterView, admits
from tests import make


def ground_of(*gpus: int, held: tuple[Pod, ...] = ()) -> ClusterView:
    """Nodes n0, n1, … with so many GPUs each, in racks of two."""
    nodes = [
        convert(Node, make.node(f"n{index}", count).label("rack", f"r{index // 2}").build())
        for index, count in enumerate(gpus)
    ]
    return ClusterView(lambda above: node_infos(nodes, held, above))


def pod_of(name: str, gpus: int, rack: str = "", **spec: object) -> Pod:
    """A pod, bound to a rack if one is given."""
    body = make.pod(name).gpus(gpus).build()
    body["spec"] |= {"nodeSelector": {"rack": rack}} if rack else {}
    body["spec"] |= spec
    return convert(Pod, body)


Wish = tuple[int, str]
wishes = st.tuples(st.integers(1, 4), st.sampled_from(["", "r0", "r1"]))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=4), st.lists(wishes, max_size=8), st.data())
def test_accepted_pods_find_nodes_in_any_order(gpus: list[int], wanted: list[Wish], data: st.DataObject) -> None:
    """Whatever the order and the nodes, every pod that was accepted finds a node."""
    view = ground_of(*gpus)
    crowd = ConcurrentPods(view, ())
    pods = [pod_of(f"p{index}", *wish) for index, wish in enumerate(wanted)]
    inside = [pod for pod in pods if crowd.join([pod])]
    free = view.node_infos(None)
    for pod in data.draw(st.permutations(inside)):
        fitting = [room for room in free if admits(room.node, pod) and room.fits(request_of(pod))]
        assert fitting, f"{pod.name} found no node"
        data.draw(st.sampled_from(fitting)).add(pod, request_of(pod))


def test_equal_pods_fill_the_last_place() -> None:
    """Pods of one size are accepted up to the last slot."""
    crowd = ConcurrentPods(ground_of(4, 3), [pod_of("a", 2), pod_of("b", 2)])
    assert crowd.join([pod_of("c", 2)])
    assert not crowd.join([pod_of("d", 2)])


def test_nobody_joins_those_who_may_not_all_find_a_node() -> None:
    """Pods that may not all find a node are being placed: no more are accepted."""
    tight = ConcurrentPods(ground_of(4), [pod_of("a", 3), pod_of("b", 1)])
    assert not tight.join([pod_of("c", 1)])


def test_nobody_joins_one_who_goes_alone() -> None:
    """Requests do not show where it goes: a later pod could take its node."""
    crowd = ConcurrentPods(ground_of(8), ())
    crowd.close()
    assert not crowd.is_empty
    assert not crowd.join([pod_of("next", 1)])


def test_those_who_were_turned_away_count_for_nothing() -> None:
    """Neither their number nor their size."""
    crowd = ConcurrentPods(ground_of(4), ())
    assert not crowd.join([pod_of("large", 8)])
    assert not crowd.join([pod_of("elsewhere", 1, "r7")])
    assert crowd.join([pod_of(f"p{index}", 1) for index in range(4)])


def port(body: Json) -> None:
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]


def claim(body: Json) -> None:
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def device(body: Json) -> None:
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]


def spread(body: Json) -> None:
    body["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "rack", "labelSelector": {}}]


def company(body: Json) -> None:
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "x"}}}
    body["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize("rule", [port, claim, device, spread, company])
def test_a_pod_whose_place_depends_on_others_goes_alone(rule: Callable[[Json], None]) -> None:
    """Requests alone do not show whether it finds a node."""
    body = make.pod("a").gpus(1).build()
    rule(body)
    assert not ConcurrentPods(ground_of(8, 8), ()).join([convert(Pod, body)])


def test_a_pod_that_others_keep_away_goes_alone() -> None:
    """A pod on a node has an anti-affinity term that covers it."""
    body = make.pod("lonely").on("n0").build()
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "loud"}}}
    body["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    view = ground_of(8, 8, held=(convert(Pod, body),))
    assert not ConcurrentPods(view, ()).join([convert(Pod, make.pod("a").label("app", "loud").build())])
    assert ConcurrentPods(view, ()).join([convert(Pod, make.pod("b").label("app", "quiet").build())])

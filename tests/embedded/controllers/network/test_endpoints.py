"""How the addresses of a service's pods are spread over slices, and when none is touched."""

from __future__ import annotations

from spinney.api.core import Pod, Service
from spinney.api.discovery import EndpointSlice
from spinney.api.meta import Json, convert
from spinney.embedded.controllers.network.endpoint_slices import SlicePlan, plan_slices
from spinney.embedded.controllers.network.endpoints import plan_subsets, truncated

SERVICE = convert(
    Service,
    {
        "metadata": {"name": "s", "namespace": "n", "uid": "s-uid", "labels": {"team": "x"}},
        "spec": {"selector": {"app": "a"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80, "targetPort": 8080}]},
    },
)
ZONES = {"node": "z"}


def pods(count: int, *, ready: bool = True) -> list[Pod]:
    """Pods with an address each."""
    condition = {"type": "Ready", "status": str(ready)}
    return [
        convert(
            Pod,
            {
                "metadata": {"name": f"p{at}", "namespace": "n", "uid": f"u{at}"},
                "spec": {"nodeName": "node", "containers": [{"name": "c"}]},
                "status": {"phase": "Running", "podIP": f"10.1.{at // 250}.{at % 250}", "conditions": [condition]},
            },
        )
        for at in range(count)
    ]


def kept(documents: list[Json]) -> list[EndpointSlice]:
    """Slices as they are once they were made."""
    return [
        convert(EndpointSlice, {**document, "metadata": {**document["metadata"], "name": f"s-{at}", "namespace": "n"}})
        for at, document in enumerate(documents)
    ]


def sizes(documents: list[Json]) -> list[int]:
    """How many addresses each slice holds."""
    return [len(document["endpoints"]) for document in documents]


def test_a_slice_holds_a_hundred() -> None:
    """More pods make more slices, and a second look changes nothing."""
    plan = plan_slices(SERVICE, pods(250), ZONES, [])
    assert sizes(plan.create) == [100, 100, 50]
    assert plan_slices(SERVICE, pods(250), ZONES, kept(plan.create)) == SlicePlan()


def test_a_new_pod_joins_the_fullest_slice_with_room() -> None:
    """Only that slice is written."""
    slices = kept(plan_slices(SERVICE, pods(250), ZONES, []).create)
    plan = plan_slices(SERVICE, pods(251), ZONES, slices)
    assert (plan.create, plan.delete, list(plan.change)) == ([], [], ["s-2"])
    assert len(plan.change["s-2"]["endpoints"]) == 51


def test_a_pod_that_goes_touches_its_own_slice() -> None:
    """And a slice that is left empty goes with it."""
    slices = kept(plan_slices(SERVICE, pods(101), ZONES, []).create)
    assert list(plan_slices(SERVICE, pods(101)[1:], ZONES, slices).change) == ["s-0"]
    assert plan_slices(SERVICE, pods(100), ZONES, slices).delete == ["s-1"]


def test_the_last_slice_stays() -> None:
    """A service without pods keeps one empty slice, made from the one it has."""
    slices = kept(plan_slices(SERVICE, pods(1), ZONES, []).create)
    plan = plan_slices(SERVICE, [], ZONES, slices)
    assert (plan.create, plan.delete) == ([], [])
    assert (plan.change["s-0"]["endpoints"], plan.change["s-0"]["ports"]) == ([], [])


def test_a_pod_on_a_node_that_is_not_there_is_left_out() -> None:
    """Unless the service asks for pods that are not ready, too."""
    plan = plan_slices(SERVICE, pods(1), {}, [])
    assert sizes(plan.create) == [0]


def test_endpoints_end_at_a_thousand() -> None:
    """Ready addresses are kept first."""
    mixed = [*pods(1200, ready=False)[:700], *pods(1200)[700:]]
    (subset,) = truncated(plan_subsets(SERVICE, mixed))
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (500, 500)

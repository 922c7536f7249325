"""Devices of a node, chosen for a claim."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.core import Node
from spinney.api.meta import Json, convert
from spinney.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from spinney.scheduler.intake.device_selectors import SelectorError
from spinney.scheduler.intake.devices import allocate, check_selectors, in_use, missing_class, offers_on
from tests import make

NODE = make.node("n1").typed(Node)
CLASSES = {
    "gpu": convert(
        DeviceClass,
        {
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
        },
    )
}


def device(name: str, **attributes: Any) -> Json:
    kinds = {str: "string", int: "int", bool: "bool"}
    return {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}


def offered(*devices: Json, driver: str = "gpu.example.com", node: str = "n1", **spec: Any) -> ResourceSlice:
    body = {
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1},
            "devices": list(devices),
            **spec,
        },
    }
    return convert(ResourceSlice, body)


def claim(*requests: Json, **devices: Any) -> ResourceClaim:
    named = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "gpu", **each}} for number, each in enumerate(requests)
    ]
    return convert(ResourceClaim, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": named, **devices}}})


def got(wanted: ResourceClaim, *slices: ResourceSlice, taken: tuple[str, ...] = ()) -> list[str] | None:
    used = {("gpu.example.com", "n1", name) for name in taken}
    allocation = allocate(wanted, NODE, offers_on(NODE, slices), used, CLASSES)
    return None if allocation is None else [result["device"] for result in allocation["devices"]["results"]]


GPUS = offered(device("g0", model="a"), device("g1", model="b"), device("g2", model="b"))


@pytest.mark.parametrize(
    ("wanted", "taken", "devices"),
    [
        (claim({}), (), ["g0"]),
        (claim({}), ("g0",), ["g1"]),
        (claim({"count": 2}), (), ["g0", "g1"]),
        (claim({"count": 3}), ("g1",), None),
        (claim({"allocationMode": "All"}), (), ["g0", "g1", "g2"]),
        (claim({"allocationMode": "All"}), ("g2",), None),
        (claim({}, {}), (), ["g0", "g1"]),
        (claim({"deviceClassName": "unknown"}), (), None),
    ],
    ids=["one", "one left", "two", "too many", "all", "all but one taken", "two requests", "no such class"],
)
def test_how_many_devices_a_claim_gets(
    wanted: ResourceClaim, taken: tuple[str, ...], devices: list[str] | None
) -> None:
    """As many as asked for, of those that are free, or none at all."""
    assert got(wanted, GPUS, taken=taken) == devices


def selecting(expression: str) -> ResourceClaim:
    return claim({"selectors": [{"cel": {"expression": expression}}]})


LARGE = offered(
    {**device("small", model="A100"), "capacity": {"memory": {"value": "40Gi"}}},
    {
        "name": "large",
        "attributes": {
            "model": {"string": "H100"},
            "driverVersion": {"version": "550.54.15"},
            "vendor.example.com/numa": {"int": 1},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    },
)


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["gpu.example.com"].model == "H100"',
        'device.attributes["gpu.example.com"].model.lowerAscii().startsWith("h")',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("64Gi")) > 0',
        'has(device.attributes["vendor.example.com"].numa) && device.attributes["vendor.example.com"].numa == 1',
        'has(device.attributes["gpu.example.com"].driverVersion)'
        ' && device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("550.0.0"))',
    ],
)
def test_selectors_look_at_attributes_and_capacity(expression: str) -> None:
    """Selectors speak Kubernetes' CEL: quantities, versions and strings; a domain that is not there is empty."""
    assert got(selecting(expression), LARGE) == ["large"]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("device.driver ==", "CEL compile error: Syntax error"),
        ("size(device.driver)", "CEL compile error: must evaluate to bool or the unknown type, not int"),
        ("device.driver", "CEL runtime error: got str instead of bool"),
        ('device.attributes["other"].thing == 1', "CEL runtime error: no such key: thing"),
    ],
)
def test_a_selector_that_fails_stops_the_allocation(expression: str, problem: str) -> None:
    """As in kube-scheduler: what is neither true nor false of a device is an error, told with its place."""
    with pytest.raises(SelectorError, match=f"claim /c: selector #0: {problem}"):
        got(selecting(expression), GPUS)


def test_selectors_that_do_not_compile_are_found_before_any_device_is_seen() -> None:
    """In the claim, in its alternatives and in its class."""
    broken = [{"cel": {"expression": "device.driver =="}}]
    wish = {"name": "a", "deviceClassName": "gpu", "selectors": broken}
    one_of = {"requests": [{"name": "r", "firstAvailable": [wish]}]}
    alternatives = convert(ResourceClaim, {"metadata": {"name": "c"}, "spec": {"devices": one_of}})
    of_class = convert(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"selectors": broken}})
    for wanted, classes, owner in (
        (selecting("device.driver =="), CLASSES, "claim /c"),
        (alternatives, CLASSES, "claim /c"),
        (claim({}), {"gpu": of_class}, "class gpu"),
    ):
        with pytest.raises(SelectorError, match=f"{owner}: selector #0: CEL compile error"):
            check_selectors(wanted, classes)
    check_selectors(claim({}), CLASSES)


def test_devices_with_something_in_common() -> None:
    """Two devices that must be of one model skip the model that has only one."""
    together = {"constraints": [{"matchAttribute": "gpu.example.com/model"}]}
    assert got(claim({"count": 2}, **together), GPUS) == ["g1", "g2"]


def test_devices_of_other_nodes_and_older_generations_do_not_count() -> None:
    """Only what the newest generation of a pool offers on this node."""
    elsewhere = offered(device("x"), node="n2")
    old = offered(device("old"), pool={"name": "n1", "generation": 0})
    assert [offer.device.name for offer in offers_on(NODE, [elsewhere, old, GPUS])] == ["g0", "g1", "g2"]


def test_parts_of_a_device_share_its_counters() -> None:
    """Two halves fit into a whole, a third does not, and neither does the whole beside a half."""

    def part(name: str, memory: str) -> Json:
        drawn = {"counterSet": "g0", "counters": {"memory": {"value": memory}}}
        return {"name": name, "consumesCounters": [drawn]}

    parts = offered(
        part("half-0", "40Gi"),
        part("half-1", "40Gi"),
        part("half-2", "40Gi"),
        part("whole", "80Gi"),
        sharedCounters=[{"name": "g0", "counters": {"memory": {"value": "80Gi"}}}],
    )
    assert got(claim({"count": 2}), parts) == ["half-0", "half-1"]
    assert got(claim({"count": 3}), parts) is None
    assert got(claim({"count": 1}), parts, taken=("half-0", "half-1")) is None


def test_alternatives_are_tried_in_order() -> None:
    """The result names the alternative that was had."""
    wishes = [{"name": "big", "deviceClassName": "unknown"}, {"name": "small", "deviceClassName": "gpu"}]
    wanted = convert(ResourceClaim, {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": wishes}]}}})
    allocation = allocate(wanted, NODE, offers_on(NODE, [GPUS]), set(), CLASSES)
    assert allocation is not None
    assert allocation["devices"]["results"][0]["request"] == "r/small"


def test_what_claims_hold_is_in_use() -> None:
    """Admin access holds nothing."""
    held = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    allocation = {"devices": {"results": [held, {**held, "device": "y", "adminAccess": True}]}}
    claim = convert(ResourceClaim, {"status": {"allocation": allocation}})
    assert in_use([claim]) == {("d", "p", "x")}


def test_a_claim_waits_for_its_device_class() -> None:
    """Of alternatives one class is enough; a class that only some request names is missed all the same."""
    wishes = [{"name": "big", "deviceClassName": "unknown"}, {"name": "small", "deviceClassName": "gpu"}]
    either = convert(ResourceClaim, {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": wishes}]}}})
    assert missing_class(either, CLASSES) == ""
    assert missing_class(either, {}) == "unknown"
    assert missing_class(claim({}, {"deviceClassName": "nic"}), CLASSES) == "nic"

"""Upstream's start-up order suite: a clique's pods start when enough pods of the cliques before it are ready."""

from __future__ import annotations

import asyncio

import pytest

from spinney import initc
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from tests.grove.conftest import Play
from tests.grove.stage import Stage, sample
from tests.grove.virtual import played


class Order:
    """Watches pods become ready, and keeps their cliques in that order."""

    def __init__(self, stage: Stage) -> None:
        self.cliques: list[str] = []
        self._stage = stage
        self._seen: set[str] = set()

    async def watch(self) -> None:
        """Note every pod that becomes ready, until cancelled."""
        async for event in self._stage.client.watch(Pod, self._stage.namespace, resource_version="0"):
            pod = event.object
            if pod is not None and pod.uid not in self._seen and is_true(pod.status.conditions, "Ready"):
                self._seen.add(pod.uid)
                self.cliques.append(pod.metadata.labels["grove.io/podclique"])

    async def count(self) -> int:
        """How many have become ready."""
        return len(self.cliques)

    def follows(self, later: str, earlier: str, least: int) -> bool:
        """Whether no pod of the later clique was ready before the earlier one had its minimum."""
        return self.cliques[: self.cliques.index(later)].count(earlier) >= least


def slow(name: str) -> list[dict[str, object]]:
    """The manifest, with pods that take a while to be ready, so that order shows."""
    documents = sample(name)
    for clique in documents[0]["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["containers"][0]["readinessProbe"] = {
            "initialDelaySeconds": 5,
            "tcpSocket": {"port": 80},
        }
    return documents


ORDERS = {
    "workload3": [("pc-a", "sg-x-0-pc-b", 2), ("pc-a", "sg-x-1-pc-b", 2)]
    + [(f"sg-x-{i}-pc-b", f"sg-x-{j}-pc-c", 1) for i in (0, 1) for j in (0, 1)],
    "workload4": [("pc-a", "sg-x-0-pc-b", 1), ("sg-x-0-pc-b", "sg-x-0-pc-c", 1), ("sg-x-1-pc-b", "sg-x-1-pc-c", 1)],
    "workload5": [("pc-a", "sg-x-0-pc-c", 2), ("sg-x-0-pc-c", "sg-x-0-pc-b", 3), ("sg-x-1-pc-c", "sg-x-0-pc-b", 3)],
    "workload6": [("pc-a", "sg-x-0-pc-b", 1), ("sg-x-0-pc-b", "sg-x-0-pc-c", 1), ("sg-x-1-pc-b", "sg-x-1-pc-c", 1)],
}


@pytest.mark.parametrize("name", ORDERS, ids=["so1", "so2", "so3", "so4"])
def test_cliques_become_ready_in_order(both: Play, name: str) -> None:
    """SO1–SO4: in order and explicit, inside the base gang and inside each scaled gang."""

    async def scenario(stage: Stage) -> None:
        order = Order(stage)
        watching = asyncio.create_task(order.watch())
        await stage.apply(*slow(f"e2e-yaml/{name}"))
        await stage.sees(order.count, 10)
        watching.cancel()
        for earlier, later, least in ORDERS[name]:
            assert order.follows(f"{name}-0-{later}", f"{name}-0-{earlier}", least), (later, earlier, order.cliques)

    both(scenario, nodes=10)


@played(nodes=10)
async def test_the_init_container_is_upstreams(stage: Stage) -> None:
    """Name, arguments, mounts and the token's Secret are those that upstream's init container has."""
    await stage.apply(*sample("e2e-yaml/workload3"))
    await stage.runs(10)
    (pod,) = await stage.pods("workload3-0-sg-x-0-pc-b")
    container = pod.spec.init_containers[-1]
    assert container.name == "grove-initc"
    assert container.args == ("--podcliques=workload3-0-pc-a:2",)
    assert not container.env
    assert {mount.name for mount in container.volume_mounts} >= {"sa-token-secret-vol", "pod-info-vol"}
    assert [volume.secret.secret_name for volume in pod.spec.volumes if volume.secret] == ["workload3-ic-sat"]


def test_names_that_begin_alike_are_not_confused() -> None:
    """Parents are matched by label: `x` does not count pods of `x-1`."""
    assert initc.parents_from(["--podcliques=a-0-x:2", "--podcliques", "a-0-x-1:1"]) == {"a-0-x": 2, "a-0-x-1": 1}
    assert initc.parse_parents(["a-0-x:2,b-0-y:1"]) == {"a-0-x": 2, "b-0-y": 1}


@pytest.mark.parametrize("arguments", [["--podcliques"], ["--podcliques=a"], ["--podcliques=a:b"], ["--x=a:1"]])
def test_bad_arguments_are_refused(arguments: list[str]) -> None:
    """An argument that names no clique and count says what is expected."""
    with pytest.raises(initc.UsageError, match="expected"):
        initc.parents_from(arguments)

"""NUMA zones: read from a node's report, decided, and told to the binder."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.kai import BindRequest
from spinney.api.meta import Json, convert
from spinney.api.noderesourcetopology import NodeResourceTopology
from spinney.api.schedulerfile import PluginEntry, SchedulerFile, Tier
from spinney.scheduler.config import DEFAULT_PLUGINS
from spinney.scheduler.intake.numa_zones import numa_of, zones_of_pod
from spinney.scheduler.service.component import COMPONENT as SCHEDULER
from spinney.services.binder.component import COMPONENT as BINDER
from tests import make
from tests.services.stage import CRD, stage
from tests.virtual_time import virtual

GPU = "nvidia.com/gpu"
ALIGNING = SchedulerFile(tiers=(Tier(tuple(PluginEntry(name) for name in (*DEFAULT_PLUGINS, "numa"))),))
DEFINITION: Json = {
    "metadata": {
        "name": "noderesourcetopologies.topology.node.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1870"},
    },
    "spec": {
        "group": "topology.node.k8s.io",
        "scope": "Cluster",
        "names": {
            "kind": "NodeResourceTopology",
            "listKind": "NodeResourceTopologyList",
            "plural": "noderesourcetopologies",
            "singular": "noderesourcetopology",
        },
        "versions": [
            {
                "name": "v1alpha2",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def report(name: str = "n1", gpus: int = 4, **more: Any) -> Json:
    resource = {"name": GPU, "capacity": str(gpus), "allocatable": str(gpus), "available": str(gpus)}
    zones = [{"name": f"node-{number}", "type": "Node", "resources": [resource]} for number in (1, 0)]
    return {"metadata": {"name": name}, "zones": [*zones, {"name": "socket", "type": "Socket"}], **more}


def attributes(policy: str, scope: str) -> list[Json]:
    return [{"name": "topologyManagerPolicy", "value": policy}, {"name": "topologyManagerScope", "value": scope}]


@pytest.mark.parametrize(
    ("more", "policy", "scope"),
    [
        ({"attributes": attributes("restricted", "pod")}, "restricted", "pod"),
        ({"attributes": attributes("restricted", "")}, "restricted", "container"),
        ({"topologyPolicies": ["SingleNUMANodePodLevel"]}, "single-numa-node", "pod"),
        ({"topologyPolicies": ["BestEffort"]}, "best-effort", "container"),
        ({}, "none", "container"),
    ],
)
def test_how_a_node_aligns_pods(more: Json, policy: str, scope: str) -> None:
    """By attributes, else by the one word that older agents write; only NUMA nodes are zones."""
    numa = numa_of(convert(NodeResourceTopology, report(**more)))
    assert numa is not None
    assert (numa.policy, numa.scope) == (policy, scope)
    assert [(zone.id, dict(zone.allocatable)) for zone in numa.zones] == [("node-1", {GPU: 4}), ("node-0", {GPU: 4})]


def test_a_node_without_zones_is_not_aligned() -> None:
    """Nothing reported, nothing to keep."""
    assert numa_of(convert(NodeResourceTopology, {"metadata": {"name": "n"}})) is None


def test_what_was_seen_counts_before_what_was_decided_and_predicted() -> None:
    """A note that cannot be read is none."""

    def note(zone: str) -> str:
        return json.dumps([{"zone": zone, "amount": {"cpu": "1500m"}}])

    built = make.pod("p").annotate(labels.NUMA_PREDICTED, note("predicted"))
    spec = {"podName": "p", "predictedNUMAZones": [{"zone": "decided", "amount": {"cpu": "1500m"}}]}
    request = convert(BindRequest, {"metadata": {"name": "p"}, "spec": spec})
    assert zones_of_pod(convert(Pod, built.build()), None) == (("predicted", (("cpu", 1500.0),)),)
    assert zones_of_pod(convert(Pod, built.build()), request)[0][0] == "decided"
    assert (
        zones_of_pod(convert(Pod, built.annotate(labels.NUMA_OBSERVED, note("seen")).build()), request)[0][0] == "seen"
    )
    assert zones_of_pod(convert(Pod, built.annotate(labels.NUMA_OBSERVED, "?").build()), request)[0][0] == "decided"


@virtual
async def test_pods_are_aligned_to_zones() -> None:
    """Each pod of three GPUs has a zone to itself, which its pod is told; two GPUs in two zones are not enough."""
    parts = ((SCHEDULER, ALIGNING), (BINDER, None))
    async with stage(*parts, before=[(CRD, DEFINITION, "")]) as world:
        client = world.client
        body = report(attributes=attributes("single-numa-node", "pod"))
        await client.create(NodeResourceTopology, body)
        await world.node("n1", gpus=8)
        for name in ("a", "b"):
            await world.gang(name, members=1, gpus=3)
            await asyncio.sleep(5)
        await world.gang("c", members=1, gpus=2)
        await asyncio.sleep(5)
        assert await world.placed("") == {"a-0": "n1", "b-0": "n1", "c-0": ""}
        notes = [
            json.loads((await client.get(Pod, ("default", name))).metadata.annotations[labels.NUMA_PREDICTED])
            for name in ("a-0", "b-0")
        ]
        assert [[(zone["zone"], zone["amount"]) for zone in note] for note in notes] == [
            [("node-0", {GPU: "3"})],
            [("node-1", {GPU: "3"})],
        ]
        await client.delete(Pod, ("default", "b-0"), grace_seconds=0)
        await asyncio.sleep(5)
        assert await world.placed("c") == {"c-0": "n1"}

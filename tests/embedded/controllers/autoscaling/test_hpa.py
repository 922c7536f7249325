"""Autoscaling by simulated usage, in virtual time; and the rules of pace."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.apps import Deployment
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.meta import Json
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.autoscaling.hpa import PodMetrics
from spinney.embedded.controllers.autoscaling.hpa_plan import Event, limited, stabilized
from tests.embedded.virtual import FirstNode, after, get, on_cluster


async def deploy(cluster: Cluster, usage: str, replicas: int = 2) -> None:
    """A Deployment whose pods ask for one core and use a share of it."""
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"spinney.dev/cpu-usage": usage}},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await cluster.client().create(Deployment.resource, {"metadata": {"name": "web"}, "spec": spec}, "default")


async def autoscale(cluster: Cluster, **more: Any) -> None:
    """An autoscaler that wants 50 % of requests used."""
    target = {"type": "Utilization", "averageUtilization": 50}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        **more,
    }
    body = {"metadata": {"name": "web"}, "spec": spec}
    await cluster.client().create(HorizontalPodAutoscaler.resource, body, "default")


async def replicas(cluster: Cluster) -> int:
    """The size that the Deployment should have."""
    return int((await get(cluster, Deployment.resource, "web"))["spec"]["replicas"])


@pytest.mark.parametrize(
    ("usage", "seconds", "expected"),
    [
        ("50%", 600, 2),
        ("54%", 600, 2),
        ("100%", 1, 4),
        ("25%", 60, 2),
        ("25%", 600, 1),
        ("800m", 1, 4),
    ],
)
@on_cluster()
async def test_the_target_is_scaled_to_what_its_pods_use(
    cluster: Cluster, usage: str, seconds: float, expected: int
) -> None:
    """Within the tolerance nothing happens; up at once; down only when five minutes agree."""
    FirstNode(cluster)
    await deploy(cluster, usage)
    await after(5)
    await autoscale(cluster)
    await after(seconds)
    assert await replicas(cluster) == expected


@on_cluster()
async def test_growth_stops_at_the_maximum_and_says_so(cluster: Cluster) -> None:
    """ScalingLimited tells why."""
    FirstNode(cluster)
    await deploy(cluster, "200%")
    await after(5)
    await autoscale(cluster, maxReplicas=3)
    await after(60)
    assert await replicas(cluster) == 3
    status = (await get(cluster, HorizontalPodAutoscaler.resource, "web"))["status"]
    reasons = {c["type"]: c["reason"] for c in status["conditions"]}
    assert reasons["ScalingLimited"] == "TooManyReplicas"
    assert status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 200


@on_cluster()
async def test_a_metric_that_cannot_be_had_changes_nothing(cluster: Cluster) -> None:
    """ScalingActive is False with the reason."""
    FirstNode(cluster)
    await deploy(cluster, "50%")
    await after(5)
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    await autoscale(cluster, metrics=[{"type": "Pods", "pods": metric}])
    await after(60)
    status = (await get(cluster, HorizontalPodAutoscaler.resource, "web"))["status"]
    active = next(c for c in status["conditions"] if c["type"] == "ScalingActive")
    assert (active["status"], active["reason"]) == ("False", "FailedGetPodsMetric")
    assert await replicas(cluster) == 2


@on_cluster()
async def test_usage_is_served_as_metrics(cluster: Cluster) -> None:
    """Per container, for pods that run; half of the request where nothing is said."""
    FirstNode(cluster)
    await deploy(cluster, "250m", replicas=1)
    await after(1)
    (metrics,) = (await cluster.client().list(PodMetrics, "default", labels="app=web")).items
    assert metrics.containers[0].usage["cpu"] == "250m"
    # A user with the right to one name may list what selects that name, and got everything.
    assert (await cluster.client().list(PodMetrics, "default", fields="metadata.name=another")).items == []
    assert (await cluster.client().list(PodMetrics, "default", fields=f"metadata.name={metrics.name}")).items
    node = await cluster.client().call("GET", "/apis/metrics.k8s.io/v1beta1/nodes/node-00")
    assert b'"cpu":"250m"' in node.body


HOUR = 3600.0


@pytest.mark.parametrize(
    ("wanted", "past", "expected"),
    [
        (3, [], 3),
        (3, [Event(HOUR - 200, 8)], 8),
        (3, [Event(HOUR - 400, 8)], 3),
        (3, [Event(HOUR - 200, 20)], 10),
        (12, [Event(HOUR - 10, 4)], 12),
    ],
)
def test_only_what_five_minutes_agree_on_is_given_up(wanted: int, past: list[Event], expected: int) -> None:
    """From 10 replicas: down to the highest wish of the last 300 s, up without waiting."""
    assert stabilized(wanted, 10, past, {}, HOUR) == expected


@pytest.mark.parametrize(
    ("wanted", "current", "steps", "behavior", "expected"),
    [
        (100, 2, [], {}, 6),
        (100, 10, [], {}, 20),
        (100, 20, [Event(HOUR - 10, 10)], {}, 20),
        (0, 10, [], {}, 0),
        (1, 10, [], {"scaleDown": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}, 8),
        (1, 10, [], {"scaleDown": {"selectPolicy": "Disabled"}}, 10),
    ],
)
def test_steps_are_no_larger_than_the_policies_allow(
    wanted: int, current: int, steps: list[Event], behavior: Json, expected: int
) -> None:
    """By default up by 4 pods or 100 % in 15 s, whichever is more; down without limit."""
    assert limited(wanted, current, steps, behavior, HOUR) == expected

"""Limit ranges: defaults for those who ask for nothing, and bounds for everybody."""

from __future__ import annotations

from typing import Any

import pytest

from tests import make
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Api, Json


async def limit(api: Api, namespace: str, **item: Any) -> None:
    """A range of one item; admission takes a moment to notice it."""
    path = f"/api/v1/namespaces/{namespace}/limitranges"
    (await api.post(path, {"metadata": {"name": "l"}, "spec": {"limits": [item]}})).ok()


def pod(namespace: str, **resources: Json) -> Json:
    """A pod whose container asks for resources."""
    return make.pod("a", namespace).resources(**resources).build()


async def test_defaults(api: Api, namespace: str) -> None:
    """A container that says nothing gets the range's defaults, and the pod says so."""
    await limit(api, namespace, type="Container", default={"cpu": "2"}, defaultRequest={"cpu": "1"})
    made = await api.repeat(
        lambda: api.post(pods(namespace), pod(namespace), dryRun="All"),
        lambda answer: bool(answer.ok()["spec"]["containers"][0]["resources"]),
    )
    body = made.ok()
    assert body["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert body["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container main; "
        "cpu limit for container main"
    }


BOUNDS: dict[str, tuple[Json, Json, str]] = {
    "too-much": (
        {"type": "Container", "max": {"cpu": "1"}},
        {"limits": {"cpu": "2"}},
        "maximum cpu usage per Container is 1, but limit is 2",
    ),
    "too-little": (
        {"type": "Container", "min": {"cpu": "1"}},
        {"requests": {"cpu": "500m"}},
        "minimum cpu usage per Container is 1, but request is 500m",
    ),
    "too-far": (
        {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    "pod": (
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"limits": {"memory": "2Gi"}},
        "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
    ),
    "nothing-said": (
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {},
        "maximum memory usage per Pod is 1Gi.  No limit is specified",
    ),
}


@pytest.mark.parametrize("case", BOUNDS)
async def test_bounds(api: Api, namespace: str, case: str) -> None:
    """A pod outside the bounds is forbidden, with the bound and what it asks for."""
    item, resources, why = BOUNDS[case]
    await limit(api, namespace, **item)
    answer = await api.repeat(
        lambda: api.post(pods(namespace), pod(namespace, **resources), dryRun="All"), lambda answer: answer.code != 201
    )
    answer.refused(403, "Forbidden", f'pods "a" is forbidden: {why}')


async def test_claim(api: Api, namespace: str) -> None:
    """A claim for more storage than allowed is forbidden."""
    await limit(api, namespace, type="PersistentVolumeClaim", max={"storage": "1Gi"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    answer = await api.repeat(
        lambda: api.post(path, {"metadata": {"name": "c"}, "spec": spec}, dryRun="All"),
        lambda answer: answer.code != 201,
    )
    why = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    answer.refused(403, "Forbidden", f'persistentvolumeclaims "c" is forbidden: {why}')

"""What a pod asks for, counted as kube-scheduler counts it."""

from __future__ import annotations

import pytest

from spinney.api.core import PodSpec
from spinney.api.meta import Json, convert
from spinney.api.requests import pod_requests


def container(cpu: str, **more: object) -> Json:
    """A container that asks for CPU."""
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


CASES: dict[str, tuple[Json, int]] = {
    "containers add up": ({"containers": [container("1"), container("500m")]}, 1500),
    "init containers run one after another": (
        {"containers": [container("1")], "initContainers": [container("2"), container("3")]},
        3000,
    ),
    "a small init container costs nothing": (
        {"containers": [container("2")], "initContainers": [container("1")]},
        2000,
    ),
    "a sidecar runs beside the containers": (
        {"containers": [container("1")], "initContainers": [container("1", restartPolicy="Always")]},
        2000,
    ),
    "a sidecar runs beside later init containers": (
        {
            "containers": [container("1")],
            "initContainers": [container("1", restartPolicy="Always"), container("4")],
        },
        5000,
    ),
    "but not beside earlier ones": (
        {
            "containers": [container("1")],
            "initContainers": [container("4"), container("1", restartPolicy="Always")],
        },
        4000,
    ),
    "overhead comes on top": ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
    "a limit alone is a request": ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000),
    "the pod's own request stands for all": (
        {"containers": [container("1"), container("1")], "resources": {"requests": {"cpu": "1500m"}}},
        1500,
    ),
}


@pytest.mark.parametrize(("spec", "milli"), CASES.values(), ids=CASES.keys())
def test_cpu(spec: Json, milli: int) -> None:
    """Every way in which requests combine."""
    assert pod_requests(convert(PodSpec, spec))["cpu"] == milli

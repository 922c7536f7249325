"""Workloads that API-behaviour tests write, and how to wait for their pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Answer, Api, Json

CONTAINERS = [{"name": "main", "image": "busybox"}]


def apps(namespace: str, plural: str) -> str:
    """A collection of the apps group."""
    return f"/apis/apps/v1/namespaces/{namespace}/{plural}"


def jobs(namespace: str) -> str:
    """The jobs of a namespace."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def workload(kind: str, **spec: Any) -> Json:
    """A workload of app=a."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": CONTAINERS}}
    body = {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": body}


def job(**spec: Any) -> Json:
    """A job of one pod that is not restarted."""
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    return {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def count(number: int) -> Callable[[Answer], bool]:
    """A check that a list has so many items that are not being deleted."""
    return lambda answer: (
        len([1 for item in answer.ok()["items"] if "deletionTimestamp" not in item["metadata"]]) == number
    )


async def listed(api: Api, path: str, number: int, **query: str) -> list[Json]:
    """The items of a list once there are so many."""
    answer = await api.until(path, count(number), **query)
    return [item for item in answer.ok()["items"] if "deletionTimestamp" not in item["metadata"]]


async def set_phase(api: Api, namespace: str, name: str, phase: str, *, code: int = 0) -> None:
    """Write a pod's phase and the state of its container as a kubelet would."""
    state: Json = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    if phase in ("Succeeded", "Failed"):
        state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
    ready = phase == "Running"
    status = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [
            {"name": "main", "ready": ready, "restartCount": 0, "image": "x", "imageID": "", "state": state}
        ],
    }
    (await api.merge(f"{pods(namespace)}/{name}/status", {"status": status})).ok()


def condition(body: Json, kind: str) -> Json | None:
    """A condition of an object's status."""
    return next((each for each in body.get("status", {}).get("conditions") or () if each["type"] == kind), None)


def is_true(kind: str) -> Callable[[Answer], bool]:
    """A check that a condition holds."""
    return lambda answer: (condition(answer.ok(), kind) or {}).get("status") == "True"

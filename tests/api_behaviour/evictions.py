"""Pods and disruption budgets that API-behaviour tests write."""

from __future__ import annotations

from tests import make
from tests.api_behaviour.paths import pods
from tests.api_behaviour.wire import Api, Json


def budget(name: str, **spec: object) -> Json:
    """A disruption budget over app=a."""
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec}}


async def ready_pod(api: Api, namespace: str, name: str) -> None:
    """A pod of app=a on a node, running and ready."""
    await api.post(pods(namespace), make.pod(name, namespace).label("app", "a").on("n").build())
    conditions = [{"type": "Ready", "status": "True"}]
    (
        await api.merge(f"{pods(namespace)}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}})
    ).ok()

"""Resource quotas that API-behaviour tests write, and how to wait until they are enforced."""

from __future__ import annotations

from tests.api_behaviour.wire import Api, Json


def path(namespace: str, plural: str) -> str:
    """A collection of the core group."""
    return f"/api/v1/namespaces/{namespace}/{plural}"


async def noticed(api: Api, namespace: str) -> None:
    """Wait until admission knows what is counted now: it hears of quotas in order, and of this one last."""
    spec = {"hard": {"replicationcontrollers": "0"}}
    (await api.post(path(namespace, "resourcequotas"), {"metadata": {"name": "last"}, "spec": spec})).ok()
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    controller = {"metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}, "template": template}}
    await api.repeat(
        lambda: api.post(path(namespace, "replicationcontrollers"), controller, dryRun="All"),
        lambda answer: answer.code == 403,
    )


async def enforced(api: Api, namespace: str, spec: Json) -> str:
    """Make a quota, and wait until it is counted and holds; its path."""
    (await api.post(path(namespace, "resourcequotas"), {"metadata": {"name": "q"}, "spec": spec})).ok()
    address = f"{path(namespace, 'resourcequotas')}/q"
    await api.until(address, lambda answer: "hard" in answer.ok().get("status", {}))
    await noticed(api, namespace)
    return address

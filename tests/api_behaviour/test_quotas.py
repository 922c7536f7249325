"""Resource quotas: what a namespace may hold, and what it holds."""

from __future__ import annotations

from tests import make
from tests.api_behaviour.wire import Api, Json


def path(namespace: str, plural: str) -> str:
    """A collection of the core group."""
    return f"/api/v1/namespaces/{namespace}/{plural}"


async def quota(api: Api, namespace: str, **hard: str) -> Json:
    """A quota, once what it limits is counted."""
    named = {key.replace("_", "."): value for key, value in hard.items()}
    (await api.post(path(namespace, "resourcequotas"), {"metadata": {"name": "q"}, "spec": {"hard": named}})).ok()
    found = await api.until(
        f"{path(namespace, 'resourcequotas')}/q", lambda answer: "used" in (answer.ok().get("status") or {})
    )
    status: Json = found.ok()["status"]
    assert status["hard"] == named
    return status


def pod(namespace: str, name: str, **requests: str) -> Json:
    """A pod that asks for resources."""
    wanted = make.pod(name, namespace).build()
    if requests:
        wanted["spec"]["containers"][0]["resources"] = {"requests": requests}
    return wanted


async def test_status(api: Api, namespace: str) -> None:
    """A quota's status follows what is made and deleted."""
    assert (await quota(api, namespace, pods="2", requests_cpu="4"))["used"] == {"pods": "0", "requests.cpu": "0"}
    (await api.post(path(namespace, "pods"), pod(namespace, "a", cpu="500m"))).ok()
    address = f"{path(namespace, 'resourcequotas')}/q"
    await api.until(address, lambda answer: answer.ok()["status"]["used"] == {"pods": "1", "requests.cpu": "500m"})
    (await api.delete(f"{path(namespace, 'pods')}/a")).ok()
    await api.until(address, lambda answer: answer.ok()["status"]["used"] == {"pods": "0", "requests.cpu": "0"})


async def test_exceeded(api: Api, namespace: str) -> None:
    """What goes beyond is forbidden, with what was asked for, what is used and the limit."""
    await quota(api, namespace, pods="5", requests_cpu="1")
    (await api.post(path(namespace, "pods"), pod(namespace, "a", cpu="2"))).refused(
        403,
        "Forbidden",
        'pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, '
        "limited: requests.cpu=1",
    )


async def test_must_be_said(api: Api, namespace: str) -> None:
    """Where requests are limited, a container that makes none is forbidden."""
    await quota(api, namespace, requests_cpu="1")
    (await api.post(path(namespace, "pods"), pod(namespace, "a"))).refused(
        403, "Forbidden", 'pods "a" is forbidden: failed quota: q: must specify requests.cpu for: main'
    )


async def test_counts(api: Api, namespace: str) -> None:
    """Objects of any kind can be counted."""
    await quota(api, namespace, secrets="1")
    (await api.post(path(namespace, "secrets"), {"metadata": {"name": "a"}})).ok()
    (await api.post(path(namespace, "secrets"), {"metadata": {"name": "b"}})).refused(
        403,
        "Forbidden",
        'secrets "b" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1',
    )

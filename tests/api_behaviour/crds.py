"""Installs a CRD for a check and waits until it serves; on the real server it stays for the run."""

from __future__ import annotations

from tests.api_behaviour.wire import Answer, Api, Json

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def install(api: Api, crd: Json) -> str:
    """The path of its collection over all namespaces, once it answers."""
    answer = await api.post(CRDS, crd)
    assert answer.code in (201, 409), answer.raw
    spec = crd["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    await api.until(f"{CRDS}/{crd['metadata']['name']}", _established)
    await api.until(path, lambda answer: answer.code == 200)
    return path


def at(path: str, namespace: str) -> str:
    """The collection in one namespace."""
    root, _, plural = path.rpartition("/")
    return f"{root}/namespaces/{namespace}/{plural}"


def _established(answer: Answer) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

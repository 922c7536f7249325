"""Installs a CRD for a check and waits until it serves; on the real server it stays for the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests import make
from tests.api_behaviour.wire import Answer, Api, Json

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMAS: dict[str, Json] = yaml.safe_load(Path(__file__).with_name("schemas.yaml").read_text())


def named(name: str, **version: Any) -> Json:
    """The CRD that serves a schema of `schemas.yaml` as widgets, with a status subresource."""
    return make.crd(f"{name}.example.com", "Widget", SCHEMAS[name], subresources={"status": {}}, **version)


def widgets(name: str, namespace: str) -> str:
    """The path of the widgets of a schema in a namespace."""
    return f"/apis/{name}.example.com/v1/namespaces/{namespace}/widgets"


async def install(api: Api, crd: Json) -> str:
    """The path of its collection over all namespaces, once it answers."""
    answer = await api.post(CRDS, crd)
    assert answer.code in (201, 409), answer.raw
    spec = crd["spec"]
    path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    await api.until(f"{CRDS}/{crd['metadata']['name']}", established)
    await api.until(path, lambda answer: answer.code == 200)
    return path


def at(path: str, namespace: str) -> str:
    """The collection in one namespace."""
    root, _, plural = path.rpartition("/")
    return f"{root}/namespaces/{namespace}/{plural}"


def established(answer: Answer) -> bool:
    """Whether a CRD serves."""
    conditions = answer.body.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

"""Deployments that API-behaviour tests write."""

from __future__ import annotations

from typing import Any

from tests.api_behaviour.wire import Json


def deployments(namespace: str) -> str:
    """The deployments of a namespace."""
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def deployment(name: str = "a", **spec: Any) -> Json:
    """A deployment of no pods, with two containers."""
    containers = [
        {"name": "one", "image": "first", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]},
        {"name": "two", "image": "second"},
    ]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }

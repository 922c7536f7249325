"""Where the kinds that every test uses are served."""

from __future__ import annotations


def maps(namespace: str) -> str:
    """The ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def pods(namespace: str) -> str:
    """The pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"

"""Accounts and their rights, as components declare them."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.kube.manifests import EVENT_RULE, LEASE_RULE, REVIEW_RULES, rights
from spinney.kube.runtime import Component
from spinney.services.platform.deployments import MANAGED
from spinney.services.platform.processes import Process

# The prefix of our cluster roles.
PREFIX = "kai-"


def role_name(account: str) -> str:
    """The ClusterRole of an account."""
    return f"{PREFIX}{account}"


def plan_rights(process: Process, component: Component, namespace: str) -> list[Json]:
    """The account of a process, its roles and their bindings."""
    documents = rights(
        process.account,
        namespace,
        (*component.rules, EVENT_RULE, *REVIEW_RULES),
        (*component.namespace_rules, LEASE_RULE),
    )
    return [_ours(document, process.account) for document in documents]


def _ours(document: Json, account: str) -> Json:
    metadata: Json = {**document["metadata"], "labels": {"app": account, **MANAGED}}
    if document["kind"].startswith("ClusterRole"):
        metadata["name"] = role_name(account)
    result: Json = {**document, "metadata": metadata}
    if document["kind"] == "ClusterRoleBinding":
        result["roleRef"] = {**document["roleRef"], "name": role_name(account)}
    return result

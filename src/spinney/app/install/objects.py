"""The objects of an installation, file by file."""

from __future__ import annotations

from spinney.api.crd import crds
from spinney.api.meta import Json
from spinney.app.install import access, surroundings, workloads
from spinney.app.install.evaluation import evaluated
from spinney.app.install.template import Each, Scope, Tree, When, value
from spinney.app.install.values import Values, plain

# Deleting a definition deletes all objects of its kind, and their pods: uninstalling must not do that.
_KEEP = {"helm.sh/resource-policy": "keep"}


def definitions() -> list[Json]:
    """The CustomResourceDefinitions."""
    return [_kept(definition) for definition in crds()]


def templates() -> dict[str, list[Tree]]:
    """The documents of every template file, apart from definitions."""
    grove = [*access.account("grove"), *access.certificate(), *workloads.documents_of(workloads.grove())]
    platform = [*access.account("platform"), *workloads.documents_of(workloads.platform())]
    pages = [
        *access.account("dashboard"),
        workloads.dashboard_service(),
        *workloads.documents_of(workloads.dashboard()),
    ]
    each = Each(
        value("backends.deployments"), (*access.backends_account(), *workloads.documents_of(workloads.backends()))
    )
    return {
        "grove": _only_if("grove.enabled", grove),
        "backends": [When(value("backends.enabled"), each)],
        "platform": _only_if("platform.enabled", platform),
        "dashboard": _only_if("dashboard.enabled", pages),
        "roles": _only_if("aggregatedRoles", access.user_roles()),
        "priorityclasses": surroundings.priority_classes(),
        "network": surroundings.network_policies(),
        "monitoring": surroundings.monitoring(),
    }


def objects(values: Values, namespace: str, version: str, served: frozenset[str] = frozenset()) -> list[Json]:
    """The objects of an installation, without definitions and without its namespace."""
    scope = Scope(plain(values), namespace, version, served)
    return [document for documents in templates().values() for document in evaluated(documents, scope)]


def namespace_object(name: str) -> Json:
    """The namespace of the installation."""
    labels = {"app.kubernetes.io/part-of": "spinney"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _only_if(path: str, documents: list[Tree]) -> list[Tree]:
    return [When(value(path), document) for document in documents]


def _kept(definition: Json) -> Json:
    metadata = definition["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **_KEEP}
    return {**definition, "metadata": {**metadata, "annotations": annotations}}

"""Namespaces and accounts of pods that services create: created once, and kept when Config is deleted."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.kaiconfig import Binder, ConfigSpec, NodeScaleAdjuster, NodeScaleArgs, ResourceReservation
from spinney.api.meta import Json
from spinney.api.naming import label_problems
from spinney.kube.manifests import rights
from spinney.kube.runtime import Component
from spinney.services.platform.deployments import MANAGED
from spinney.services.platform.processes import namespace_of
from spinney.services.platform.rights import PREFIX


def _reservation(config: ConfigSpec) -> tuple[str, str]:
    block = (config.binder or Binder()).resource_reservation or ResourceReservation()
    return block.namespace or labels.RESERVATION_NAMESPACE, block.service_account_name or labels.RESERVATION_NAMESPACE


def reservation_namespace(config: ConfigSpec) -> str:
    """The namespace of reservation pods."""
    return _reservation(config)[0]


def _scaling(config: ConfigSpec) -> tuple[str, str]:
    arguments = (config.node_scale_adjuster or NodeScaleAdjuster()).args or NodeScaleArgs()
    return arguments.node_scale_namespace or labels.SCALE_ADJUST_NAMESPACE, (
        arguments.node_scale_service_account or labels.SCALE_ADJUST_NAMESPACE
    )


def check_namespaces(config: ConfigSpec) -> None:
    """Refuse what no namespace can be named: every request about it would fail."""
    names = {
        "namespace": namespace_of(config),
        "binder.resourceReservation.namespace": _reservation(config)[0],
        "nodeScaleAdjuster.args.nodeScaleNamespace": _scaling(config)[0],
    }
    for field, name in names.items():
        if problems := label_problems(name):
            raise ValueError(f"{field} is {name!r}, which no namespace can be named: {problems[0]}")


def plan_namespaces(config: ConfigSpec, *, restricted: bool = False) -> list[Json]:
    """The namespaces and accounts, and where restricted a NetworkPolicy; running pods depend on them."""
    scaling, scaler = _scaling(config)
    reservation, holder = _reservation(config)
    names = dict.fromkeys((namespace_of(config), reservation, scaling))
    return [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names),
        _account(holder, reservation),
        _account(scaler, scaling),
        *([_unreachable(config)] if restricted else []),
    ]


def _unreachable(config: ConfigSpec) -> Json:
    """Reservation pods accept no connections; they report their GPU to the API server."""
    block = (config.binder or Binder()).resource_reservation or ResourceReservation()
    namespace, name = _reservation(config)
    pods = {"matchLabels": {labels.APP: block.app_label or labels.RESERVATION_NAMESPACE}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSelector": pods, "policyTypes": ["Ingress"]},
    }


def plan_reservation(config: ConfigSpec, component: Component) -> list[Json]:
    """The rights of reservation pods."""
    namespace, account = _reservation(config)
    documents = rights(account, namespace, component.rules, component.namespace_rules)
    role = next(document for document in documents if document["kind"] == "Role")
    binding = next(document for document in documents if document["kind"] == "RoleBinding")
    name = f"{PREFIX}{account.removeprefix(PREFIX)}"
    for document in (role, binding):
        document["metadata"] = {**document["metadata"], "name": name, "labels": {labels.APP: account, **MANAGED}}
    binding["roleRef"]["name"] = name
    return [role, binding]


def _account(name: str, namespace: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}

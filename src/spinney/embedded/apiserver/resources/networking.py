"""Ingresses, IngressClasses and NetworkPolicies: stored with their defaults, since nothing here routes traffic."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import only_spec
from spinney.embedded.apiserver.resources.record import Resource, Table


def _ingress_cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    return [
        cells.name(document),
        spec.get("ingressClassName", "<none>"),
        cells.some(hosts) or "*",
        ",".join(cells.load_balancer_addresses(document)),
        "80, 443" if spec.get("tls") else "80",
        cells.age(document, now),
    ]


def _default_class(document: Json) -> None:
    parameters = document.setdefault("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _default_policy(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    for side in ("ingress", "egress"):
        for rule in spec.get(side) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _policy_cells(document: Json, now: datetime) -> list[Any]:
    chosen = selectors.formatted(cells.spec(document).get("podSelector")) or "<none>"
    return [cells.name(document), chosen, cells.age(document, now)]


INGRESSES = Resource(
    group="networking.k8s.io",
    kind="Ingress",
    plural="ingresses",
    short_names=("ing",),
    subresources=("status",),
    default=only_spec,
    complete=complete.status_members({"loadBalancer": {}}),
    has_generation=True,
    table=Table("Name,Class,Hosts,Address,Ports,Age", _ingress_cells),
)
INGRESS_CLASSES = Resource(
    group="networking.k8s.io",
    kind="IngressClass",
    plural="ingressclasses",
    namespaced=False,
    default=_default_class,
    has_generation=True,
    table=Table("Name,Controller,Age", cells.members("spec.controller")),
)
NETWORK_POLICIES = Resource(
    group="networking.k8s.io",
    kind="NetworkPolicy",
    plural="networkpolicies",
    short_names=("netpol",),
    default=_default_policy,
    has_generation=True,
    table=Table("Name,Pod-Selector,Age", _policy_cells),
)

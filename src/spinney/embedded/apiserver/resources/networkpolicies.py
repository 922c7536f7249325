"""NetworkPolicies."""

from __future__ import annotations

import ipaddress
from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import names
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = check_selector(spec.get("podSelector"), "spec.podSelector")
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for at, rule in enumerate(spec.get(side) or ()):
            where = f"spec.{side}[{at}]"
            for number, port in enumerate(rule.get("ports") or ()):
                errors += _port(port, f"{where}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                errors += _peer(peer, f"{where}.{peers}[{number}]")
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    return errors + [
        unsupported(f"spec.policyTypes[{at}]", name, _TYPES) for at, name in enumerate(types) if name not in _TYPES
    ]


def _port(port: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    protocol, number, last = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    where = f"{path}.endPort"
    if number is None:
        if last is not None:
            errors.append(invalid(where, last, "may not be specified when `port` is not specified"))
        return errors
    errors += names.check_port(number, f"{path}.port")
    if last is None:
        return errors
    if not isinstance(number, int):
        return [*errors, invalid(where, last, "may not be specified when `port` is non-numeric")]
    if last < number:
        errors.append(invalid(where, number, "must be greater than or equal to `port`"))
    return errors + names.check_port(last, where)


def _peer(peer: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    given = 0
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            given += 1
            errors += check_selector(peer[key], f"{path}.{key}")
    if peer.get("ipBlock") is not None:
        given += 1
        errors += _block(peer["ipBlock"], f"{path}.ipBlock")
    if not given:
        errors.append(required(path, "must specify a peer"))
    elif given > 1 and peer.get("ipBlock") is not None:
        errors.append(forbidden_field(path, "may not specify both ipBlock and another peer"))
    return errors


def _block(block: Json, path: str) -> list[FieldError]:
    whole = block.get("cidr", "")
    if not whole:
        return [required(f"{path}.cidr")]
    errors = names.check_cidr(whole, f"{path}.cidr")
    if errors:
        return errors
    for at, part in enumerate(block.get("except") or ()):
        where = f"{path}.except[{at}]"
        wrong = names.check_cidr(part, where)
        if not wrong and not _inside(part, whole):
            wrong = [invalid(where, part, "must be a strict subset of `cidr`")]
        errors += wrong
    return errors


def _inside(part: str, whole: str) -> bool:
    small, large = ipaddress.ip_network(part, strict=False), ipaddress.ip_network(whole, strict=False)
    return small.version == large.version and small.network_address in large and small.prefixlen > large.prefixlen


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    for side in ("ingress", "egress"):
        for rule in spec.get(side) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _cells(document: Json, now: datetime) -> list[Any]:
    chosen = selectors.formatted(cells.spec(document).get("podSelector")) or "<none>"
    return [cells.name(document), chosen, cells.age(document, now)]


NETWORK_POLICIES = Resource(
    group="networking.k8s.io",
    kind="NetworkPolicy",
    plural="networkpolicies",
    short_names=("netpol",),
    default=_default,
    has_generation=True,
    checks=Checks(object=_check),
    table=Table("Name,Pod-Selector,Age", _cells),
)

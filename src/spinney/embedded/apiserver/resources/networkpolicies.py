"""NetworkPolicies: who may talk to whom."""

from __future__ import annotations

import ipaddress

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import names
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")


def check(document: Json) -> list[FieldError]:
    """A NetworkPolicy."""
    spec = document.get("spec") or {}
    found = check_selector(spec.get("podSelector"), "spec.podSelector")
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for at, rule in enumerate(spec.get(side) or ()):
            where = f"spec.{side}[{at}]"
            for number, port in enumerate(rule.get("ports") or ()):
                found += _port(port, f"{where}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                found += _peer(peer, f"{where}.{peers}[{number}]")
    types = spec.get("policyTypes") or []
    if len(types) > len(_TYPES):
        return [*found, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    return found + [
        unsupported(f"spec.policyTypes[{at}]", name, _TYPES) for at, name in enumerate(types) if name not in _TYPES
    ]


def _port(port: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    protocol, number, last = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        found.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    where = f"{path}.endPort"
    if number is None:
        if last is not None:
            found.append(invalid(where, last, "may not be specified when `port` is not specified"))
        return found
    found += names.check_port(number, f"{path}.port")
    if last is None:
        return found
    if not isinstance(number, int):
        return [*found, invalid(where, last, "may not be specified when `port` is non-numeric")]
    if last < number:
        found.append(invalid(where, number, "must be greater than or equal to `port`"))
    return found + names.check_port(last, where)


def _peer(peer: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    given = 0
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            given += 1
            found += check_selector(peer[key], f"{path}.{key}")
    if peer.get("ipBlock") is not None:
        given += 1
        found += _block(peer["ipBlock"], f"{path}.ipBlock")
    if not given:
        found.append(required(path, "must specify a peer"))
    elif given > 1 and peer.get("ipBlock") is not None:
        found.append(forbidden_field(path, "may not specify both ipBlock and another peer"))
    return found


def _block(block: Json, path: str) -> list[FieldError]:
    whole = block.get("cidr", "")
    if not whole:
        return [required(f"{path}.cidr")]
    found = names.check_cidr(whole, f"{path}.cidr")
    if found:
        return found
    for at, part in enumerate(block.get("except") or ()):
        where = f"{path}.except[{at}]"
        wrong = names.check_cidr(part, where)
        if not wrong and not _inside(part, whole):
            wrong = [invalid(where, part, "must be a strict subset of `cidr`")]
        found += wrong
    return found


def _inside(part: str, whole: str) -> bool:
    small, large = ipaddress.ip_network(part, strict=False), ipaddress.ip_network(whole, strict=False)
    return small.version == large.version and small.network_address in large and small.prefixlen > large.prefixlen

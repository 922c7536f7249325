"""Checks of a pod's status."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid
from spinney.embedded.apiserver.resources.validation import names


def check(new: Json, old: Json) -> list[FieldError]:
    """Check a new status of a pod."""
    status, was = new.get("status") or {}, old.get("status") or {}
    if status is was:
        return []
    errors: list[FieldError] = []
    for at, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        problems = naming.qualified_problems(kind)
        errors += [invalid(f"status.conditions[{at}].Type", kind, problem) for problem in problems]
    node = status.get("nominatedNodeName")
    if node and node != was.get("nominatedNodeName"):
        where = "status.nominatedNodeName"
        errors += [invalid(where, node, problem) for problem in naming.subdomain_problems(node)]
        if old["spec"].get("nodeName"):
            errors.append(forbidden_field(where, "may not be set on pods that are already bound to a node"))
    if status.get("qosClass") != was.get("qosClass"):
        errors.append(invalid("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    if status.get("podIPs"):
        errors += _addresses("status.podIPs", tuple(each.get("ip", "") for each in status["podIPs"]))
    if status.get("hostIPs"):
        first = status["hostIPs"][0].get("ip", "")
        if first != status.get("hostIP"):
            errors.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
        errors += _addresses("status.hostIPs", tuple(each.get("ip", "") for each in status["hostIPs"]))
    return errors


@lru_cache(maxsize=4096)
def _addresses(path: str, listed: tuple[str, ...]) -> tuple[FieldError, ...]:
    """Check the addresses of a pod: at most one per family."""
    wrong = [error for at, address in enumerate(listed) for error in names.check_address(address, f"{path}[{at}]")]
    if wrong:
        return tuple(wrong)
    families = {ipaddress.ip_address(address).version for address in listed}
    if len(listed) < 2 or len(families) == len(listed):
        return ()
    shown = [{"IP": address} for address in listed]
    return (invalid(path, shown, "may specify no more than one IP for each IP family"),)

"""Nodes."""

from __future__ import annotations

import ipaddress

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import names
from spinney.embedded.apiserver.schema import internal

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check(document: Json) -> list[FieldError]:
    """A Node."""
    spec = document.get("spec") or {}
    found = _taints(spec.get("taints") or ()) + _amounts(document)
    blocks = spec.get("podCIDRs") or []
    for at, block in enumerate(blocks):
        found += names.check_cidr(block, f"spec.podCIDRs[{at}]")
    families = {ipaddress.ip_network(block, strict=False).version for block in blocks} if not found else set()
    if len(blocks) > 1 and (len(families) < 2 or len(blocks) > 2):
        detail = "may specify no more than one CIDR for each IP family"
        found.append(invalid("spec.podCIDRs", blocks, detail))
    return found


def _taints(taints: list[Json] | tuple[()]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for at, taint in enumerate(taints):
        where, key = f"metadata.taints[{at}]", taint.get("key", "")
        effect, value = taint.get("effect", ""), taint.get("value", "")
        found += [invalid(f"{where}.key", key, problem) for problem in naming.qualified_problems(key)]
        problems = naming.value_problems(value)
        if problems:
            found.append(invalid(f"{where}.value", value, ";".join(problems)))
        if not effect:
            found.append(required(f"{where}.effect"))
        elif effect not in _EFFECTS:
            found.append(unsupported(f"{where}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            error = duplicate(where, internal.struct(taint, "core.Taint"))
            told = f"{error.message}: taints must be unique by key and effect pair"
            found.append(FieldError(error.reason, error.field, told))
        seen.add((key, effect))
    return found


def _amounts(document: Json) -> list[FieldError]:
    found: list[FieldError] = []
    status = document.get("status") or {}
    for kind in ("capacity", "allocatable"):
        for name, text in (status.get(kind) or {}).items():
            amount, where = quantity.exact(text), f"status.{kind}.{name}"
            if amount < 0:
                found.append(invalid(where, text, "must be greater than or equal to 0"))
            if ("/" in name or name == "pods") and amount.denominator != 1:
                found.append(invalid(where, text, "must be an integer"))
    return found


def check_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a Node."""
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    found: list[FieldError] = []
    before, now = was.get("podCIDRs") or [], mine.get("podCIDRs") or []
    rule = 'node updates may not change {} except from "" to valid'
    if before and before != now:
        found.append(forbidden_field("spec.podCIDRs", rule.format("podCIDR")))
    if was.get("providerID") and was["providerID"] != mine.get("providerID"):
        found.append(forbidden_field("spec.providerID", rule.format("providerID")))
    if was.get("externalID") != mine.get("externalID"):
        found.append(forbidden_field("spec.externalID", "may not be updated"))
    return found


def check_status(new: Json, old: Json) -> list[FieldError]:
    """What a kubelet may say of its node."""
    found = _amounts(new)
    addresses = (new.get("status") or {}).get("addresses") or []
    return found + [
        duplicate(f"status.addresses[{at}]", internal.struct(each, "core.NodeAddress"))
        for at, each in enumerate(addresses)
        if each in addresses[:at]
    ]

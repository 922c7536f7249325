"""Resource quotas: refuse an object that exceeds a quota of its namespace."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.quota import Scope, Usage, written
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Item, load

TABLE = "/resourcequotas"


def admit(core: Core, kinds: Kinds, call: Call, document: Json, old: Json | None = None) -> None:
    """Refuse an object or change that exceeds a quota of its namespace."""
    if not call.kind.namespaced or not core.store.table(TABLE).items:
        return
    kind = call.kind
    for item, quota in quotas_of(core, call.namespace):
        hard = quota["hard"]
        if not _covers(quota, kind, document):
            continue
        if old is None and (missing := kind.resource.quota.missing(hard, document)):
            raise forbidden(kind, call.name, f"failed quota: {item.name}: must specify {'; '.join(missing)}")
        before = usage(kind, old) if old is not None and _covers(quota, kind, old) else {}
        added = {name: amount - before.get(name, 0) for name, amount in usage(kind, document).items() if name in hard}
        wanted = {name: amount for name, amount in added.items() if amount > 0}
        if not wanted:
            continue
        taken = used(core, kinds, call.namespace, quota)
        over = sorted(name for name in wanted if taken[name] + wanted[name] > quantity.exact(hard[name]))
        if over:
            shown = (
                ",".join(f"{name}={written(name, source[name])}" for name in over)
                for source in (wanted, taken, {name: quantity.exact(hard[name]) for name in over})
            )
            requested, in_use, limited = shown
            why = f"exceeded quota: {item.name}, requested: {requested}, used: {in_use}, limited: {limited}"
            raise forbidden(call.kind, call.name, why)


def admit_change(core: Core, kinds: Kinds, call: Call, new: Json, old: Json) -> None:
    """Refuse a change that exceeds a quota, for kinds whose use can grow."""
    if (call.kind.resource.quota.grows and not call.subresource) or call.subresource == "resize":
        admit(core, kinds, call, new, old)


def usage(kind: Kind, document: Json) -> Usage:
    """How much of a quota an object uses."""
    used_by_object: Usage = {f"count/{kind.qualified}": Fraction(1)}
    if kind.resource.quota.counted:
        used_by_object[kind.plural] = Fraction(1)
    return used_by_object | kind.resource.quota.usage(document)


def _covers(quota: Json, kind: Kind, document: Json) -> bool:
    """Whether all scopes of a quota cover an object."""
    scopes = [Scope(name) for name in quota.get("scopes") or ()]
    for entry in (quota.get("scopeSelector") or {}).get("matchExpressions") or ():
        scopes.append(Scope(entry["scopeName"], entry["operator"], tuple(entry.get("values") or ())))
    return all(kind.resource.quota.covers(scope, document) for scope in scopes)


def quotas_of(core: Core, namespace: str) -> Iterator[tuple[Item, Json]]:
    """The quotas of a namespace that limit something, with their specs."""
    for item in core.store.table(TABLE).range(namespace):
        quota = load(item).get("spec") or {}
        if quota.get("hard"):
            yield item, quota


def used(core: Core, kinds: Kinds, namespace: str, quota: Json) -> Usage:
    """How much of a quota the objects of a namespace use."""
    total: Usage = dict.fromkeys(quota["hard"], Fraction())
    for table, rows in tuple(core.store.tables.items()):
        kind = kinds.of_table(table)
        if kind is None or not kind.namespaced:
            continue
        for item in rows.range(namespace):
            document = load(item)
            if not _covers(quota, kind, document):
                continue
            for name, amount in usage(kind, document).items():
                if name in total:
                    total[name] += amount
    return total

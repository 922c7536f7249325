"""Resource quotas: refuse an object that a quota of its namespace has no room for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.admission.quota_usage import CLAIMS, PODS, SERVICES, Usage, holds_for, usage
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.resources.served_kinds import Kinds
from spinney.embedded.apiserver.store.store import Item, load

TABLE = "/resourcequotas"
# What containers have to say where a quota limits it.
_SAID = ("cpu", "memory")


def admit(core: Core, kinds: Kinds, call: Call, document: Json, old: Json | None = None) -> None:
    """Refuse an object, or what a change adds to it, that a quota of its namespace has no room for."""
    if not call.kind.namespaced or not core.store.table(TABLE).items:
        return
    kind = call.kind
    for item, quota in quotas_of(core, call.namespace):
        hard = quota["hard"]
        if not holds_for(quota, kind, document):
            continue
        if kind.table == PODS and old is None:
            _must_specify(call, item, hard, document["spec"])
        before = usage(kind, old) if old is not None and holds_for(quota, kind, old) else {}
        asked = {name: amount - before.get(name, 0) for name, amount in usage(kind, document).items() if name in hard}
        wanted = {name: amount for name, amount in asked.items() if amount > 0}
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
    """Refuse a change that asks for more than a quota has left, of kinds that may grow."""
    if (call.kind.table in (CLAIMS, SERVICES) and not call.subresource) or call.subresource == "resize":
        admit(core, kinds, call, new, old)


def _must_specify(call: Call, item: Item, hard: Json, spec: Json) -> None:
    """Where a quota limits what pods ask for, every container has to say it."""
    missing: list[str] = []
    for name in sorted(hard):
        kind, _, resource = name.rpartition(".") if name not in _SAID else ("requests", "", name)
        if kind not in ("requests", "limits") or resource not in _SAID:
            continue
        silent = [
            container["name"]
            for container in (*spec["containers"], *(spec.get("initContainers") or ()))
            if resource not in ((container.get("resources") or {}).get(kind) or {})
        ]
        if silent:
            missing.append(f"{name} for: {','.join(sorted(silent))}")
    if missing:
        raise forbidden(call.kind, call.name, f"failed quota: {item.name}: must specify {'; '.join(missing)}")


def quotas_of(core: Core, namespace: str) -> Iterator[tuple[Item, Json]]:
    """The quotas of a namespace that limit something, with their specs."""
    for item in core.store.table(TABLE).range(namespace):
        quota = load(item).get("spec") or {}
        if quota.get("hard"):
            yield item, quota


def used(core: Core, kinds: Kinds, namespace: str, quota: Json) -> Usage:
    """How much the objects of a namespace take of a quota."""
    total: Usage = dict.fromkeys(quota["hard"], Fraction())
    for table, rows in tuple(core.store.tables.items()):
        kind = kinds.of_table(table)
        if kind is None or not kind.namespaced:
            continue
        for item in rows.range(namespace):
            document = load(item)
            if not holds_for(quota, kind, document):
                continue
            for name, amount in usage(kind, document).items():
                if name in total:
                    total[name] += amount
    return total


def written(name: str, amount: Fraction) -> str:
    """An amount as Kubernetes writes it in a quota's status."""
    if amount.denominator != 1:
        return quantity.canonical(f"{-(-amount * 1000 // 1)}m")
    for unit in ("Gi", "Mi", "Ki") if name.endswith(("memory", "storage")) else ():
        if amount and amount % quantity.exact(f"1{unit}") == 0:
            return f"{amount // quantity.exact(f'1{unit}')}{unit}"
    return quantity.canonical(str(amount.numerator))

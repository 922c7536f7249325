"""Resource quotas: how much a namespace may hold, checked when objects are made and counted in the quota's status."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.admission.quota_usage import CLAIMS, PODS, SERVICES, Usage, holds_for, usage
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.resources import selectable_fields
from spinney.embedded.apiserver.store.conversion import load
from spinney.embedded.apiserver.store.store import Event, Item

if TYPE_CHECKING:
    from spinney.embedded.apiserver.calls import Call
    from spinney.embedded.apiserver.server import ApiServer

TABLE = "/resourcequotas"
# What containers have to say where a quota limits it.
_SAID = ("cpu", "memory")


def admit(server: ApiServer, call: Call, document: Json, old: Json | None = None) -> None:
    """Refuse an object, or what a change adds to it, that a quota of its namespace has no room for."""
    if not call.kind.namespaced or not server.store.table(TABLE).items:
        return
    kind = call.kind
    for item, quota in _quotas(server, call.namespace):
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
        used = _used(server, call.namespace, quota)
        over = sorted(name for name in wanted if used[name] + wanted[name] > quantity.exact(hard[name]))
        if over:
            shown = (
                ",".join(f"{name}={_written(name, source[name])}" for name in over)
                for source in (wanted, used, {name: quantity.exact(hard[name]) for name in over})
            )
            requested, taken, limited = shown
            why = f"exceeded quota: {item.name}, requested: {requested}, used: {taken}, limited: {limited}"
            raise forbidden(call.kind, call.name, why)


def admit_change(server: ApiServer, call: Call, new: Json, old: Json) -> None:
    """Refuse a change that asks for more than a quota has left, of kinds that may grow."""
    if (call.kind.table in (CLAIMS, SERVICES) and not call.subresource) or call.subresource == "resize":
        admit(server, call, new, old)


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


def _quotas(server: ApiServer, namespace: str) -> Iterator[tuple[Item, Json]]:
    for item in server.store.table(TABLE).range(namespace):
        quota = load(item).get("spec") or {}
        if quota.get("hard"):
            yield item, quota


def _used(server: ApiServer, namespace: str, quota: Json) -> Usage:
    total: Usage = dict.fromkeys(quota["hard"], Fraction())
    for table, rows in tuple(server.store.tables.items()):
        kind = server.kind_of_table(table)
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


def _written(name: str, amount: Fraction) -> str:
    if amount.denominator != 1:
        return quantity.canonical(f"{-(-amount * 1000 // 1)}m")
    for unit in ("Gi", "Mi", "Ki") if name.endswith(("memory", "storage")) else ():
        if amount and amount % quantity.exact(f"1{unit}") == 0:
            return f"{amount // quantity.exact(f'1{unit}')}{unit}"
    return quantity.canonical(str(amount.numerator))


class QuotaKeeper:
    """Counts what the namespaces with quotas hold, after every change in them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._changed: set[str] = set()

    def follow(self, event: Event) -> None:
        """Note a write."""
        namespace = event.new.namespace
        quotas = self._server.store.table(TABLE)
        if not quotas.items or not namespace or next(iter(quotas.range(namespace)), None) is None:
            return
        if event.version != self._server.store.version:
            # What comes back from a journal was counted before.
            return
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._count)
        self._changed.add(namespace)

    def _count(self) -> None:
        changed, self._changed = self._changed, set()
        for namespace in sorted(changed):
            for item, quota in tuple(_quotas(self._server, namespace)):
                used = _used(self._server, namespace, quota)
                told = {name: _written(name, amount) for name, amount in used.items()}
                self._write(item, {"hard": quota["hard"], "used": told})

    def _write(self, item: Item, status: Json) -> None:
        kind = self._server.kind_of_table(TABLE)
        document = load(item)
        if kind is not None and document.get("status") != status:
            document["status"] = status
            self._server.store.put(TABLE, item.key, document, selectable_fields.values(kind, document))

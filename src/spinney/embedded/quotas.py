"""Resource quotas: how much a namespace may hold, checked when objects are made and counted in the quota's status.

Quotas with scopes hold for some pods only; they are kept, but neither enforced nor counted here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded import fields
from spinney.embedded.conversion import load
from spinney.embedded.errors import forbidden
from spinney.embedded.kinds import Kind
from spinney.embedded.store import Event, Item

if TYPE_CHECKING:
    from spinney.embedded.calls import Call
    from spinney.embedded.server import ApiServer

TABLE = "/resourcequotas"
Usage = dict[str, Fraction]
_COUNTED = frozenset(
    (
        *("/configmaps", "/persistentvolumeclaims", "/pods", "/replicationcontrollers"),
        *("/resourcequotas", "/secrets", "/services"),
    )
)
# Names that count what pods ask for, without `requests.` in front.
_SHORT = ("cpu", "memory", "ephemeral-storage")


def usage(kind: Kind, document: Json) -> Usage:
    """What an object takes of a quota."""
    if kind.table == "/pods" and (document.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    found: Usage = {f"count/{kind.qualified}": Fraction(1)}
    if kind.table in _COUNTED:
        found[kind.plural] = Fraction(1)
    spec = document.get("spec") or {}
    if kind.table == "/pods":
        found |= _pod(spec)
    elif kind.table == "/persistentvolumeclaims":
        amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
        found["requests.storage"] = quantity.exact(amount)
    return found


def _pod(spec: Json) -> Usage:
    found: Usage = {}
    for kind in ("requests", "limits"):
        for container in spec.get("containers") or ():
            for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
                key = f"{kind}.{name}"
                found[key] = found.get(key, Fraction()) + quantity.exact(amount)
        for container in spec.get("initContainers") or ():
            for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
                key = f"{kind}.{name}"
                found[key] = max(found.get(key, Fraction()), quantity.exact(amount))
    return found | {name: found[f"requests.{name}"] for name in _SHORT if f"requests.{name}" in found}


def admit(server: ApiServer, call: Call, document: Json) -> None:
    """Refuse a new object that a quota of its namespace has no room for."""
    if not call.kind.namespaced or not server.store.table(TABLE).items:
        return
    asked = usage(call.kind, document)
    for item, hard in _quotas(server, call.namespace):
        if call.kind.table == "/pods":
            _must_specify(call, item, hard, document["spec"])
        wanted = {name: amount for name, amount in asked.items() if name in hard}
        if not wanted:
            continue
        used = _used(server, call.namespace, hard)
        over = sorted(name for name in wanted if used[name] + wanted[name] > quantity.exact(hard[name]))
        if over:
            shown = (
                ",".join(f"{name}={_written(name, source[name])}" for name in over)
                for source in (wanted, used, {name: quantity.exact(hard[name]) for name in over})
            )
            requested, taken, limited = shown
            why = f"exceeded quota: {item.name}, requested: {requested}, used: {taken}, limited: {limited}"
            raise forbidden(call.kind, call.name, why)


def _must_specify(call: Call, item: Item, hard: Json, spec: Json) -> None:
    """Where a quota limits what pods ask for, every container has to say it."""
    missing: list[str] = []
    for name in sorted(hard):
        kind, _, resource = name.rpartition(".") if name not in _SHORT else ("requests", "", name)
        if kind not in ("requests", "limits") or resource not in _SHORT:
            continue
        silent = [
            container["name"]
            for container in spec["containers"]
            if resource not in ((container.get("resources") or {}).get(kind) or {})
        ]
        if silent:
            missing.append(f"{name} for: {','.join(silent)}")
    if missing:
        raise forbidden(call.kind, call.name, f"failed quota: {item.name}: must specify {'; '.join(missing)}")


def _quotas(server: ApiServer, namespace: str) -> Iterator[tuple[Item, Json]]:
    for item in server.store.table(TABLE).range(namespace):
        spec = load(item).get("spec") or {}
        if spec.get("hard") and not spec.get("scopes") and not spec.get("scopeSelector"):
            yield item, spec["hard"]


def _used(server: ApiServer, namespace: str, hard: Json) -> Usage:
    total: Usage = dict.fromkeys(hard, Fraction())
    for table, rows in tuple(server.store.tables.items()):
        kind = server.kind_of_table(table)
        if kind is None or not kind.namespaced:
            continue
        for item in rows.range(namespace):
            for name, amount in usage(kind, load(item)).items():
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
            for item, hard in tuple(_quotas(self._server, namespace)):
                used = {name: _written(name, amount) for name, amount in _used(self._server, namespace, hard).items()}
                self._write(item, {"hard": hard, "used": used})

    def _write(self, item: Item, status: Json) -> None:
        kind = self._server.kind_of_table(TABLE)
        document = load(item)
        if kind is not None and document.get("status") != status:
            document["status"] = status
            self._server.store.put(TABLE, item.key, document, fields.values(kind, document))

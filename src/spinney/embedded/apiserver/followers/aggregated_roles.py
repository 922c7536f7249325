"""Cluster roles that gather the rules of others by label."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from spinney.api.meta import Json
from spinney.embedded.apiserver.access.rbac import CLUSTER_ROLES
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.store.conversion import load

if TYPE_CHECKING:
    from spinney.embedded.apiserver.server import ApiServer


class RoleAggregator:
    """After a write to a cluster role, brings those that gather rules up to date."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._scheduled = False

    def follow(self) -> None:
        """Note that a cluster role has changed."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._gather)

    def _gather(self) -> None:
        self._scheduled = False
        table = self._server.store.table(CLUSTER_ROLES)
        for item in list(table.range("")):
            if b'"aggregationRule"' not in item.body:
                continue
            role = load(item)
            rules = self._rules(item.name, role)
            if rules != (role.get("rules") or []):
                self._server.store.put(CLUSTER_ROLES, item.key, {**role, "rules": rules}, item.fields)

    def _rules(self, name: str, role: Json) -> list[Json]:
        found: list[Json] = []
        for wanted in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            selector = selectors.from_object(wanted)
            for item in self._server.store.table(CLUSTER_ROLES).range(""):
                if item.name != name and selectors.matches(selector, item.labels):
                    found += [rule for rule in load(item).get("rules") or () if rule not in found]
        return found

"""Cluster roles that aggregate the rules of others by label."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.access.bindings import CLUSTER_ROLES
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.followers.follower import NextTurn
from spinney.embedded.apiserver.read import selectors
from spinney.embedded.apiserver.store.store import Event, load


class RoleAggregator:
    """After a write to a cluster role, brings the aggregating ones up to date."""

    tables: frozenset[str] | None = frozenset((CLUSTER_ROLES,))

    def __init__(self, core: Core) -> None:
        self._store = core.store
        self._next_turn = NextTurn(self._aggregate)

    def follow(self, table: str, event: Event) -> None:
        """Note that a cluster role has changed."""
        self._next_turn.schedule()

    def _aggregate(self) -> None:
        for item in list(self._store.table(CLUSTER_ROLES).range("")):
            role = load(item)
            if role.get("aggregationRule") is None:
                continue
            rules = self._rules(item.name, role["aggregationRule"])
            if rules != (role.get("rules") or []):
                self._store.put(CLUSTER_ROLES, item.key, {**role, "rules": rules}, item.fields)

    def _rules(self, name: str, aggregation: Json) -> list[Json]:
        rules: list[Json] = []
        for label_selector in aggregation.get("clusterRoleSelectors") or ():
            selector = selectors.from_object(label_selector)
            for item in self._store.table(CLUSTER_ROLES).range(""):
                if item.name != name and selectors.matches(selector, item.labels):
                    rules += [rule for rule in load(item).get("rules") or () if rule not in rules]
        return rules

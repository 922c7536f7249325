"""Aggregated cluster roles: `view`, `edit` and `admin` get the rules of every role that their selectors choose."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from spinney.api import selector
from spinney.api.meta import Json, Key
from spinney.api.rbac import ClusterRole, PolicyRule
from spinney.kube.caches.cache import Change
from spinney.kube.controllers.controller import Controller
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Runtime


class AggregatedRoles:
    """Writes the rules of roles with an aggregation rule."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._roles = runtime.caches.of(ClusterRole)
        self.controller = Controller("clusterrole-aggregation", runtime, self._reconcile)
        self.controller.watch(self._roles, self._that_aggregate)

    def _that_aggregate(self, _: Change[ClusterRole]) -> list[Key]:
        return [role.key for role in self._roles if role.aggregation_rule is not None]

    async def _reconcile(self, key: Key) -> None:
        role = self._roles.get(key)
        if role is None or role.aggregation_rule is None:
            return
        wanted = tuple(dict.fromkeys(self._rules(role)))
        # In any order: those that a fresh cluster begins with are right.
        if set(wanted) == set(role.rules):
            return
        try:
            await self._client.patch(ClusterRole, key, {"rules": [_document(rule) for rule in wanted]})
        except NotFound:
            return

    def _rules(self, role: ClusterRole) -> Iterator[PolicyRule]:
        assert role.aggregation_rule is not None
        for wanted in role.aggregation_rule.cluster_role_selectors:
            for each in sorted(self._roles, key=lambda each: each.name):
                if each.name != role.name and selector.matches(wanted, each.metadata.labels):
                    yield from each.rules


def _document(rule: PolicyRule) -> Json:
    return {name: values for name, values in msgspec.to_builtins(rule).items() if values}

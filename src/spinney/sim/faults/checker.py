"""Checks the rules while a cluster runs: after every write, at every eviction, and at rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from spinney.api.pod import Pod
from spinney.api.resource import ResourceClaim
from spinney.embedded.apiserver.store.store import Event, Store
from spinney.sim.faults.invariants import ALWAYS, AT_CLAIMS, AT_EVICTIONS
from spinney.sim.faults.invariants_at_rest import AT_REST
from spinney.sim.faults.network import Network
from spinney.sim.faults.observed import Observed

T = TypeVar("T")


class Checker:
    """Follows a store, and collects violations by rule."""

    def __init__(self, store: Store, network: Network) -> None:
        self.seen = Observed()
        self.violations: dict[str, str] = {}
        self.evictions = 0
        # How many writes were looked at, and how often each rule was checked.
        self.steps = 0
        self.checks: Counter[str] = Counter()
        self._network = network
        self.seen.follow(store)
        store.listeners.append(self._written)
        network.evicting = self._evicting

    def count_anew(self) -> None:
        """Count steps and checks from zero: those so far belong to another run."""
        self.steps = 0
        self.checks.clear()

    def at_rest(self) -> None:
        """Check the rules that hold at rest."""
        for rule in AT_REST:
            self.checks[rule.__name__] += 1
            for violation in rule(self.seen):
                self._report(rule.__name__, violation)

    def _written(self, table: str, event: Event) -> None:
        self.steps += 1
        changed = self.seen.apply(table, event)
        if isinstance(changed, Pod) and changed.spec.node_name:
            self._check(ALWAYS, changed)
        elif isinstance(changed, ResourceClaim):
            self._check(AT_CLAIMS, changed)

    def _evicting(self, namespace: str, name: str) -> None:
        pod = self.seen.get(Pod, (namespace, name))
        if pod is not None:
            self.evictions += 1
            self._check(AT_EVICTIONS, pod)

    def _check(self, rules: tuple[Callable[[Observed, T], Iterator[str]], ...], changed: T) -> None:
        for rule in rules:
            self.checks[rule.__name__] += 1
            for violation in rule(self.seen, changed):
                self._report(rule.__name__, violation)

    def _report(self, rule: str, violation: str) -> None:
        if rule not in self.violations:
            self.violations[rule] = violation
            self._network.tell("VIOLATION", f"{rule}: {violation}")

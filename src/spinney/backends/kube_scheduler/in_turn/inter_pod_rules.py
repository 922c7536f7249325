"""Rules that pods make about each other: host ports, required affinity and anti-affinity, even spreading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from spinney.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from spinney.api.core import Node
from spinney.api.pod import Pod
from spinney.api.selector import matches

_ANY_ADDRESS = ("", "0.0.0.0", "::")


class Place(Protocol):
    """A node with the pods on it."""

    @property
    def node(self) -> Node: ...
    @property
    def pods(self) -> Sequence[Pod]: ...


class Neighbours:
    """Where one pod may stand beside the others; looks at all of them once, and then answers node by node."""

    def __init__(
        self, pod: Pod, places: Sequence[Place], eligible: Sequence[Place], repellers: Iterable[tuple[Place, Pod]]
    ) -> None:
        self._ports = _ports(pod)
        # Domains, by node label key: those that the pod must keep out of, and those it must be in.
        self._shunned = {*_taken(pod, places), *repelled(pod, repellers)}
        self._keys = {key for key, _ in self._shunned}
        self._wanted = [*_company(pod, places), *_even(pod, eligible)]

    def allow(self, place: Place) -> bool:
        """Whether the pod may join a node."""
        labels = place.node.metadata.labels
        if any((key, labels.get(key, "")) in self._shunned for key in self._keys if key in labels):
            return False
        if not all(labels.get(key) in domains for key, domains in self._wanted):
            return False
        return not (self._ports and any(_clash(self._ports, _ports(other)) for other in place.pods))


def _taken(pod: Pod, places: Iterable[Place]) -> Iterator[tuple[str, str]]:
    """The domains that hold a pod which this one must keep away from."""
    terms = away_terms(pod)
    for place in places if terms else ():
        for term in terms:
            if any(_shuns(term, pod, other) for other in place.pods):
                yield from _domain(term.topology_key, place)


def repelled(pod: Pod, repellers: Iterable[tuple[Place, Pod]]) -> Iterator[tuple[str, str]]:
    """The domains that hold a pod which must keep away from this one."""
    for place, other in repellers:
        for term in away_terms(other):
            if _shuns(term, other, pod):
                yield from _domain(term.topology_key, place)


def _company(pod: Pod, places: Sequence[Place]) -> Iterator[tuple[str, set[str]]]:
    """For each affinity term the domains it holds in; the first pod of a crowd may begin anywhere."""
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    if not terms:
        return
    met = [place for place in places if any(all(_seeks(t, pod, other) for t in terms) for other in place.pods)]
    begins = not met and all(_seeks(term, pod, pod) for term in terms)
    for term in terms:
        pairs = [pair for place in (places if begins else met) for pair in _domain(term.topology_key, place)]
        yield term.topology_key, {domain for _, domain in pairs}


def _even(pod: Pod, eligible: Sequence[Place]) -> Iterator[tuple[str, set[str]]]:
    """For each hard spreading rule the domains that one more pod would not overload."""
    for rule in pod.spec.topology_spread_constraints:
        if rule.when_unsatisfiable == "ScheduleAnyway":
            continue
        counts: Counter[str] = Counter()
        for place in eligible:
            for _, domain in _domain(rule.topology_key, place):
                counts[domain] += sum(_counts(rule, pod, other) for other in place.pods)
        least = min(counts.values(), default=0) if len(counts) >= (rule.min_domains or 1) else 0
        own = int(_counts(rule, pod, pod))
        yield rule.topology_key, {domain for domain, count in counts.items() if count + own - least <= rule.max_skew}


def _counts(rule: TopologySpreadConstraint, pod: Pod, other: Pod) -> bool:
    own, found = pod.metadata.labels, other.metadata.labels
    return (
        other.namespace == pod.namespace
        and matches(rule.label_selector, found)
        and all(found.get(key) == own[key] for key in rule.match_label_keys if key in own)
    )


def is_independent(pod: Pod) -> bool:
    """Whether a pod may stand anywhere for all that others do: no host port, no rule about others, no claim."""
    rules = pod.spec.affinity
    return not (
        _ports(pod)
        or pod.spec.topology_spread_constraints
        or pod.spec.resource_claims
        or (rules is not None and (rules.pod_affinity or rules.pod_anti_affinity))
        or any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes)
    )


def away_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """What a pod must keep away from."""
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def _shuns(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Namespaces chosen by their labels may be any: to be kept apart too often is only slower."""
    near = term.namespace_selector is not None or other.namespace in _spaces(term, owner)
    return near and matches(term.label_selector, other.metadata.labels)


def _seeks(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Namespaces chosen by their labels count only where all are meant."""
    everywhere = term.namespace_selector is not None and matches(term.namespace_selector, {})
    return (everywhere or other.namespace in _spaces(term, owner)) and matches(
        term.label_selector, other.metadata.labels
    )


def _spaces(term: PodAffinityTerm, owner: Pod) -> tuple[str, ...]:
    return term.namespaces or (owner.namespace,)


def _domain(key: str, place: Place) -> Iterator[tuple[str, str]]:
    """The domain of a node for a label key, where it has one."""
    labels: Mapping[str, str] = place.node.metadata.labels
    if key in labels:
        yield key, labels[key]


def _ports(pod: Pod) -> set[tuple[str, str, int]]:
    return {
        (port.host_ip, port.protocol, port.host_port)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for port in container.ports
        if port.host_port
    }


def _clash(ours: Iterable[tuple[str, str, int]], theirs: Iterable[tuple[str, str, int]]) -> bool:
    return any(
        mine[1:] == other[1:] and (mine[0] == other[0] or mine[0] in _ANY_ADDRESS or other[0] in _ANY_ADDRESS)
        for mine in ours
        for other in theirs
    )

"""Rules between pods: host ports, required pod affinity and anti-affinity, topology spread constraints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from spinney.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from spinney.api.pod import Pod
from spinney.api.selector import matches
from spinney.backends.kube_scheduler.in_turn.node_info import NodeInfo

_ANY_ADDRESS = ("", "0.0.0.0", "::")


class InterPodRules:
    """The nodes that a pod may join, given the pods that are there; computed once, then asked node by node."""

    def __init__(
        self,
        pod: Pod,
        infos: Sequence[NodeInfo],
        eligible: Sequence[NodeInfo],
        repellers: Iterable[tuple[NodeInfo, Pod]],
    ) -> None:
        self._ports = _ports(pod)
        # Topology domains, by node label key: those that the pod must avoid, and those it must be in.
        self._forbidden = {*_avoided_domains(pod, infos), *repelling_domains(pod, repellers)}
        self._keys = {key for key, _ in self._forbidden}
        self._required = [*_affinity_domains(pod, infos), *_spread_domains(pod, eligible)]

    def allow(self, info: NodeInfo) -> bool:
        """Whether the pod may run on a node."""
        labels = info.node.metadata.labels
        if any((key, labels.get(key, "")) in self._forbidden for key in self._keys if key in labels):
            return False
        if not all(labels.get(key) in domains for key, domains in self._required):
            return False
        return not (self._ports and any(_conflict(self._ports, _ports(other)) for other in info.pods))


def _avoided_domains(pod: Pod, infos: Iterable[NodeInfo]) -> Iterator[tuple[str, str]]:
    """The domains with a pod that this one must avoid."""
    terms = anti_affinity_terms(pod)
    for info in infos if terms else ():
        for term in terms:
            if any(_repels(term, pod, other) for other in info.pods):
                yield from _domain(term.topology_key, info)


def repelling_domains(pod: Pod, repellers: Iterable[tuple[NodeInfo, Pod]]) -> Iterator[tuple[str, str]]:
    """The domains with a pod that must avoid this one."""
    for info, other in repellers:
        for term in anti_affinity_terms(other):
            if _repels(term, other, pod):
                yield from _domain(term.topology_key, info)


def _affinity_domains(pod: Pod, infos: Sequence[NodeInfo]) -> Iterator[tuple[str, set[str]]]:
    """For each affinity term the domains that satisfy it; the first pod of a self-affine group may go anywhere."""
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    if not terms:
        return
    matching = [info for info in infos if any(all(_attracts(t, pod, other) for t in terms) for other in info.pods)]
    is_first = not matching and all(_attracts(term, pod, pod) for term in terms)
    for term in terms:
        pairs = [pair for info in (infos if is_first else matching) for pair in _domain(term.topology_key, info)]
        yield term.topology_key, {domain for _, domain in pairs}


def _spread_domains(pod: Pod, eligible: Sequence[NodeInfo]) -> Iterator[tuple[str, set[str]]]:
    """For each hard spread constraint the domains where one more pod keeps the skew allowed."""
    for rule in pod.spec.topology_spread_constraints:
        if rule.when_unsatisfiable == "ScheduleAnyway":
            continue
        counts: Counter[str] = Counter()
        for info in eligible:
            for _, domain in _domain(rule.topology_key, info):
                counts[domain] += sum(_counts(rule, pod, other) for other in info.pods)
        least = min(counts.values(), default=0) if len(counts) >= (rule.min_domains or 1) else 0
        own = int(_counts(rule, pod, pod))
        yield rule.topology_key, {domain for domain, count in counts.items() if count + own - least <= rule.max_skew}


def _counts(rule: TopologySpreadConstraint, pod: Pod, other: Pod) -> bool:
    labels, other_labels = pod.metadata.labels, other.metadata.labels
    return (
        other.namespace == pod.namespace
        and matches(rule.label_selector, other_labels)
        and all(other_labels.get(key) == labels[key] for key in rule.match_label_keys if key in labels)
    )


def is_independent(pod: Pod) -> bool:
    """Whether other pods do not matter to a pod: it has no host port, no rule about others, no claim."""
    rules = pod.spec.affinity
    return not (
        _ports(pod)
        or pod.spec.topology_spread_constraints
        or pod.spec.resource_claims
        or (rules is not None and (rules.pod_affinity or rules.pod_anti_affinity))
        or any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes)
    )


def anti_affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """A pod's required anti-affinity terms."""
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


def _repels(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Whether an anti-affinity term covers a pod. A namespace selector counts as any namespace: that is only slower."""
    in_namespace = term.namespace_selector is not None or other.namespace in _namespaces(term, owner)
    return in_namespace and matches(term.label_selector, other.metadata.labels)


def _attracts(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    """Whether an affinity term covers a pod. A namespace selector counts only if it is empty, for all namespaces."""
    everywhere = term.namespace_selector is not None and matches(term.namespace_selector, {})
    return (everywhere or other.namespace in _namespaces(term, owner)) and matches(
        term.label_selector, other.metadata.labels
    )


def _namespaces(term: PodAffinityTerm, owner: Pod) -> tuple[str, ...]:
    return term.namespaces or (owner.namespace,)


def _domain(key: str, info: NodeInfo) -> Iterator[tuple[str, str]]:
    """The domain of a node for a label key, if it has the label."""
    labels: Mapping[str, str] = info.node.metadata.labels
    if key in labels:
        yield key, labels[key]


def _ports(pod: Pod) -> set[tuple[str, str, int]]:
    return {
        (port.host_ip, port.protocol, port.host_port)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for port in container.ports
        if port.host_port
    }


def _conflict(ports: Iterable[tuple[str, str, int]], others: Iterable[tuple[str, str, int]]) -> bool:
    return any(
        port[1:] == other[1:] and (port[0] == other[0] or port[0] in _ANY_ADDRESS or other[0] in _ANY_ADDRESS)
        for port in ports
        for other in others
    )

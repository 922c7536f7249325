"""Convert a pod's scheduling rules into constraints: selectors, affinity, tolerations, spreading and host ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spinney.api.affinity import (
    Affinity,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from spinney.api.core import Pod
from spinney.api.selector import LabelSelector, Requirement
from spinney.scheduler.state.specs import EVERY_ADDRESS, Constraints, Match, PodTerm, SpreadTerm

Namespaces = Callable[[LabelSelector], Iterable[str]]


def no_namespaces(_: LabelSelector) -> Iterable[str]:
    """Select no namespaces, where the caller does not watch them."""
    return ()


def constraints_of(pod: Pod, select: Namespaces = no_namespaces) -> Constraints:
    """The constraints of a pod, apart from resources and volumes."""
    spec = pod.spec
    affinity = spec.affinity or Affinity()
    selector = affinity.node_affinity and affinity.node_affinity.required_during_scheduling_ignored_during_execution
    preferences = (
        affinity.node_affinity.preferred_during_scheduling_ignored_during_execution if affinity.node_affinity else ()
    )
    near, apart = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
    return Constraints(
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=tuple(_node_term(term) for term in selector.node_selector_terms) if selector else None,
        tolerations=tuple(
            Toleration(
                key=toleration.key,
                operator=toleration.operator or "Equal",
                value=toleration.value,
                effect=toleration.effect,
            )
            for toleration in spec.tolerations
        ),
        host_ports=tuple(
            (port.host_ip or EVERY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in spec.containers
            for port in container.ports
            if port.host_port
        ),
        affinity=tuple(
            _pod_term(term, pod, select) for term in near.required_during_scheduling_ignored_during_execution
        ),
        anti_affinity=tuple(
            _pod_term(term, pod, select) for term in apart.required_during_scheduling_ignored_during_execution
        ),
        preferred=tuple(
            (sign * term.weight, _pod_term(term.pod_affinity_term, pod, select))
            for sign, rules in ((1, near), (-1, apart))
            for term in rules.preferred_during_scheduling_ignored_during_execution
        ),
        preferred_nodes=tuple((preference.weight, _node_term(preference.preference)) for preference in preferences),
        spread=tuple(_spread_term(constraint, pod) for constraint in spec.topology_spread_constraints),
    )


def _spread_term(constraint: TopologySpreadConstraint, pod: Pod) -> SpreadTerm:
    return SpreadTerm(
        constraint.topology_key,
        constraint.max_skew,
        (*_matches(constraint.label_selector), *_like_own(constraint.match_label_keys, pod, "In")),
        constraint.min_domains or 1,
        hard=constraint.when_unsatisfiable == "DoNotSchedule",
        selected_only=constraint.node_affinity_policy != "Ignore",
        tolerated_only=constraint.node_taints_policy == "Honor",
    )


def _like_own(keys: Iterable[str], pod: Pod, operator: str) -> tuple[Match, ...]:
    """Requirements from the pod's own labels (matchLabelKeys), which older API servers do not merge."""
    own = pod.metadata.labels
    return tuple(Match(key, operator, (own[key],)) for key in keys if key in own)


def _node_term(term: NodeSelectorTerm) -> tuple[Match, ...]:
    return tuple(_match(requirement) for requirement in (*term.match_expressions, *term.match_fields))


def _match(requirement: Requirement) -> Match:
    return Match(requirement.key, requirement.operator, requirement.values)


def _pod_term(term: PodAffinityTerm, pod: Pod, select: Namespaces) -> PodTerm:
    namespaces = term.namespaces
    if term.namespace_selector is not None:
        namespaces = (*namespaces, *select(term.namespace_selector))
    elif not namespaces:
        namespaces = (pod.namespace,)
    # A selector that chooses no namespace is about no pod.
    matches = (
        *_matches(term.label_selector),
        *_like_own(term.match_label_keys, pod, "In"),
        *_like_own(term.mismatch_label_keys, pod, "NotIn"),
    )
    return PodTerm(term.topology_key, matches, namespaces or ("",))


def picks_namespaces(pod: Pod) -> bool:
    """Whether a pod's affinity selects namespaces by labels, which may change."""
    affinity = pod.spec.affinity or Affinity()
    rules = [rule for rule in (affinity.pod_affinity, affinity.pod_anti_affinity) if rule is not None]
    terms = [term for rule in rules for term in rule.required_during_scheduling_ignored_during_execution]
    terms += [
        term.pod_affinity_term for rule in rules for term in rule.preferred_during_scheduling_ignored_during_execution
    ]
    return any(term.namespace_selector is not None for term in terms)


def _matches(selector: LabelSelector | None) -> tuple[Match, ...]:
    if selector is None:
        return (Match("", "Never"),)
    exact = tuple(Match(key, "In", (value,)) for key, value in sorted(selector.match_labels.items()))
    return exact + tuple(_match(requirement) for requirement in selector.match_expressions)

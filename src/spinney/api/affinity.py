"""Placement rules of pods: affinity, tolerations and topology spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, ClassVar

from spinney.api.meta import Struct
from spinney.api.schema import ATOMIC, REQUIRED
from spinney.api.selector import LabelSelector, Requirement, satisfies


class NodeSelectorTerm(Struct, frozen=True):
    """Requirements on one node, all of which must hold."""

    atomic: ClassVar[bool] = True

    match_expressions: Annotated[tuple[Requirement, ...], ATOMIC] = ()
    match_fields: Annotated[tuple[Requirement, ...], ATOMIC] = ()


class NodeSelector(Struct, frozen=True):
    """Alternatives, one of which must hold."""

    atomic: ClassVar[bool] = True

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], ATOMIC, REQUIRED] = ()


class PreferredNode(Struct, frozen=True):
    """A term that adds to a node's score."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True):
    """Rules about the node itself."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNode, ...] = ()


class PodAffinityTerm(Struct, frozen=True):
    """Pods to be placed with, or apart from, in the domains of one node label."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPods(Struct, frozen=True):
    """A pod affinity term that adds to a node's score."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Rules about the pods that already run in a domain; also the shape of anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredPods, ...] = ()


class Affinity(Struct, frozen=True):
    """All affinity rules of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Taint(Struct, frozen=True):
    """Keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Toleration(Struct, frozen=True):
    """Lets a pod onto a node that has a taint."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers a taint: an empty effect covers all, an empty key with Exists covers all."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.operator in ("Lt", "Gt"):
            return self._compares(taint)
        return bool(self.key) and self.value == taint.value

    def _compares(self, taint: Taint) -> bool:
        try:
            actual, wanted = int(taint.value), int(self.value)
        except ValueError:
            return False
        return actual < wanted if self.operator == "Lt" else actual > wanted


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations covers a taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


class TopologySpreadConstraint(Struct, frozen=True):
    """How unevenly matching pods may be spread over the domains of one node label."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    match_label_keys: tuple[str, ...] = ()


def selects_node(selector: NodeSelector | None, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node is selected: by any term, whose every requirement holds; no selector selects every node."""
    if selector is None:
        return True
    return any(_term_selects(term, name, labels) for term in selector.node_selector_terms)


def _term_selects(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(satisfies(requirement, labels) for requirement in term.match_expressions) and all(
        satisfies(requirement, {"metadata.name": name}) for requirement in term.match_fields
    )

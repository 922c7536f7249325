"""What a set or a gang requires of its scheduler, feature by feature, and what of it a scheduler cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.backends.capabilities import Capabilities, Feature, Loss

_GANG = (Feature.GANG_REQUIRED, Feature.GANG_PREFERRED)
_CONFIG = (Feature.CONFIG_REQUIRED, Feature.CONFIG_PREFERRED)
_GROUP = (Feature.GROUP_REQUIRED, Feature.GROUP_PREFERRED)
_TOPOLOGY = frozenset((*_GANG, *_CONFIG, *_GROUP))


class Constraint(Protocol):
    """A topology constraint of a set (domain names) or of a gang (node label keys)."""

    @property
    def required(self) -> str: ...
    @property
    def preferred(self) -> str: ...


def packed(constraint: Constraint | None) -> tuple[str, str]:
    """The required and the preferred domain or key of a constraint; empty if there is none."""
    return (constraint.required, constraint.preferred) if constraint else ("", "")


def packed_whole(gang: PodGang) -> tuple[str, str]:
    """The keys that hold for all pods of a gang; the constraint of an only role holds for its gang.

    A role's key is never broader than its gang's, so the role's says it all.
    """
    required, preferred = packed(gang.spec.topology_constraint)
    if len(gang.spec.podgroups) != 1:
        return required, preferred
    own_required, own_preferred = packed(gang.spec.podgroups[0].topology_constraint)
    return own_required or required, own_preferred or preferred


def topology_requirements(gang: PodGang) -> Iterator[Loss]:
    """What a PodGang requires or prefers of the topology, at every level."""
    return (requirement for requirement in _gang_requirements(gang) if requirement.feature in _TOPOLOGY)


def gang_losses(gang: PodGang, capabilities: Capabilities) -> tuple[Loss, ...]:
    """What a PodGang requires and a scheduler with these capabilities cannot express."""
    return tuple(loss for loss in _gang_requirements(gang) if not capabilities.has(loss.feature))


def _gang_requirements(gang: PodGang) -> Iterator[Loss]:
    spec = gang.spec
    groups = spec.podgroups
    if len(groups) > 1:
        yield Loss(Feature.TOGETHER, "spec.podgroups", f"{len(groups)} roles")
    yield from _topology("spec.topologyConstraint.packConstraint", spec.topology_constraint, _GANG)
    for index, config in enumerate(spec.topology_constraint_group_configs):
        path = f"spec.topologyConstraintGroupConfigs[{index}].topologyConstraint.packConstraint"
        yield from _topology(path, config.topology_constraint, _CONFIG)
    for index, group in enumerate(groups):
        path = f"spec.podgroups[{index}]"
        level = _GANG if len(groups) == 1 else _GROUP
        yield from _topology(f"{path}.topologyConstraint.packConstraint", group.topology_constraint, level)
        if group.min_replicas == 0:
            yield Loss(Feature.ZERO_MINIMUM, f"{path}.minReplicas", "0")


def set_losses(pcs: PodCliqueSet, capabilities: Capabilities) -> tuple[Loss, ...]:
    """What gangs of a PodCliqueSet will require and a scheduler cannot express; topology by the user's domain names."""
    return tuple(loss for loss in _set_requirements(pcs) if not capabilities.has(loss.feature))


def _set_requirements(pcs: PodCliqueSet) -> Iterator[Loss]:
    template = pcs.spec.template
    groups = template.pod_clique_scaling_groups
    alone = len(template.cliques) == 1 and all(group.min_available == 1 for group in groups)
    if not alone:
        yield Loss(Feature.TOGETHER, "spec.template.cliques", f"{len(template.cliques)} roles")
    yield from _topology("spec.template.topologyConstraint.pack", template.topology_constraint, _GANG)
    for index, group in enumerate(groups):
        where = f"spec.template.podCliqueScalingGroups[{index}].topologyConstraint.pack"
        yield from _topology(where, group.topology_constraint, _CONFIG)
    for index, clique in enumerate(template.cliques):
        where = f"spec.template.cliques[{index}].topologyConstraint.pack"
        yield from _topology(where, clique.topology_constraint, _GANG if alone else _GROUP)


def _topology(path: str, constraint: Constraint | None, features: tuple[Feature, Feature]) -> Iterator[Loss]:
    for strength, value, feature in zip(("required", "preferred"), packed(constraint), features, strict=True):
        if value:
            yield Loss(feature, f"{path}.{strength}", value)

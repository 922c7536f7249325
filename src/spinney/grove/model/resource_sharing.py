"""Shared ResourceClaims: which a set, a scaling group and a clique own, and which a pod uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from spinney.api import labels
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.grove.model import names
from spinney.grove.model.layout import Clique, Group, Layout
from spinney.grove.model.metadata import managed
from spinney.grove.model.view import View

ALL = "AllReplicas"

Owner = PodCliqueSet | PodCliqueScalingGroup | PodClique


class Share(Protocol):
    """What the sharing entries of all three levels have in common."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def scope(self) -> str: ...


@dataclass(frozen=True)
class Claim:
    """A ResourceClaim that should exist, and the template it is made from."""

    name: str
    template: str
    template_namespace: str
    # "set", "group" or "clique", and the owner's name.
    level: str
    owner: str
    shared_by_all: bool


def wanted_claims(view: View) -> Iterator[Claim]:
    """Every claim this replica needs; claims shared by all replicas of the set belong to the first."""
    for claim in _set_claims(view.layout):
        if view.layout.index == 0 or not claim.shared_by_all:
            yield claim
    for group in view.layout.groups:
        yield from _group_claims(group)
    for clique in view.layout.cliques:
        yield from _clique_claims(clique, view.wanted(clique))


def claim_body(pcs: PodCliqueSet, index: int, claim: Claim, owner: Owner, template: Json) -> Json:
    """A claim from its template, owned by the level that shares it."""
    metadata = template.get("metadata") or {}
    place = {} if claim.shared_by_all and claim.level == "set" else {labels.SET_REPLICA_INDEX: str(index)}
    return {
        "metadata": {
            "name": claim.name,
            "namespace": pcs.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                **managed(pcs.name, claim.name, labels.RESOURCE_CLAIM),
                **place,
            },
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": template.get("spec") or {},
    }


def _set_claims(layout: Layout) -> Iterator[Claim]:
    """Claims of the set: one for all replicas, or one for this replica."""
    pcs = layout.pcs
    for share in pcs.spec.template.resource_sharing:
        yield _claim(share, "set", pcs.name, layout.index)


def _group_claims(group: Group) -> Iterator[Claim]:
    """Claims of a scaling group, for each of its replicas where they are not shared by all."""
    for share in group.config.resource_sharing:
        replicas = [0] if share.scope == ALL else range(group.replicas)
        for replica in replicas:
            yield _claim(share, "group", group.name, replica)


def _clique_claims(clique: Clique, replicas: int) -> Iterator[Claim]:
    """Claims of a clique, for each of its pods where they are not shared by all."""
    for share in clique.template.resource_sharing:
        for replica in [0] if share.scope == ALL else range(replicas):
            yield _claim(share, "clique", clique.name, replica)


def pod_claims(layout: Layout, clique: Clique, pod_index: int) -> list[str]:
    """The names of the claims that one pod uses, set level first."""
    used: list[str] = []
    for share in layout.pcs.spec.template.resource_sharing:
        chosen = share.filter
        if chosen is None or (
            clique.template.name in chosen.child_clique_names or clique.group_name in chosen.child_scaling_group_names
        ):
            used.append(_claim(share, "set", layout.pcs.name, layout.index).name)
    group = next((group for group in layout.groups if group.name == clique.group), None)
    for shared in group.config.resource_sharing if group else ():
        if shared.filter is None or clique.template.name in shared.filter.child_clique_names:
            used.append(_claim(shared, "group", clique.group, clique.group_index).name)
    for own in clique.template.resource_sharing:
        used.append(_claim(own, "clique", clique.name, pod_index).name)
    return used


def with_claims(pod_spec: Json, claims: list[Json], uses: Callable[[Json], bool] = lambda container: True) -> Json:
    """The pod spec with further resourceClaims, and with their names in the containers that use them."""
    changed = {**pod_spec, "resourceClaims": [*(pod_spec.get("resourceClaims") or ()), *claims]}
    names_only = [{"name": claim["name"]} for claim in claims]
    for kind in ("containers", "initContainers"):
        if pod_spec.get(kind):
            changed[kind] = [_using(item, names_only) if uses(item) else item for item in pod_spec[kind]]
    return changed


def _using(container: Json, claims: list[Json]) -> Json:
    resources = container.get("resources") or {}
    return {**container, "resources": {**resources, "claims": [*(resources.get("claims") or ()), *claims]}}


def _claim(share: Share, level: str, owner: str, replica: int) -> Claim:
    name = (
        names.claim_for_all(owner, share.name)
        if share.scope == ALL
        else names.claim_for_one(owner, replica, share.name)
    )
    return Claim(name, share.name, share.namespace, level, owner, share.scope == ALL)

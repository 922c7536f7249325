"""Multi-node NVLink: groups of cliques that share a ComputeDomain, and the claim that joins a pod to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spinney.api import labels
from spinney.api.labels import GPU_RESOURCE, MNNVL_CLAIM, MNNVL_GROUP
from spinney.api.meta import Json
from spinney.api.nvidia import ComputeDomain
from spinney.grove.model import names
from spinney.grove.model.layout import Clique, Layout
from spinney.grove.model.metadata import replica_metadata
from spinney.grove.model.resource_sharing import with_claims
from spinney.kube.desired import Drift, Wanted

NO_GROUP = "none"


def group_of(layout: Layout, clique: Clique) -> str:
    """The group a clique joins: its own annotation, else its scaling group's, else the set's; empty for none."""
    if not uses_gpus(clique.template.spec.pod_spec):
        return ""
    config = next((group.config for group in layout.groups if group.name == clique.group), None)
    owners: tuple[Mapping[str, str], ...] = (
        clique.template.annotations,
        config.annotations if config else {},
        layout.pcs.metadata.annotations,
    )
    named = next((owner[MNNVL_GROUP] for owner in owners if MNNVL_GROUP in owner), "")
    return "" if named == NO_GROUP else named


def groups(layout: Layout) -> list[str]:
    """Every group that a clique of this set replica joins, in order."""
    return list(dict.fromkeys(group for clique in layout.cliques if (group := group_of(layout, clique))))


def wanted_domains(layout: Layout) -> Iterator[Wanted]:
    """The ComputeDomains of a replica, one per NVLink group that a GPU clique joins; they cannot change."""
    for group in groups(layout):
        name = names.compute_domain(layout.pcs.name, layout.index, group)
        metadata = replica_metadata(layout, name, labels.COMPUTE_DOMAIN)
        metadata["labels"][MNNVL_GROUP] = group
        body = {
            "metadata": {**metadata, "finalizers": [labels.COMPUTE_DOMAIN_FINALIZER]},
            "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
        }
        yield Wanted(ComputeDomain.resource, body, Drift.IGNORE)


def uses_gpus(pod_spec: Json) -> bool:
    """Whether any container requests GPUs."""
    return any(
        _requests_gpus(container) for kind in ("containers", "initContainers") for container in pod_spec.get(kind) or ()
    )


def joined(pod_spec: Json, layout: Layout, clique: Clique) -> Json:
    """The pod spec with the claim of its group, in the containers that request GPUs."""
    group = group_of(layout, clique)
    if not group:
        return pod_spec
    template = names.compute_domain(layout.pcs.name, layout.index, group)
    return with_claims(pod_spec, [{"name": MNNVL_CLAIM, "resourceClaimTemplateName": template}], _requests_gpus)


def _requests_gpus(container: Json) -> bool:
    resources = container.get("resources") or {}
    return any(GPU_RESOURCE in (resources.get(kind) or {}) for kind in ("limits", "requests"))

"""What a set replica shares: ResourceClaims at every level, and the ComputeDomains of its NVLink groups."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import labels
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.nvidia import ComputeDomain
from spinney.api.owners import controller_reference
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate
from spinney.grove.model import mnnvl, names, resource_sharing
from spinney.grove.model.metadata import managed
from spinney.grove.model.resource_sharing import Claim
from spinney.grove.model.view import View
from spinney.grove.world import World
from spinney.grove.writer import Writer
from spinney.kube.caches.cache import Key
from spinney.kube.client.client import Client
from spinney.kube.parallel import Work, all_of

Owner = PodCliqueSet | PodCliqueScalingGroup | PodClique


class Devices:
    """Keeps a replica's claims and domains."""

    def __init__(self, world: World, writer: Writer, client: Client) -> None:
        self._world = world
        self._writer = writer
        self._client = client

    async def make_domains(self, view: View, key: Key) -> None:
        """One ComputeDomain per NVLink group in use; those of groups no longer in use go."""
        if self._world.domains is None:
            return
        found = {domain.name: domain for domain in self._world.of(self._world.domains, key)}
        wanted = {domain["metadata"]["name"]: domain for domain in compute_domains(view)}
        work: list[Work] = [
            self._writer.create(ComputeDomain, body) for name, body in wanted.items() if name not in found
        ]
        leaving = [domain for domain in found.values() if domain.metadata.deletion_timestamp is not None]
        # Someone deletes a domain that is in use: it goes only when the set does, or is made anew.
        work += [self._writer.release(domain, labels.COMPUTE_DOMAIN_FINALIZER) for domain in leaving]
        excess = [domain for name, domain in found.items() if name not in wanted]
        work += [self._writer.delete(domain, finalizer=labels.COMPUTE_DOMAIN_FINALIZER) for domain in excess]
        await all_of(work)

    async def make_claims(self, view: View, key: Key) -> None:
        """The claims of this replica's set, scaling groups and cliques; those of removed replicas go."""
        wanted = {claim.name: claim for claim in wanted_claims(view)}
        found = {claim.name: claim for claim in self._world.of(self._world.claims, key)}
        missing = [claim for name, claim in wanted.items() if name not in found and not self._exists(view, name)]
        excess = [claim for name, claim in found.items() if name not in wanted]
        await all_of(self._writer.delete(claim) for claim in excess)
        if not missing:
            return
        templates = await self._templates(view.pcs, missing)
        owners: dict[str, Owner] = {view.pcs.name: view.pcs, **view.groups, **view.cliques}
        await all_of(
            self._writer.create(ResourceClaim, claim_body(view, claim, owners[claim.owner], templates[claim.name]))
            for claim in missing
            if claim.owner in owners
        )

    async def release(self, key: Key) -> None:
        """Let domains go whose set is gone."""
        if self._world.domains is not None:
            domains = self._world.of(self._world.domains, key)
            await all_of(self._writer.release(domain, labels.COMPUTE_DOMAIN_FINALIZER) for domain in domains)

    async def remove(self, key: Key) -> None:
        """Take away everything of a replica that is gone."""
        work: list[Work] = [self._writer.delete(claim) for claim in self._world.of(self._world.claims, key)]
        if self._world.domains is not None:
            domains = self._world.of(self._world.domains, key)
            work += [self._writer.delete(domain, finalizer=labels.COMPUTE_DOMAIN_FINALIZER) for domain in domains]
        await all_of(work)

    def _exists(self, view: View, name: str) -> bool:
        return self._world.claims.get(name, view.pcs.namespace) is not None

    async def _templates(self, pcs: PodCliqueSet, claims: list[Claim]) -> dict[str, Json]:
        """What each claim is made from, read whole: our types leave out what they do not know."""
        raw = await self._client.get(PodCliqueSet.resource, pcs.name, pcs.namespace)
        internal = {
            template["name"]: template.get("templateSpec") or {}
            for template in raw["spec"]["template"].get("resourceClaimTemplates") or ()
        }
        found: dict[str, Json] = {}
        for claim in claims:
            if claim.template in internal and not claim.template_namespace:
                found[claim.name] = internal[claim.template]
                continue
            namespace = claim.template_namespace or pcs.namespace
            external = await self._client.get(ResourceClaimTemplate.resource, claim.template, namespace)
            found[claim.name] = external["spec"]
        return found


def wanted_claims(view: View) -> Iterator[Claim]:
    """Every claim this replica needs; those shared by all replicas of the set are made with the first."""
    for claim in resource_sharing.set_claims(view.layout):
        if view.layout.index == 0 or not claim.shared_by_all:
            yield claim
    for group in view.layout.groups:
        yield from resource_sharing.group_claims(group)
    for clique in view.layout.cliques:
        yield from resource_sharing.clique_claims(clique, view.wanted(clique))


def claim_body(view: View, claim: Claim, owner: Owner, template: Json) -> Json:
    """A claim from its template, owned by the level that shares it."""
    metadata = template.get("metadata") or {}
    place = {} if claim.shared_by_all and claim.level == "set" else {labels.SET_REPLICA_INDEX: str(view.layout.index)}
    return {
        "metadata": {
            "name": claim.name,
            "namespace": view.pcs.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                **managed(view.pcs.name, claim.name, labels.RESOURCE_CLAIM),
                **place,
            },
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": template.get("spec") or {},
    }


def compute_domains(view: View) -> Iterator[Json]:
    """The ComputeDomains of a replica, one per NVLink group that a GPU clique joins."""
    pcs, index = view.pcs, view.layout.index
    for group in mnnvl.groups(view.layout):
        name = names.compute_domain(pcs.name, index, group)
        yield {
            "metadata": {
                "name": name,
                "namespace": pcs.namespace,
                "labels": {
                    **managed(pcs.name, name, labels.COMPUTE_DOMAIN),
                    labels.SET_REPLICA_INDEX: str(index),
                    labels.MNNVL_GROUP: group,
                },
                "ownerReferences": [controller_reference(pcs)],
                "finalizers": [labels.COMPUTE_DOMAIN_FINALIZER],
            },
            "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}},
        }

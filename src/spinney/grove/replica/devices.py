"""What a set replica shares: ResourceClaims at every level, and the ComputeDomains of its NVLink groups."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Key
from spinney.api.nvidia import ComputeDomain
from spinney.api.resource import ResourceClaim, ResourceClaimTemplate
from spinney.grove.model import mnnvl
from spinney.grove.model.resource_sharing import Claim, Owner, claim_body, wanted_claims
from spinney.grove.model.view import View
from spinney.grove.world import World
from spinney.grove.writer import Writer
from spinney.kube.client.client import Client
from spinney.kube.parallel import Work, all_of


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
        wanted = {domain["metadata"]["name"]: domain for domain in mnnvl.compute_domains(view.layout)}
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
        return self._world.claims.get((view.pcs.namespace, name)) is not None

    async def _templates(self, pcs: PodCliqueSet, claims: list[Claim]) -> dict[str, Json]:
        """What each claim is made from, read whole: our types leave out what they do not know."""
        raw = await self._client.get(PodCliqueSet.resource, pcs.key)
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
            external = await self._client.get(ResourceClaimTemplate.resource, (namespace, claim.template))
            found[claim.name] = external["spec"]
        return found

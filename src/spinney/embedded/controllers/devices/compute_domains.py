"""Compute domains: in place of NVIDIA's driver, creates a claim template for each domain."""

from __future__ import annotations

from spinney.api.meta import Json, Key
from spinney.api.nvidia import ComputeDomain
from spinney.api.owners import controller_reference
from spinney.api.resource import ResourceClaimTemplate
from spinney.embedded.controllers.devices.resource_slices import DOMAIN_DRIVER
from spinney.embedded.controllers.writes import create_once, patch_status
from spinney.kube.controllers.controller import Controller, owner_key
from spinney.kube.runtime import Runtime

CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"


def plan_template(domain: ComputeDomain) -> Json:
    """The template that pods of a domain claim their channel from."""
    channel = domain.spec.channel
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainChannelConfig",
        "domainID": domain.uid,
        "allocationMode": channel.allocation_mode,
    }
    config = {"requests": ["channel"], "opaque": {"driver": DOMAIN_DRIVER, "parameters": parameters}}
    request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
    return {
        "metadata": {
            "name": channel.resource_claim_template.name,
            "namespace": domain.namespace,
            "labels": {"resource.nvidia.com/computeDomain": domain.uid},
            "ownerReferences": [controller_reference(domain)],
        },
        "spec": {"spec": {"devices": {"requests": [request], "config": [config]}}},
    }


class ComputeDomains:
    """Creates the claim template of every compute domain and marks the domain Ready."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._domains = runtime.caches.of(ComputeDomain)
        self._templates = runtime.caches.of(ResourceClaimTemplate)
        self.controller = Controller("compute-domains", runtime, self._reconcile)
        self.controller.watch(self._domains).watch(self._templates, owner_key("ComputeDomain"))

    async def _reconcile(self, key: Key) -> None:
        domain = self._domains.get(key)
        if domain is None or domain.metadata.deletion_timestamp is not None:
            return
        wanted = plan_template(domain)
        if self._templates.get((domain.namespace, wanted["metadata"]["name"])) is None:
            await create_once(self._client, ResourceClaimTemplate, wanted, domain.namespace)
        if domain.status.status != "Ready":
            await patch_status(self._client, domain, {"status": "Ready"})

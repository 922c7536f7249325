"""The device claims of a pod, and the GPUs that they request and hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.api.core import Pod
from spinney.api.meta import Key
from spinney.api.resource import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from spinney.kube.caches.cache import Cache
from spinney.services.pods.usage import Amounts, add, is_gpu


def claim_name(pod: Pod, reference: str) -> str | None:
    """The name of the claim behind a pod's reference: given, or created from a template."""
    for entry in pod.spec.resource_claims:
        if entry.name == reference and entry.resource_claim_name:
            return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == reference and status.resource_claim_name:
            return status.resource_claim_name
    return None


def requested_gpus(spec: ResourceClaimSpec) -> Amounts:
    """The GPUs that a claim requests, by device class; of alternatives the first counts."""
    requested: Amounts = {}
    for request in spec.devices.requests:
        wanted = request.exactly or next(iter(request.first_available), None)
        if wanted is not None and is_gpu(wanted.device_class_name):
            count = 1 if wanted.allocation_mode == "All" else wanted.count or 1
            add(requested, {wanted.device_class_name: 1000 * count})
    return requested


def claimed_gpus(claims: Iterable[ResourceClaim]) -> tuple[Amounts, Amounts]:
    """The GPUs that device claims request and hold; each claim counts once."""
    requested: Amounts = {}
    allocated: Amounts = {}
    for claim in {each.key: each for each in claims}.values():
        amounts = requested_gpus(claim.spec)
        add(requested, amounts)
        if claim.status.allocation is not None:
            add(allocated, amounts)
    return requested, allocated


@dataclass(frozen=True)
class Claims:
    """Caches of claims and templates; None where the cluster does not serve them."""

    claims: Cache[ResourceClaim] | None = None
    templates: Cache[ResourceClaimTemplate] | None = None

    def of(self, pod: Pod) -> dict[Key, Amounts]:
        """The requested GPUs of each of a pod's claims; a claim that does not exist yet counts by its template."""
        amounts: dict[Key, Amounts] = {}
        for entry in pod.spec.resource_claims:
            name = claim_name(pod, entry.name)
            if name is not None and self.claims is not None:
                claim = self.claims.get((pod.namespace, name))
                amounts[pod.namespace, name] = requested_gpus(claim.spec) if claim is not None else {}
            elif self.templates is not None:
                template = self.templates.get((pod.namespace, entry.resource_claim_template_name))
                own = (pod.namespace, f"{pod.name}/{entry.name}")
                amounts[own] = requested_gpus(template.spec.spec) if template is not None else {}
        return amounts

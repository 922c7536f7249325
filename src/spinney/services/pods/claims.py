"""Which device claims a pod means, and which GPUs those ask for and hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.api.core import Pod
from spinney.api.meta import Key
from spinney.api.resource import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from spinney.kube.caches.cache import Cache
from spinney.services.pods.usage import Amounts, add, is_gpu


def claim_name(pod: Pod, reference: str) -> str | None:
    """The claim behind one of the pod's references: named outright, or made from a template."""
    for entry in pod.spec.resource_claims:
        if entry.name == reference and entry.resource_claim_name:
            return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == reference and status.resource_claim_name:
            return status.resource_claim_name
    return None


def gpus_asked_by(spec: ResourceClaimSpec) -> Amounts:
    """The GPUs that a claim asks for, by device class; of alternatives the first is taken for what it will get."""
    requested: Amounts = {}
    for request in spec.devices.requests:
        wanted = request.exactly or next(iter(request.first_available), None)
        if wanted is not None and is_gpu(wanted.device_class_name):
            count = 1 if wanted.allocation_mode == "All" else wanted.count or 1
            add(requested, {wanted.device_class_name: 1000 * count})
    return requested


def claimed(claims: Iterable[ResourceClaim]) -> tuple[Amounts, Amounts]:
    """The GPUs that device claims ask for and those that they hold; each claim counts once."""
    requested: Amounts = {}
    allocated: Amounts = {}
    for claim in {(each.namespace, each.name): each for each in claims}.values():
        amounts = gpus_asked_by(claim.spec)
        add(requested, amounts)
        if claim.status.allocation is not None:
            add(allocated, amounts)
    return requested, allocated


@dataclass(frozen=True)
class Claims:
    """The claims of a cluster, and the templates of those that are still to be made; none where it knows no claims."""

    claims: Cache[ResourceClaim] | None = None
    templates: Cache[ResourceClaimTemplate] | None = None

    def of(self, pod: Pod) -> dict[Key, Amounts]:
        """The GPUs that each of a pod's claims asks for; a claim that is still to be made is the pod's own."""
        amounts: dict[Key, Amounts] = {}
        for entry in pod.spec.resource_claims:
            name = claim_name(pod, entry.name)
            if name is not None and self.claims is not None:
                claim = self.claims.get((pod.namespace, name))
                amounts[pod.namespace, name] = gpus_asked_by(claim.spec) if claim is not None else {}
            elif self.templates is not None:
                template = self.templates.get((pod.namespace, entry.resource_claim_template_name))
                own = (pod.namespace, f"{pod.name}/{entry.name}")
                amounts[own] = gpus_asked_by(template.spec.spec) if template is not None else {}
        return amounts

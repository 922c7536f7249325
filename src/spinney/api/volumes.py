"""Which claims a pod has, and whether a volume could serve a claim."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.quantity import milli


def claim_names(pod: Pod) -> Iterator[str]:
    """The claims of a pod's volumes; an ephemeral volume's claim is named after pod and volume."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.name}-{volume.name}"


def serves(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a free volume could serve a claim."""
    wanted = claim.spec.resources.requests.get("storage", "0")
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == "Available"
        and volume.spec.storage_class_name == (claim.spec.storage_class_name or "")
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and milli(volume.spec.capacity.get("storage", "0")) >= milli(wanted)
    )

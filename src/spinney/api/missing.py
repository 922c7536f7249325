"""What a pod needs and does not have, so that no node can take it: data, with kube-scheduler's sentence for each."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Lack(StrEnum):
    """A kind of missing thing; the value is the sentence, {0} the name."""

    CONFIG_MAP = 'configmap "{0}" not found'
    VOLUME = 'persistentvolume "{0}" not found'
    VOLUME_CLAIM = 'persistentvolumeclaim "{0}" not found'
    VOLUME_CLAIM_DELETED = 'persistentvolumeclaim "{0}" is being deleted'
    VOLUME_CLAIM_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
    RESOURCE_CLAIM = 'resourceclaim "{0}" not found'
    RESOURCE_CLAIM_FROM_TEMPLATE = 'waiting for the resource claim of "{0}" to be created'
    DEVICE_CLASS = 'device class "{0}" not found'
    # The name is what is wrong, and where.
    DEVICE_SELECTOR = "{0}"


class Missing(NamedTuple):
    """One missing thing and its name."""

    lack: Lack
    name: str = ""

    def __str__(self) -> str:
        return self.lack.format(self.name)

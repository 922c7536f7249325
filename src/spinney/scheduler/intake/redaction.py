"""What of an object goes into a snapshot: what plans and answers depend on, and nothing that may be confidential.

A snapshot is sent to others. Pods carry passwords in environment values and arguments, and annotations carry whatever a
tool keeps in them, such as the last applied configuration.
"""

from __future__ import annotations

from typing import Any

from spinney.api import labels
from spinney.api.meta import Json

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_OF_CONTAINER = ("name", "resources", "ports", "restartPolicy")
_OF_STATUS = ("name", "ready", "started", "restartCount", "resources", "allocatedResources")
_OF_STATE = ("reason", "exitCode", "signal", "startedAt", "finishedAt")
# Which claim a volume is made of decides about nodes; what else it mounts does not.
_OF_VOLUME = ("name", "persistentVolumeClaim", "ephemeral")
_LEFT_OUT_OF_POD = ("hostAliases", "imagePullSecrets", "dnsConfig", "securityContext")
# kubectl's copy of a manifest holds everything that is left out here.
_KNOWN = {value for value in vars(labels).values() if isinstance(value, str)} - {labels.LAST_APPLIED_CONFIGURATION}
_OURS = ("kai.scheduler", "run.ai", "grove.io", "spinney.dev", "nvidia.com", "scheduling.k8s.io")


def redacted(document: Json) -> Json:
    """An object of any kind without what no plan depends on."""
    metadata = dict(document.get("metadata") or {})
    metadata.pop("managedFields", None)
    annotations = {key: value for key, value in (metadata.pop("annotations", None) or {}).items() if _is_kept(key)}
    if annotations:
        metadata["annotations"] = annotations
    return {**document, "metadata": metadata}


def redacted_pod(document: Json) -> Json:
    """A pod without environment, commands, arguments, images, mounts, probes and messages of its containers."""
    pod = redacted(document)
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key not in _LEFT_OUT_OF_POD}
    for key in _CONTAINERS:
        if spec.get(key):
            spec[key] = [_only(container, _OF_CONTAINER) for container in spec[key]]
    if spec.get("volumes"):
        spec["volumes"] = [_only(volume, _OF_VOLUME) for volume in spec["volumes"]]
    status = dict(pod.get("status") or {})
    for key in _STATUSES:
        if status.get(key):
            status[key] = [_container_status(container) for container in status[key]]
    return {**pod, "spec": spec, "status": status}


def redacted_volume(document: Json) -> Json:
    """A PersistentVolume without what its driver mounts it with; who provides it, and where, stays."""
    volume = redacted(document)
    spec = {
        key: value for key, value in (volume.get("spec") or {}).items() if key not in ("flexVolume", "mountOptions")
    }
    if spec.get("csi"):
        spec["csi"] = _only(spec["csi"], ("driver", "volumeHandle"))
    return {**volume, "spec": spec}


def redacted_storage_class(document: Json) -> Json:
    """A StorageClass without the parameters and options that are for its driver."""
    kept = {key: value for key, value in document.items() if key not in ("parameters", "mountOptions")}
    return redacted(kept)


def redacted_claim(document: Json) -> Json:
    """A ResourceClaim without the configuration that is for its drivers, and what they report."""
    claim = redacted(document)
    for part in ("spec", "status"):
        if claim.get(part):
            claim[part] = _without_configuration(claim[part])
    status = claim.get("status") or {}
    if status.get("allocation"):
        claim["status"] = {**status, "allocation": _without_configuration(status["allocation"])}
    return claim


def redacted_device_class(document: Json) -> Json:
    """A DeviceClass without the configuration that is for its drivers."""
    public = redacted(document)
    spec = {key: value for key, value in (public.get("spec") or {}).items() if key != "config"}
    return {**public, "spec": spec}


def _without_configuration(part: Json) -> Json:
    devices = part.get("devices")
    if isinstance(devices, dict):
        return {**part, "devices": {key: value for key, value in devices.items() if key != "config"}}
    # In the status, a list of what drivers report.
    return {key: value for key, value in part.items() if key != "devices"}


def _container_status(status: Json) -> Json:
    """The status of a container; a message may hold the end of its log."""
    states = {name: _only(state, _OF_STATE) for name, state in (status.get("state") or {}).items()}
    return {**_only(status, _OF_STATUS), **({"state": states} if states else {})}


def _is_kept(key: str) -> bool:
    domain = key.partition("/")[0]
    return key in _KNOWN or any(domain == name or domain.endswith(f".{name}") for name in _OURS)


def _only(document: Any, keys: tuple[str, ...]) -> Json:
    return {key: document[key] for key in keys if key in document}

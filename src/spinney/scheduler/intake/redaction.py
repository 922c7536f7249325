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
_KNOWN = frozenset(value for value in vars(labels).values() if isinstance(value, str))
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


def _container_status(status: Json) -> Json:
    """The status of a container; a message may hold the end of its log."""
    states = {name: _only(state, _OF_STATE) for name, state in (status.get("state") or {}).items()}
    return {**_only(status, _OF_STATUS), **({"state": states} if states else {})}


def _is_kept(key: str) -> bool:
    return key in _KNOWN or any(name in key.partition("/")[0] for name in _OURS)


def _only(document: Any, keys: tuple[str, ...]) -> Json:
    return {key: document[key] for key in keys if key in document}

"""Manifests of reservation pods, which hold a GPU that other pods share."""

from __future__ import annotations

import hashlib

import msgspec

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.image import default_image
from spinney.api.meta import Json, Struct
from spinney.api.quantity import ResourceList

# Config's field replaces all of it. Images of others may need root or write to their file system.
_SECURITY: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


class ReservationSettings(Struct, frozen=True):
    """How reservation pods are created."""

    namespace: str = labels.RESERVATION_NAMESPACE
    service_account: str = labels.RESERVATION_NAMESPACE
    app: str = labels.RESERVATION_NAMESPACE
    image: str = msgspec.field(default_factory=default_image)
    runtime_class: str = ""
    resources: ResourceList = {}
    pod_security_context: Json = {}
    container_security_context: Json = {}
    allocation_timeout_seconds: float = 40.0


def reservation_name(node: str, group: str) -> str:
    """The name by node and group; of two concurrent creations one fails."""
    return f"gpu-reservation-{hashlib.sha256(f'{node}/{group}'.encode()).hexdigest()[:16]}"


def reservation_pod(node: Node, group: str, workload: Pod, settings: ReservationSettings) -> Json:
    """The pod that holds one GPU of a node for a group; it is created with its node, without a scheduler."""
    limits = {labels.GPU_RESOURCE: "1", **settings.resources}
    spec: Json = {
        "nodeName": node.name,
        "serviceAccountName": settings.service_account,
        "tolerations": [msgspec.to_builtins(toleration) for toleration in workload.spec.tolerations],
        "containers": [
            {
                "name": "resource-reservation",
                "image": settings.image,
                # Each acts for its own pod only.
                "args": ["run", "reservation", "--no-leader-election"],
                "env": [
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                ],
                "resources": {"limits": limits, "requests": limits},
                "securityContext": settings.container_security_context or _SECURITY,
            }
        ],
    }
    if node.metadata.labels.get(labels.NODE_FAKE_GPU) == "true":
        # There is no driver: the fake GPU operator annotates the pod with its GPU.
        del spec["containers"][0]["args"]
        spec["containers"][0]["command"] = ["sleep", "infinity"]
    if settings.runtime_class:
        spec["runtimeClassName"] = settings.runtime_class
    if settings.pod_security_context:
        spec["securityContext"] = settings.pod_security_context
    return {
        "metadata": {
            "name": reservation_name(node.name, group),
            "namespace": settings.namespace,
            "labels": {labels.APP: settings.app, labels.GPU_GROUP: group},
            "annotations": {labels.KARPENTER_DO_NOT_DISRUPT: "true"},
        },
        "spec": spec,
    }


def groups_of(pod: Pod) -> frozenset[str]:
    """The groups of shared GPUs in a pod's labels."""
    groups = {value for key, value in pod.metadata.labels.items() if key.startswith(labels.GPU_GROUP_PREFIX)}
    if single := pod.metadata.labels.get(labels.GPU_GROUP):
        groups.add(single)
    return frozenset(groups)

"""Reservation pods hold a GPU that others share: who they are, and the process inside them."""

from __future__ import annotations

import hashlib

import msgspec

from spinney.api import labels
from spinney.api.core import Node, Pod
from spinney.api.meta import Json, Struct
from spinney.api.quantity import ResourceList


class ReservationSettings(Struct, frozen=True):
    """How reservation pods are made."""

    namespace: str = labels.RESERVATION_NAMESPACE
    service_account: str = labels.RESERVATION_NAMESPACE
    app: str = labels.RESERVATION_NAMESPACE
    image: str = "spinney"
    runtime_class: str = ""
    resources: ResourceList = {}
    pod_security_context: Json = {}
    container_security_context: Json = {}
    allocation_timeout_seconds: float = 40.0


def reservation_name(node: str, group: str) -> str:
    """One name per node and group: two who make it at the same moment collide, and one of them wins."""
    return f"gpu-reservation-{hashlib.sha256(f'{node}/{group}'.encode()).hexdigest()[:16]}"


def reservation_pod(node: Node, group: str, workload: Pod, settings: ReservationSettings) -> Json:
    """The pod that holds one GPU of a node for a group; it goes straight to the node, past all schedulers."""
    limits = {labels.GPU_RESOURCE: "1", **settings.resources}
    spec: Json = {
        "nodeName": node.name,
        "serviceAccountName": settings.service_account,
        "tolerations": [msgspec.to_builtins(toleration) for toleration in workload.spec.tolerations],
        "containers": [
            {
                "name": "resource-reservation",
                "image": settings.image,
                # Each speaks for itself: there is nobody to elect.
                "args": ["run", "reservation", "--no-leader-election"],
                "env": [
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                ],
                "resources": {"limits": limits, "requests": limits},
            }
        ],
    }
    if node.metadata.labels.get(labels.NODE_FAKE_GPU) == "true":
        # There is no driver to ask: the fake GPU operator tells which of its GPUs the pod holds.
        del spec["containers"][0]["args"]
        spec["containers"][0]["command"] = ["sleep", "infinity"]
    if settings.runtime_class:
        spec["runtimeClassName"] = settings.runtime_class
    if settings.pod_security_context:
        spec["securityContext"] = settings.pod_security_context
    if settings.container_security_context:
        spec["containers"][0]["securityContext"] = settings.container_security_context
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
    """The shared devices that a pod's labels name, one or several."""
    groups = {value for key, value in pod.metadata.labels.items() if key.startswith(labels.GPU_GROUP_PREFIX)}
    if single := pod.metadata.labels.get(labels.GPU_GROUP):
        groups.add(single)
    return frozenset(groups)

"""The DaemonSet that offers fake GPUs on the nodes of a cluster."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Json

_NAME = "spinney-fake-gpus"
_SOCKETS = "/var/lib/kubelet/device-plugins"


def daemon_set(namespace: str, image: str, count: int, resource: str = labels.GPU_RESOURCE) -> Json:
    """One pod a node, without any right; it needs only the kubelet's folder of sockets, which is root's."""
    container: Json = {
        "name": "fake-gpus",
        "image": image,
        "args": ["fake-gpus", "serve", f"--count={count}", f"--resource={resource}"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsUser": 0,
            "runAsGroup": 0,
        },
        "volumeMounts": [{"name": "sockets", "mountPath": _SOCKETS}],
    }
    selector = {"app.kubernetes.io/name": _NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": _NAME, "namespace": namespace, "labels": selector},
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    "automountServiceAccountToken": False,
                    "priorityClassName": "system-node-critical",
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [container],
                    "volumes": [{"name": "sockets", "hostPath": {"path": _SOCKETS}}],
                },
            },
        },
    }

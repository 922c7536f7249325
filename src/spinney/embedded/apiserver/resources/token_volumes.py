"""The volume by which a pod's containers get their account's token, the cluster's certificate and the namespace."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core

_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
# Where it comes from: the same for all pods.
TOKEN: Json = {
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ],
    "defaultMode": 420,
}


def volume_name(core: Core) -> str:
    """What the volume of a pod's token is called."""
    return f"kube-api-access-{core.chance.suffix()}"


def with_token(core: Core, spec: Json) -> Json:
    """The spec with the account's token, the cluster's certificate and the namespace mounted where nothing is yet."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    if spec.get("automountServiceAccountToken") is False or all(map(_has_token, containers)):
        return spec
    name = volume_name(core)
    mount = {"name": name, "readOnly": True, "mountPath": _PATH}
    made = {**spec, "volumes": [*(spec.get("volumes") or ()), {"name": name, "projected": TOKEN}]}
    for key in ("containers", "initContainers"):
        if spec.get(key):
            made[key] = [
                container
                if _has_token(container)
                else {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), mount]}
                for container in spec[key]
            ]
    return made


def _has_token(container: Json) -> bool:
    return any(mount.get("mountPath") == _PATH for mount in container.get("volumeMounts") or ())

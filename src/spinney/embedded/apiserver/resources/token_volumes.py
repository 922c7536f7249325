"""The projected volume with the service account token, the CA certificate and the namespace."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.core import Core

_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
# The sources of the volume, the same for all pods.
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
    """A name for the token volume of a pod."""
    return f"kube-api-access-{core.chance.suffix()}"


def with_token(core: Core, spec: Json) -> Json:
    """The spec with the token volume mounted in every container that does not mount one."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    if spec.get("automountServiceAccountToken") is False or all(map(_has_token, containers)):
        return spec
    name = volume_name(core)
    mount = {"name": name, "readOnly": True, "mountPath": _PATH}
    result = {**spec, "volumes": [*(spec.get("volumes") or ()), {"name": name, "projected": TOKEN}]}
    for key in ("containers", "initContainers"):
        if spec.get(key):
            result[key] = [
                container
                if _has_token(container)
                else {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), mount]}
                for container in spec[key]
            ]
    return result


def _has_token(container: Json) -> bool:
    return any(mount.get("mountPath") == _PATH for mount in container.get("volumeMounts") or ())

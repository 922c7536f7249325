"""Device isolation (opt-in): a container sees no GPU that it did not request."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Json
from spinney.api.raw_pods import containers, requests_of

_HARMLESS = ("void", "none")


def problems(pod: Json, wired: Json | None) -> list[str]:
    """Errors of containers that choose their own devices, apart from the one that admission configured."""
    errors = []
    for container in containers(pod):
        for variable in container.get("env") or []:
            if variable.get("name") != labels.ENV_VISIBLE_DEVICES or container is wired:
                continue
            if variable.get("valueFrom") or variable.get("value") not in _HARMLESS:
                errors.append(
                    f"container {container.get('name')}: {labels.ENV_VISIBLE_DEVICES} may only be 'void' or 'none'; "
                    f"ask for {labels.GPU_RESOURCE} instead"
                )
    return errors


def hide_devices(pod: Json) -> None:
    """Hide all GPUs from containers that request none."""
    for container in containers(pod):
        variables = container.setdefault("env", [])
        named = any(variable.get("name") == labels.ENV_VISIBLE_DEVICES for variable in variables)
        if not named and not _requests_gpu(container):
            variables.append({"name": labels.ENV_VISIBLE_DEVICES, "value": "void"})


def _requests_gpu(container: Json) -> bool:
    return any(name.endswith("/gpu") or "/mig-" in name for name in requests_of(container))

"""Checks of probes and lifecycle hooks."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import names

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_ASKED = ("exec", "httpGet", "tcpSocket", "grpc")
_DONE = ("exec", "httpGet", "tcpSocket", "sleep")


def check_hooks(lifecycle: Json, path: str, grace: Any) -> list[FieldError]:
    """Check the lifecycle hooks of a container."""
    errors: list[FieldError] = []
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            errors += _handler(lifecycle[hook], f"{path}.{hook}", _DONE, grace)
    return errors


def check_probe(probe: Json, path: str, name: str) -> list[FieldError]:
    """Check a probe."""
    errors = _handler(probe, path, _ASKED, None)
    for key in _COUNTS:
        if probe.get(key, 0) < 0:
            errors.append(invalid(f"{path}.{key}", probe[key], "must be greater than or equal to 0"))
    period = probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", period, "must be greater than 0"))
    if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        errors.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    if name == "readinessProbe" and period is not None:
        detail = "must not be set for readinessProbes"
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", period, detail))
    return errors


def _handler(node: Json, path: str, kinds: tuple[str, ...], grace: Any) -> list[FieldError]:
    """Check that a probe or hook has exactly one action."""
    handlers = [key for key in kinds if node.get(key) is not None]
    if not handlers:
        return [required(path, "must specify a handler type")]
    kind, handler = handlers[0], node[handlers[0]]
    where = f"{path}.{kind}"
    errors: list[FieldError] = []
    if kind == "exec" and not handler.get("command"):
        errors.append(required(f"{where}.command"))
    if kind == "httpGet":
        errors += _http(handler, where)
    if kind in ("tcpSocket", "grpc"):
        errors += names.check_port(handler.get("port", 0), f"{where}.port")
    if kind == "sleep" and grace is not None and not 0 <= handler.get("seconds", 0) <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        errors.append(invalid(where, handler.get("seconds", 0), detail))
    return errors + [
        forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type") for extra in handlers[1:]
    ]


def _http(handler: Json, path: str) -> list[FieldError]:
    errors = [] if handler.get("path") else [required(f"{path}.path")]
    errors += names.check_port(handler.get("port", 0), f"{path}.port")
    scheme = handler.get("scheme", "HTTP")
    if scheme not in ("HTTP", "HTTPS"):
        errors.append(unsupported(f"{path}.scheme", scheme, ("HTTP", "HTTPS")))
    return errors

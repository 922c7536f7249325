"""Containers of a pod: ports, environment, resources, mounts, probes and hooks."""

from __future__ import annotations

import re
from functools import lru_cache

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.validation import names, security

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage", "storage", "pods"))
_RANGE = "must be between 1 and 65535, inclusive"
_ENV_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_FIELDS = frozenset(
    (
        *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.annotations", "metadata.labels"),
        *("spec.nodeName", "spec.serviceAccountName", "spec.restartPolicy", "spec.schedulerName"),
        *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "status.phase"),
    )
)
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)


def check_container(container: Json, path: str, volumes: dict[str, Json], seen: set[str]) -> list[FieldError]:
    """One container of a pod; `seen` are the names that others before it have."""
    found: list[FieldError] = []
    name = container.get("name", "")
    found += names.check_label_name(name, f"{path}.name")
    if name and name in seen:
        found.append(duplicate(f"{path}.name", name))
    seen.add(name)
    image = container.get("image", "")
    if not image:
        found.append(required(f"{path}.image"))
    elif image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    policy = container.get("imagePullPolicy", "Always")
    if policy not in ("Always", "IfNotPresent", "Never"):
        found.append(unsupported(f"{path}.imagePullPolicy", policy, ("Always", "IfNotPresent", "Never")))
    if container.get("ports"):
        found += _ports(container["ports"], f"{path}.ports")
    if container.get("env"):
        found += _env(container["env"], f"{path}.env")
    if container.get("resources"):
        found += check_resources(container["resources"], f"{path}.resources")
    if container.get("volumeMounts"):
        found += _mounts(container["volumeMounts"], f"{path}.volumeMounts", volumes)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            found += _probe(container[probe], f"{path}.{probe}", probe)
    for hook, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            found += _handler(handler, f"{path}.lifecycle.{hook}", ("exec", "httpGet", "tcpSocket", "sleep"))
    return found + _uncommon(container, path, volumes)


def _uncommon(container: Json, path: str, volumes: dict[str, Json]) -> list[FieldError]:
    """What few containers have."""
    found: list[FieldError] = []
    if container.get("securityContext"):
        found += security.check_ids(container["securityContext"], f"{path}.securityContext")
    message = container.get("terminationMessagePolicy", "File")
    if message not in _MESSAGE_POLICIES:
        found.append(unsupported(f"{path}.terminationMessagePolicy", message, _MESSAGE_POLICIES))
    for at, source in enumerate(container.get("envFrom") or ()):
        prefix = source.get("prefix", "")
        if prefix and not names.ENV_NAME.match(prefix):
            found.append(invalid(f"{path}.envFrom[{at}].prefix", prefix, _ENV_RULE))
        if "configMapRef" not in source and "secretRef" not in source:
            found.append(invalid(f"{path}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`"))
    for at, device in enumerate(container.get("volumeDevices") or ()):
        where, name = f"{path}.volumeDevices[{at}]", device.get("name", "")
        if not name:
            found.append(required(f"{where}.name"))
        if name not in volumes:
            found.append(not_found_field(f"{where}.name", name))
        if not device.get("devicePath"):
            found.append(required(f"{where}.devicePath"))
    for policy in container.get("resizePolicy") or ():
        for key, allowed in (
            ("resourceName", ("cpu", "memory")),
            ("restartPolicy", ("NotRequired", "RestartContainer")),
        ):
            if policy.get(key) not in allowed:
                found.append(unsupported(f"{path}.resizePolicy", policy.get(key, ""), allowed))
    return found


def _ports(ports: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, port in enumerate(ports):
        where = f"{path}[{at}]"
        name = port.get("name")
        if name:
            if len(name) > 15:
                found.append(invalid(f"{where}.name", name, "must be no more than 15 characters"))
            if not names.PORT_NAME.match(name):
                rule = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                found.append(invalid(f"{where}.name", name, rule))
            elif not any(letter.isalpha() for letter in name):
                found.append(invalid(f"{where}.name", name, "must contain at least one letter (a-z)"))
            if name in seen:
                found.append(duplicate(f"{where}.name", name))
            seen.add(name)
        number = port.get("containerPort", 0)
        if not number:
            found.append(required(f"{where}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(invalid(f"{where}.containerPort", number, _RANGE))
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            found.append(invalid(f"{where}.hostPort", host, _RANGE))
        protocol = port.get("protocol", "")
        if not protocol:
            found.append(required(f"{where}.protocol"))
        elif protocol not in ("SCTP", "TCP", "UDP"):
            found.append(unsupported(f"{where}.protocol", protocol, ("SCTP", "TCP", "UDP")))
    return found


def _env(variables: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, variable in enumerate(variables):
        where = f"{path}[{at}]"
        name = variable.get("name", "")
        if not name:
            found.append(required(f"{where}.name"))
        elif not names.ENV_NAME.match(name):
            found.append(invalid(f"{where}.name", name, _ENV_RULE))
        source = variable.get("valueFrom")
        if source is not None:
            if variable.get("value"):
                detail = "may not be specified when `value` is not empty"
                found.append(invalid(f"{where}.valueFrom", "", detail))
            found += _source(source, f"{where}.valueFrom")
    return found


def _source(source: Json, path: str) -> list[FieldError]:
    """Where a variable's value comes from."""
    if not any(value is not None for value in source.values()):
        which = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        return [invalid(path, "", f"must specify one of: {which}")]
    found: list[FieldError] = []
    field = (source.get("fieldRef") or {}).get("fieldPath", "")
    if field and field not in _FIELDS and not re.match(r"^metadata\.(labels|annotations)\[", field):
        detail = f"error converting fieldPath: field label not supported: {field}"
        found.append(invalid(f"{path}.fieldRef.fieldPath", field, detail))
    resource = (source.get("resourceFieldRef") or {}).get("resource", "")
    if resource and resource not in _RESOURCES and ".hugepages-" not in resource:
        found.append(unsupported(f"{path}.resourceFieldRef.resource", resource, _RESOURCES))
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is None:
            continue
        name = source[key].get("name", "")
        found += [invalid(f"{path}.{key}.name", name, problem) for problem in names.subdomain_problems(name)]
        if not source[key].get("key"):
            found.append(required(f"{path}.{key}.key"))
    return found


def check_resources(resources: Json, path: str) -> list[FieldError]:
    """Requests and limits of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found = [
        invalid(f"{path}.{kind}[{name}]", value, problem)
        for kind, amounts in (("limits", limits), ("requests", requests))
        for name, text in amounts.items()
        for value, problem in _problems(name, text)
    ]
    if found:
        return found
    for name, text in requests.items():
        limit = limits.get(name)
        if limit == text:
            continue
        extended = "/" in name
        if limit is None:
            if extended or name.startswith("hugepages-"):
                found.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        elif extended and quantity.exact(text) != quantity.exact(limit):
            found.append(invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}"))
        elif quantity.exact(text) > quantity.exact(limit):
            found.append(invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}"))
    return found


@lru_cache(maxsize=4096)
def _problems(name: str, text: str) -> tuple[tuple[str, str], ...]:
    """What is wrong with an amount of a resource: the value to show, and why."""
    problems = names.qualified_problems(name)
    if problems:
        return tuple((name, problem) for problem in problems)
    if "/" not in name and name not in _NATIVE and not name.startswith(("hugepages-", "requests.", "limits.")):
        return (
            (name, "must be a standard resource type or fully qualified"),
            (name, "must be a standard resource for containers"),
        )
    amount = quantity.exact(text)
    if amount < 0:
        return ((text, "must be greater than or equal to 0"),)
    if "/" in name and amount.denominator != 1:
        return ((text, "must be an integer"),)
    return ()


def _mounts(mounts: list[Json], path: str, volumes: dict[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, mount in enumerate(mounts):
        where = f"{path}[{at}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(f"{where}.name"))
        if name not in volumes:
            found.append(not_found_field(f"{where}.name", name))
        if not target:
            found.append(required(f"{where}.mountPath"))
        elif target in seen:
            found.append(invalid(f"{where}.mountPath", target, "must be unique"))
        seen.add(target)
    return found


def _probe(probe: Json, path: str, name: str) -> list[FieldError]:
    found = _handler(probe, path, ("exec", "httpGet", "tcpSocket", "grpc"))
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if probe.get(key, 0) < 0:
            found.append(invalid(f"{path}.{key}", probe[key], "must be greater than or equal to 0"))
    if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        found.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    period = probe.get("terminationGracePeriodSeconds")
    if name == "readinessProbe" and period is not None:
        detail = "must not be set for readinessProbes"
        found.append(invalid(f"{path}.terminationGracePeriodSeconds", period, detail))
    return found


def _handler(node: Json, path: str, kinds: tuple[str, ...]) -> list[FieldError]:
    """What a probe or a hook does: exactly one thing."""
    given = [key for key in kinds if key in node]
    if not given:
        return [required(path, "must specify a handler type")]
    found = [forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type") for extra in given[1:]]
    kind, handler = given[0], node[given[0]]
    if kind == "exec" and not handler.get("command"):
        found.append(required(f"{path}.exec.command"))
    if kind in ("httpGet", "tcpSocket"):
        found += _port(handler.get("port", 0), f"{path}.{kind}.port")
    return found


def _port(port: int | str, path: str) -> list[FieldError]:
    if isinstance(port, int):
        return [] if 0 < port < 65536 else [invalid(path, port, _RANGE)]
    if names.PORT_NAME.match(port):
        return []
    return [invalid(path, port, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")]

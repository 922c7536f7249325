"""Containers of a pod: ports, environment, resources, mounts and probes, and the volumes they use."""

from __future__ import annotations

from functools import lru_cache

from spinney.api.meta import Json
from spinney.embedded import quantities
from spinney.embedded.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.validation import names

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage", "storage", "pods"))
_RANGE = "must be between 1 and 65535, inclusive"


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
            rule = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            found.append(invalid(f"{where}.name", name, rule))
        source = variable.get("valueFrom")
        if source is not None:
            if variable.get("value"):
                detail = "may not be specified when `value` is not empty"
                found.append(invalid(f"{where}.valueFrom", "", detail))
            if not any(source.values()):
                detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
                found.append(invalid(f"{where}.valueFrom", "", detail))
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
        elif extended and quantities.value(text) != quantities.value(limit):
            found.append(invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}"))
        elif quantities.value(text) > quantities.value(limit):
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
    amount = quantities.value(text)
    if amount < 0:
        return ((text, "must be greater than or equal to 0"),)
    if "/" in name and amount.denominator != 1:
        return ((text, "must be an integer"),)
    return ()


def check_volumes(volumes: list[Json], path: str, known: dict[str, Json]) -> list[FieldError]:
    """The volumes of a pod, which `known` then holds by name."""
    found: list[FieldError] = []
    for at, volume in enumerate(volumes):
        where = f"{path}[{at}]"
        name = volume.get("name", "")
        found += names.check_label_name(name, f"{where}.name")
        if name in known:
            found.append(duplicate(f"{where}.name", name))
        known[name] = volume
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            for extra in sources[1:]:
                found.append(forbidden_field(f"{where}.{extra}", "may not specify more than 1 volume type"))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            found.append(required(f"{where}.persistentVolumeClaim.claimName"))
        if "hostPath" in volume and not volume["hostPath"].get("path"):
            found.append(required(f"{where}.hostPath.path"))
        if "configMap" in volume and not volume["configMap"].get("name"):
            found.append(required(f"{where}.configMap.name"))
        if "secret" in volume and not volume["secret"].get("secretName"):
            found.append(required(f"{where}.secret.secretName"))
    return found


def _mounts(mounts: list[Json], path: str, volumes: dict[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, mount in enumerate(mounts):
        where = f"{path}[{at}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(f"{where}.name"))
        elif name not in volumes:
            found.append(not_found_field(f"{where}.name", name))
        if not target:
            found.append(required(f"{where}.mountPath"))
        elif target in seen:
            found.append(invalid(f"{where}.mountPath", target, "must be unique"))
        seen.add(target)
    return found


def _probe(probe: Json, path: str, name: str) -> list[FieldError]:
    found: list[FieldError] = []
    handlers = [key for key in ("exec", "httpGet", "tcpSocket", "grpc") if key in probe]
    if not handlers:
        found.append(required(path, "must specify a handler type"))
    for extra in handlers[1:]:
        found.append(forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type"))
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if probe.get(key, 0) < 0:
            found.append(invalid(f"{path}.{key}", probe[key], "must be greater than or equal to 0"))
    if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        found.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found

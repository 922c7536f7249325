"""Checks of containers: names, ports and resources."""

from __future__ import annotations

from typing import Any

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.api.text_cache import text_pair_cache
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import environment, names, pod_volumes, probes, security_contexts

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage"))
# Standard resources that containers cannot request.
_OTHERS = frozenset(("storage", "pods", "persistentvolumeclaims", "services", "secrets", "configmaps"))
_RANGE = "must be between 1 and 65535, inclusive"
_PULLS = ("Always", "IfNotPresent", "Never")
_MESSAGES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def check_container(
    container: Json, path: str, volumes: dict[str, Json], seen: set[str], pod: Json | None = None
) -> list[FieldError]:
    """Check one container of a pod. `seen` holds the names of the containers before it."""
    pod = pod or {}
    name = container.get("name", "")
    errors = names.check_label_name(name, f"{path}.name")
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    message = container.get("terminationMessagePolicy", "File")
    if message not in _MESSAGES:
        errors.append(unsupported(f"{path}.terminationMessagePolicy", message, _MESSAGES))
    if container.get("ports"):
        errors += _ports(container["ports"], f"{path}.ports")
    if container.get("env"):
        errors += environment.check_variables(container["env"], f"{path}.env")
    if container.get("envFrom"):
        errors += environment.check_sources(container["envFrom"], f"{path}.envFrom")
    if container.get("volumeMounts"):
        errors += pod_volumes.check_mounts(container["volumeMounts"], f"{path}.volumeMounts", volumes)
    policy = container.get("imagePullPolicy", "Always")
    if policy not in _PULLS:
        errors.append(unsupported(f"{path}.imagePullPolicy", policy, _PULLS))
    if container.get("resources"):
        errors += check_resources(container["resources"], f"{path}.resources")
    if container.get("securityContext"):
        errors += security_contexts.check_container(container["securityContext"], f"{path}.securityContext")
    if name and name in seen:
        errors.append(duplicate(f"{path}.name", name))
    seen.add(name)
    return errors + _check_life(container, path, pod.get("terminationGracePeriodSeconds"))


def _check_life(container: Json, path: str, grace: Any) -> list[FieldError]:
    """Check the hooks and probes of a container."""
    errors: list[FieldError] = []
    if container.get("lifecycle") is not None:
        errors += probes.check_hooks(container["lifecycle"], f"{path}.lifecycle", grace)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            errors += probes.check_probe(container[probe], f"{path}.{probe}", probe)
    return errors


def _ports(ports: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, port in enumerate(ports):
        where, name = f"{path}[{at}]", port.get("name")
        if name:
            problems = naming.port_name_problems(name)
            errors += [invalid(f"{where}.name", name, problem) for problem in problems]
            if not problems and name in seen:
                errors.append(duplicate(f"{where}.name", name))
            seen.add(name)
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            errors.append(required(f"{where}.containerPort"))
        elif not 1 <= number <= 65535:
            errors.append(invalid(f"{where}.containerPort", number, _RANGE))
        if host and not 1 <= host <= 65535:
            errors.append(invalid(f"{where}.hostPort", host, _RANGE))
        protocol = port.get("protocol", "")
        if not protocol:
            errors.append(required(f"{where}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(unsupported(f"{where}.protocol", protocol, _PROTOCOLS))
    return errors


def check_host_ports(containers: list[Json], path: str) -> list[FieldError]:
    """Refuse a host port that two containers of a pod use."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            mark = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if mark in seen:
                errors.append(duplicate(f"{path}[{at}].ports[{number}].hostPort", mark))
            seen.add(mark)
    return errors


def check_resources(resources: Json, path: str) -> list[FieldError]:
    """Check the requests and limits of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors = [
        invalid(f"{path}.limits[{name}]", value, problem)
        for name, text in limits.items()
        for value, problem in _problems(name, text)
    ]
    for name, text in requests.items():
        errors += [invalid(f"{path}.requests[{name}]", value, problem) for value, problem in _problems(name, text)]
        if not errors:
            errors += _within(name, text, limits.get(name), path)
    if "cpu" in limits or "memory" in limits or "cpu" in requests or "memory" in requests:
        return errors
    if any(name.startswith("hugepages-") for name in (*limits, *requests)):
        errors.append(forbidden_field(path, "HugePages require cpu or memory"))
    return errors


def _within(name: str, text: str, limit: str | None, path: str) -> list[FieldError]:
    """Refuse a request above its limit, or below it where the resource cannot be overcommitted."""
    fixed = "/" in name or name.startswith("hugepages-")
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", detail)] if fixed else []
    if limit == text:
        return []
    if fixed and quantity.exact(text) != quantity.exact(limit):
        return [invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")]
    if quantity.exact(text) > quantity.exact(limit):
        return [invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")]
    return []


def name_problems(name: str) -> tuple[str, ...]:
    """The problems of a resource's name in a container."""
    problems = naming.qualified_problems(name)
    if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
        if not problems and name not in _OTHERS:
            problems = ("must be a standard resource type or fully qualified",)
        return (*problems, "must be a standard resource for containers")
    if not problems and name.startswith("requests."):
        return ("doesn't follow extended resource name standard",)
    return problems


@text_pair_cache(4096)
def _problems(name: str, text: str) -> tuple[tuple[str, str], ...]:
    """The problem of a resource's amount, with the value to show."""
    problems = name_problems(name)
    if problems:
        return tuple((name, problem) for problem in problems)
    amount = quantity.exact(text)
    if amount < 0:
        return ((text, "must be greater than or equal to 0"),)
    if "/" in name and amount.denominator != 1:
        return ((text, "must be an integer"),)
    if name.startswith("hugepages-"):
        page = quantity.exact(name.removeprefix("hugepages-"))
        if amount % page:
            return ((text, f"{text} is not positive integer multiple of {name}"),)
    return ()

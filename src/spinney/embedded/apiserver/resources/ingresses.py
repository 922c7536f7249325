"""Ingresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required, unsupported
from spinney.embedded.apiserver.resources import cells, complete
from spinney.embedded.apiserver.resources.defaults import only_spec
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table, Warnings
from spinney.embedded.apiserver.resources.validation import names

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_STRANGE = ("//", "/./", "/../", "%2f", "%2F")
_STRANGE_ENDS = ("/..", "/.")
_WILDCARD = re.compile(r"^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_WILDCARD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_SHOWN_HOSTS = 3
CLASS_LENGTH = 250
_OLD_CLASS = "kubernetes.io/ingress.class"


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("rules") and not spec.get("defaultBackend"):
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        errors += _backend(spec["defaultBackend"], "spec.defaultBackend")
    for at, rule in enumerate(spec.get("rules") or ()):
        errors += _rule(rule, f"spec.rules[{at}]")
    for at, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            errors += _host(host, f"spec.tls[{at}].hosts[{number}]")
        secret = tls.get("secretName")
        if secret:
            problems = naming.subdomain_problems(secret)
            errors += [invalid(f"spec.tls[{at}].secretName", secret, problem) for problem in problems]
    name = spec.get("ingressClassName")
    if name is not None:
        errors += [invalid("spec.ingressClassName", name, problem) for problem in naming.subdomain_problems(name)]
    return errors


def _check_create(document: Json) -> list[FieldError]:
    old = (document["metadata"].get("annotations") or {}).get(_OLD_CLASS)
    name = (document.get("spec") or {}).get("ingressClassName")
    if old is None or name is None or old == name:
        return []
    where = f"metadata.annotations.{_OLD_CLASS}"
    return [invalid(where, old, "must match `ingressClassName` when both are specified")]


def _host(host: str, path: str) -> list[FieldError]:
    if "*" not in host:
        return [invalid(path, host, problem) for problem in naming.subdomain_problems(host)]
    return [] if _WILDCARD.match(host) else [invalid(path, host, _WILDCARD_RULE)]


def _rule(rule: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    host = rule.get("host", "")
    if host:
        if not names.check_address(host, path):
            errors.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        errors += _host(host, f"{path}.host")
    if rule.get("http") is None:
        return errors
    paths = rule["http"].get("paths") or ()
    if not paths:
        errors.append(required(f"{path}.http.paths"))
    for at, rule_path in enumerate(paths):
        errors += _path(rule_path, f"{path}.http.paths[{at}]")
    return errors


def _path(rule_path: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, text, where = rule_path.get("pathType"), rule_path.get("path", ""), f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            errors.append(invalid(where, text, "must be an absolute path"))
        if text:
            errors += [invalid(where, text, f"must not contain '{part}'") for part in _STRANGE if part in text]
            errors += [invalid(where, text, f"cannot end with '{end}'") for end in _STRANGE_ENDS if text.endswith(end)]
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            errors.append(invalid(where, text, "must be an absolute path"))
    else:
        errors.append(unsupported(f"{path}.pathType", kind, _PATH_TYPES))
    return errors + _backend(rule_path.get("backend") or {}, f"{path}.backend")


def _backend(backend: Json, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return check_reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    errors: list[FieldError] = []
    name, port = service.get("name", ""), service.get("port") or {}
    if not name:
        errors.append(required(f"{path}.service.name"))
    else:
        errors += [invalid(f"{path}.service.name", name, problem) for problem in naming.dns_1035_problems(name)]
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += names.check_port(port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        errors += names.check_port(port["number"], f"{path}.service.port.number")
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


def check_reference(reference: Json, path: str) -> list[FieldError]:
    """Check a reference to an object of any group."""
    errors: list[FieldError] = []
    group = reference.get("apiGroup")
    if group is not None:
        errors += [invalid(f"{path}.apiGroup", group, problem) for problem in naming.subdomain_problems(group)]
    for key in ("kind", "name"):
        value = reference.get(key, "")
        if not value:
            errors.append(required(f"{path}.{key}"))
        else:
            errors += [invalid(f"{path}.{key}", value, problem) for problem in naming.path_problems(value)]
    return errors


def _check_status(new: Json, old: Json) -> list[FieldError]:
    """Check the load balancer status of an Ingress."""
    errors: list[FieldError] = []
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for at, point in enumerate(points):
        where = f"status.loadBalancer.ingress[{at}]"
        if point.get("ip"):
            errors += names.check_address(point["ip"], f"{where}.ip")
        if point.get("hostname"):
            errors += names.check_host(point["hostname"], f"{where}.hostname")
    return errors


def _warn(document: Json) -> Iterator[str]:
    named = (document.get("spec") or {}).get("ingressClassName") is not None
    if not named and "kubernetes.io/ingress.class" in (document["metadata"].get("annotations") or {}):
        yield "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"


def _cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    return [
        cells.name(document),
        spec.get("ingressClassName", "<none>"),
        _hosts([rule.get("host", "") for rule in spec.get("rules") or ()]),
        ",".join(cells.load_balancer_addresses(document)),
        "80, 443" if spec.get("tls") else "80",
        cells.age(document, now),
    ]


def _hosts(hosts: list[str]) -> str:
    """The first three hosts of rules, and how many rules there are beyond them."""
    shown: list[str] = []
    for at, host in enumerate(hosts):
        if host:
            shown.append(host)
        if len(shown) == _SHOWN_HOSTS:
            more = f" + {len(hosts) - _SHOWN_HOSTS} more..." if at + 1 < len(hosts) else ""
            return ",".join(shown) + more
    return ",".join(shown) or "*"


INGRESSES = Resource(
    group="networking.k8s.io",
    kind="Ingress",
    plural="ingresses",
    short_names=("ing",),
    subresources=("status",),
    default=only_spec,
    complete=complete.status_members({"loadBalancer": {}}),
    has_generation=True,
    checks=Checks(object=_check, create=_check_create, subresources={"status": _check_status}),
    warnings=Warnings(create=_warn),
    table=Table("Name,Class,Hosts,Address,Ports,Age", _cells),
)

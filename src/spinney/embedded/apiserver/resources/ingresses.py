"""Ingresses and their classes."""

from __future__ import annotations

import re

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, too_long, unsupported
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
_CLASS_LENGTH = 250
_OLD_CLASS = "kubernetes.io/ingress.class"


def check_ingress(document: Json) -> list[FieldError]:
    """An Ingress."""
    spec = document.get("spec") or {}
    found: list[FieldError] = []
    if not spec.get("rules") and not spec.get("defaultBackend"):
        found.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if spec.get("defaultBackend") is not None:
        found += _backend(spec["defaultBackend"], "spec.defaultBackend")
    for at, rule in enumerate(spec.get("rules") or ()):
        found += _rule(rule, f"spec.rules[{at}]")
    for at, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            found += _host(host, f"spec.tls[{at}].hosts[{number}]")
        secret = tls.get("secretName")
        if secret:
            problems = naming.subdomain_problems(secret)
            found += [invalid(f"spec.tls[{at}].secretName", secret, problem) for problem in problems]
    name = spec.get("ingressClassName")
    if name is not None:
        found += [invalid("spec.ingressClassName", name, problem) for problem in naming.subdomain_problems(name)]
    return found


def check_new_ingress(document: Json) -> list[FieldError]:
    """A new Ingress names its class in one way."""
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
    found: list[FieldError] = []
    host = rule.get("host", "")
    if host:
        if not names.check_address(host, path):
            found.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        found += _host(host, f"{path}.host")
    if rule.get("http") is None:
        return found
    paths = rule["http"].get("paths") or ()
    if not paths:
        found.append(required(f"{path}.http.paths"))
    for at, each in enumerate(paths):
        found += _path(each, f"{path}.http.paths[{at}]")
    return found


def _path(each: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    kind, text, where = each.get("pathType"), each.get("path", ""), f"{path}.path"
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            found.append(invalid(where, text, "must be an absolute path"))
        if text:
            found += [invalid(where, text, f"must not contain '{part}'") for part in _STRANGE if part in text]
            found += [invalid(where, text, f"cannot end with '{end}'") for end in _STRANGE_ENDS if text.endswith(end)]
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            found.append(invalid(where, text, "must be an absolute path"))
    else:
        found.append(unsupported(f"{path}.pathType", kind, _PATH_TYPES))
    return found + _backend(each.get("backend") or {}, f"{path}.backend")


def _backend(backend: Json, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    found: list[FieldError] = []
    name, port = service.get("name", ""), service.get("port") or {}
    if not name:
        found.append(required(f"{path}.service.name"))
    else:
        found += [invalid(f"{path}.service.name", name, problem) for problem in naming.dns_1035_problems(name)]
    if port.get("name") and port.get("number"):
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        found += names.check_port(port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        found += names.check_port(port["number"], f"{path}.service.port.number")
    else:
        found.append(required(path, "port name or number is required"))
    return found


def _reference(reference: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    group = reference.get("apiGroup")
    if group is not None:
        found += [invalid(f"{path}.apiGroup", group, problem) for problem in naming.subdomain_problems(group)]
    for key in ("kind", "name"):
        value = reference.get(key, "")
        if not value:
            found.append(required(f"{path}.{key}"))
        else:
            found += [invalid(f"{path}.{key}", value, problem) for problem in naming.path_problems(value)]
    return found


def check_ingress_status(new: Json, old: Json) -> list[FieldError]:
    """What a load balancer may say of an Ingress."""
    found: list[FieldError] = []
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for at, point in enumerate(points):
        where = f"status.loadBalancer.ingress[{at}]"
        if point.get("ip"):
            found += names.check_address(point["ip"], f"{where}.ip")
        if point.get("hostname"):
            found += names.check_host(point["hostname"], f"{where}.hostname")
    return found


def check_ingress_class(document: Json) -> list[FieldError]:
    """An IngressClass."""
    spec = document.get("spec") or {}
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    found = [too_long("spec.controller", _CLASS_LENGTH)] if len(controller) > _CLASS_LENGTH else []
    found += names.check_domain_path(controller, "spec.controller")
    if parameters is None:
        return found
    path = "spec.parameters"
    found += _reference(parameters, path)
    scope, namespace = parameters.get("scope", "Cluster"), parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        found.append(unsupported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Namespace" and namespace is None:
        found.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Cluster" and namespace is not None:
        found.append(forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return found


def check_ingress_class_update(new: Json, old: Json) -> list[FieldError]:
    """A class keeps its controller."""
    mine, was = (each.get("spec") or {} for each in (new, old))
    if mine.get("controller") == was.get("controller"):
        return []
    return [invalid("spec.controller", mine.get("controller", ""), "field is immutable")]

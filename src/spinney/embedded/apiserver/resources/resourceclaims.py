"""ResourceClaims, their templates and DeviceClasses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.cel.expressions import CompileError, compile_expression
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    required,
    too_many,
    unsupported,
)
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.quota import Quota, Usage
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation import names, pod_placement

_REQUESTS, _ALTERNATIVES, _USERS = 32, 8, 256
_UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE = "exactly one of `exactly` or `firstAvailable` is required"


def _check(document: Json) -> list[FieldError]:
    """Check a new ResourceClaim. The spec of an existing one never changes."""
    return _devices((document.get("spec") or {}).get("devices") or {}, "spec.devices")


def _check_update(new: Json, old: Json) -> list[FieldError]:
    spec = new.get("spec") or {}
    if spec == (old.get("spec") or {}):
        return []
    return [invalid("spec", spec, "field is immutable")]


def _check_template(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    metadata = spec.get("metadata") or {}
    errors = names.check_labels(metadata.get("labels"), "spec.metadata.labels")
    errors += names.check_annotations(metadata.get("annotations"), "spec.metadata.annotations")
    return errors + _devices((spec.get("spec") or {}).get("devices") or {}, "spec.spec.devices")


def _check_template_update(new: Json, old: Json) -> list[FieldError]:
    spec = new.get("spec") or {}
    if spec == (old.get("spec") or {}):
        return []
    return [invalid("spec", spec, "field is immutable")]


def _check_class(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = _selectors(spec.get("selectors") or (), "spec.selectors")
    for at, config in enumerate(spec.get("config") or ()):
        errors += _config(config, f"spec.config[{at}]")
    return errors


def _unique(listed: list[str], most: int, path: str, check: Callable[[int, str], list[FieldError]]) -> list[FieldError]:
    """Check a list: its length, duplicates, and every item."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    if most >= 0 and len(listed) > most:
        errors.append(too_many(path, len(listed), most))
    for at, name in enumerate(listed):
        errors += check(at, f"{path}[{at}]")
        if name in seen:
            errors.append(duplicate(f"{path}[{at}]", name))
        seen.add(name)
    return errors


def _devices(devices: Json, path: str) -> list[FieldError]:
    requests = devices.get("requests") or []
    listed = [request.get("name", "") for request in requests]
    errors = _unique(listed, _REQUESTS, f"{path}.requests", lambda at, where: _request(requests[at], where))
    known = _request_names(devices)
    for at, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.constraints[{at}]"
        errors += _references(constraint.get("requests") or [], f"{where}.requests", known)
        attribute = constraint.get("matchAttribute")
        if attribute is None:
            errors.append(required(f"{where}.matchAttribute"))
        else:
            errors += _full_name(attribute, f"{where}.matchAttribute")
    for at, config in enumerate(devices.get("config") or ()):
        where = f"{path}.config[{at}]"
        errors += _references(config.get("requests") or [], f"{where}.requests", known) + _config(config, where)
    return errors


def _request_names(devices: Json) -> set[str]:
    """The names of requests that a reference may use."""
    known: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        known.add(name)
        known |= {f"{name}/{each.get('name', '')}" for each in request.get("firstAvailable") or ()}
    return known


def _references(listed: list[str], path: str, known: set[str]) -> list[FieldError]:
    return _unique(listed, _REQUESTS, path, lambda at, where: check_reference(listed[at], where, known))


def check_reference(name: str, path: str, known: set[str]) -> list[FieldError]:
    """Check a reference to a request."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _UNKNOWN)]
    errors = [invalid(path, part, problem) for part in parts for problem in naming.label_problems(part)]
    return errors if name in known else [*errors, invalid(path, name, _UNKNOWN)]


def _request(request: Json, path: str) -> list[FieldError]:
    name, exact, several = request.get("name", ""), request.get("exactly"), request.get("firstAvailable") or []
    errors = [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
    if exact is None and not several:
        errors.append(required(path, _ONE))
    elif exact is not None and several:
        errors.append(invalid(path, None, f"{_ONE}, but multiple fields are set"))
    elif exact is not None:
        errors += _wish(exact, f"{path}.exactly")
    else:
        listed = [each.get("name", "") for each in several]
        where = f"{path}.firstAvailable"
        errors += _unique(listed, _ALTERNATIVES, where, lambda at, place: _alternative(several[at], place))
    return errors


def _alternative(wish: Json, path: str) -> list[FieldError]:
    name = wish.get("name", "")
    return [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)] + _wish(wish, path)


def _wish(wish: Json, path: str) -> list[FieldError]:
    """Check how many devices of which class a request needs."""
    errors: list[FieldError] = []
    name, where = wish.get("deviceClassName", ""), f"{path}.deviceClassName"
    if not name:
        errors.append(required(where))
    else:
        errors += [invalid(where, name, problem) for problem in naming.subdomain_problems(name)]
    errors += _selectors(wish.get("selectors") or (), f"{path}.selectors")
    mode, count = wish.get("allocationMode", "ExactCount"), wish.get("count", 0)
    if mode == "All" and count:
        errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in ("All", "ExactCount"):
        errors.append(unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    return errors


def _selectors(selectors: list[Json] | tuple[()], path: str) -> list[FieldError]:
    errors = [too_many(path, len(selectors), _REQUESTS)] if len(selectors) > _REQUESTS else []
    for at, selector in enumerate(selectors):
        rule = selector.get("cel")
        if rule is None:
            errors.append(required(f"{path}[{at}].cel"))
            continue
        text = rule.get("expression", "")
        try:
            compile_expression(text, ("device",))
        except CompileError as error:
            errors.append(invalid(f"{path}[{at}].cel.expression", text, f"compilation failed: {error}"))
    return errors


def _config(config: Json, path: str) -> list[FieldError]:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    errors = check_driver(opaque.get("driver", ""), f"{path}.opaque.driver")
    return errors if opaque.get("parameters") else [*errors, required(f"{path}.opaque.parameters")]


def check_driver(name: str, path: str) -> list[FieldError]:
    """Check the name of a driver."""
    if not name:
        return [required(path)]
    return [invalid(path, name, problem) for problem in naming.subdomain_problems(name)]


def check_pool(name: str, path: str) -> list[FieldError]:
    """Check the name of a pool."""
    if not name:
        return [required(path)]
    return [invalid(path, part, problem) for part in name.split("/") for problem in naming.subdomain_problems(part)]


def _full_name(name: str, path: str) -> list[FieldError]:
    domain, slash, rest = name.partition("/")
    if not slash:
        return [invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")]
    errors = [] if domain else [required(path, "the domain must not be empty")]
    errors += [] if rest else [required(path, "the name must not be empty")]
    if domain:
        errors += [invalid(path, domain, problem) for problem in naming.subdomain_problems(domain)]
    return errors + (names.check_identifier(rest, path) if rest else [])


def _check_status(new: Json, old: Json) -> list[FieldError]:
    """Check the allocation of a claim, and its consumers."""
    status, was = new.get("status") or {}, old.get("status") or {}
    users = status.get("reservedFor") or []
    listed = [user.get("uid", "") for user in users]
    errors = _unique(listed, _USERS, "status.reservedFor", lambda at, where: _user(users[at], where))
    allocation, before = status.get("allocation"), was.get("allocation")
    if users and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(forbidden_field("status.reservedFor", detail))
    if allocation is None:
        return errors
    if before is not None:
        if allocation == before:
            return errors
        return [*errors, invalid("status.allocation", allocation, "field is immutable")]
    known = _request_names((new.get("spec") or {}).get("devices") or {})
    for at, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
        where = f"status.allocation.devices.results[{at}]"
        errors += check_reference(result.get("request", ""), f"{where}.request", known)
        errors += check_driver(result.get("driver", ""), f"{where}.driver")
        errors += check_pool(result.get("pool", ""), f"{where}.pool")
        device = result.get("device", "")
        errors += [invalid(f"{where}.device", device, problem) for problem in naming.label_problems(device)]
    for at, term in enumerate((allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()):
        errors += pod_placement.check_node_term(term, f"status.allocation.nodeSelector.nodeSelectorTerms[{at}]")
    return errors


def _user(user: Json, path: str) -> list[FieldError]:
    return [required(f"{path}.{key}") for key in ("resource", "name", "uid") if not user.get(key)]


def _default_requests(spec: Json) -> None:
    devices = spec.setdefault("devices", {})
    if not devices.get("requests"):
        devices["requests"] = None
    for request in devices.get("requests") or ():
        exact = request.get("exactly")
        for wish in (*((exact,) if exact is not None else ()), *(request.get("firstAvailable") or ())):
            wish.setdefault("allocationMode", "ExactCount")
            if wish["allocationMode"] == "ExactCount":
                wish.setdefault("count", 1)
            for key in ("tolerations", "capacity"):
                # The feature gates of these fields are off.
                wish.pop(key, None)


def _default(document: Json) -> None:
    _default_requests(document.setdefault("spec", {}))


def _default_template(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _default_requests(spec.setdefault("spec", {}))


def _default_class(document: Json) -> None:
    # The feature gate of this field is off.
    document.setdefault("spec", {}).pop("extendedResourceName", None)


def _cells(document: Json, now: datetime) -> list[Any]:
    status = cells.status(document)
    state = ["deleted" if document["metadata"].get("deletionTimestamp") else ""]
    state += ["allocated" if status.get("allocation") else "pending"]
    state += ["reserved"] if status.get("reservedFor") else []
    return [cells.name(document), ",".join(filter(None, state)), cells.age(document, now)]


def _usage(document: Json) -> Usage:
    spec = document.get("spec") or {}
    used: Usage = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        exact = request.get("exactly") or {}
        if exact.get("deviceClassName"):
            name = f"{exact['deviceClassName']}.deviceclass.resource.k8s.io/devices"
            used[name] = used.get(name, Fraction()) + int(exact.get("count") or 1)
    return used


RESOURCE_CLAIMS = Resource(
    group="resource.k8s.io",
    kind="ResourceClaim",
    plural="resourceclaims",
    subresources=("status",),
    default=_default,
    deletion=Deletion(returns_object=True),
    quota=Quota(usage=_usage),
    checks=Checks(create=_check, update=_check_update, subresources={"status": _check_status}),
    table=Table("Name,State,Age", _cells),
)
RESOURCE_CLAIM_TEMPLATES = Resource(
    group="resource.k8s.io",
    kind="ResourceClaimTemplate",
    plural="resourceclaimtemplates",
    default=_default_template,
    deletion=Deletion(returns_object=True),
    checks=Checks(create=_check_template, update=_check_template_update),
    table=Table("Name,Age", cells.plain),
)
DEVICE_CLASSES = Resource(
    group="resource.k8s.io",
    kind="DeviceClass",
    plural="deviceclasses",
    namespaced=False,
    default=_default_class,
    has_generation=True,
    deletion=Deletion(returns_object=True),
    checks=Checks(object=_check_class),
    table=Table("Name,Age", cells.plain),
)

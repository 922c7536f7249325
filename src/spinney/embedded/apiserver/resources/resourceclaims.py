"""ResourceClaims, their templates and DeviceClasses."""

from __future__ import annotations

from collections.abc import Callable

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
from spinney.embedded.apiserver.resources.validation import names, pod_placement
from spinney.embedded.apiserver.schema import internal

_REQUESTS, _ALTERNATIVES, _USERS = 32, 8, 256
_UNKNOWN = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE = "exactly one of `exactly` or `firstAvailable` is required"
_CLAIM = "resource.ResourceClaimSpec"


def check_claim(document: Json) -> list[FieldError]:
    """A new ResourceClaim; a claim that is there already never changes."""
    return _devices((document.get("spec") or {}).get("devices") or {}, "spec.devices")


def check_claim_update(new: Json, old: Json) -> list[FieldError]:
    """A claim keeps its spec."""
    mine = new.get("spec") or {}
    if mine == (old.get("spec") or {}):
        return []
    return [invalid("spec", internal.struct(mine, _CLAIM), "field is immutable")]


def check_template(document: Json) -> list[FieldError]:
    """A new ResourceClaimTemplate."""
    spec = document.get("spec") or {}
    metadata = spec.get("metadata") or {}
    found = names.check_labels(metadata.get("labels"), "spec.metadata.labels")
    found += names.check_annotations(metadata.get("annotations"), "spec.metadata.annotations")
    return found + _devices((spec.get("spec") or {}).get("devices") or {}, "spec.spec.devices")


def check_template_update(new: Json, old: Json) -> list[FieldError]:
    """A template keeps its spec."""
    mine = new.get("spec") or {}
    if mine == (old.get("spec") or {}):
        return []
    shown = internal.struct(mine, "resource.ResourceClaimTemplateSpec")
    return [invalid("spec", shown, "field is immutable")]


def check_class(document: Json) -> list[FieldError]:
    """A DeviceClass."""
    spec = document.get("spec") or {}
    found = _selectors(spec.get("selectors") or (), "spec.selectors")
    for at, config in enumerate(spec.get("config") or ()):
        found += _config(config, f"spec.config[{at}]")
    return found


def _unique(listed: list[str], most: int, path: str, check: Callable[[int, str], list[FieldError]]) -> list[FieldError]:
    """A list without doubles, and not too long, each with a check of its own."""
    found: list[FieldError] = []
    seen: set[str] = set()
    if most >= 0 and len(listed) > most:
        found.append(too_many(path, len(listed), most))
    for at, name in enumerate(listed):
        found += check(at, f"{path}[{at}]")
        if name in seen:
            found.append(duplicate(f"{path}[{at}]", name))
        seen.add(name)
    return found


def _devices(devices: Json, path: str) -> list[FieldError]:
    requests = devices.get("requests") or []
    listed = [request.get("name", "") for request in requests]
    found = _unique(listed, _REQUESTS, f"{path}.requests", lambda at, where: _request(requests[at], where))
    known = request_names(devices)
    for at, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.constraints[{at}]"
        found += _references(constraint.get("requests") or [], f"{where}.requests", known)
        attribute = constraint.get("matchAttribute")
        if attribute is None:
            found.append(required(f"{where}.matchAttribute"))
        else:
            found += _full_name(attribute, f"{where}.matchAttribute")
    for at, config in enumerate(devices.get("config") or ()):
        where = f"{path}.config[{at}]"
        found += _references(config.get("requests") or [], f"{where}.requests", known) + _config(config, where)
    return found


def request_names(devices: Json) -> set[str]:
    """What a reference to a request may say."""
    known: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name", "")
        known.add(name)
        known |= {f"{name}/{each.get('name', '')}" for each in request.get("firstAvailable") or ()}
    return known


def _references(listed: list[str], path: str, known: set[str]) -> list[FieldError]:
    return _unique(listed, _REQUESTS, path, lambda at, where: check_reference(listed[at], where, known))


def check_reference(name: str, path: str, known: set[str]) -> list[FieldError]:
    """The name of a request."""
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(path, name, _UNKNOWN)]
    found = [invalid(path, part, problem) for part in parts for problem in naming.label_problems(part)]
    return found if name in known else [*found, invalid(path, name, _UNKNOWN)]


def _request(request: Json, path: str) -> list[FieldError]:
    name, exact, several = request.get("name", ""), request.get("exactly"), request.get("firstAvailable") or []
    found = [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
    if exact is None and not several:
        found.append(required(path, _ONE))
    elif exact is not None and several:
        found.append(invalid(path, None, f"{_ONE}, but multiple fields are set"))
    elif exact is not None:
        found += _wish(exact, f"{path}.exactly")
    else:
        listed = [each.get("name", "") for each in several]
        where = f"{path}.firstAvailable"
        found += _unique(listed, _ALTERNATIVES, where, lambda at, place: _alternative(several[at], place))
    return found


def _alternative(wish: Json, path: str) -> list[FieldError]:
    name = wish.get("name", "")
    return [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)] + _wish(wish, path)


def _wish(wish: Json, path: str) -> list[FieldError]:
    """How many devices of which class."""
    found: list[FieldError] = []
    name, where = wish.get("deviceClassName", ""), f"{path}.deviceClassName"
    if not name:
        found.append(required(where))
    else:
        found += [invalid(where, name, problem) for problem in naming.subdomain_problems(name)]
    found += _selectors(wish.get("selectors") or (), f"{path}.selectors")
    mode, count = wish.get("allocationMode", "ExactCount"), wish.get("count", 0)
    if mode == "All" and count:
        found.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        found.append(invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in ("All", "ExactCount"):
        found.append(unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    return found


def _selectors(selectors: list[Json] | tuple[()], path: str) -> list[FieldError]:
    found = [too_many(path, len(selectors), _REQUESTS)] if len(selectors) > _REQUESTS else []
    for at, selector in enumerate(selectors):
        rule = selector.get("cel")
        if rule is None:
            found.append(required(f"{path}[{at}].cel"))
            continue
        text = rule.get("expression", "")
        try:
            compile_expression(text, ("device",))
        except CompileError as error:
            found.append(invalid(f"{path}[{at}].cel.expression", text, f"compilation failed: {error}"))
    return found


def _config(config: Json, path: str) -> list[FieldError]:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    found = check_driver(opaque.get("driver", ""), f"{path}.opaque.driver")
    return found if opaque.get("parameters") else [*found, required(f"{path}.opaque.parameters")]


def check_driver(name: str, path: str) -> list[FieldError]:
    """The name of a driver."""
    if not name:
        return [required(path)]
    return [invalid(path, name, problem) for problem in naming.subdomain_problems(name)]


def check_pool(name: str, path: str) -> list[FieldError]:
    """The name of a pool: parts between slashes."""
    if not name:
        return [required(path)]
    return [invalid(path, part, problem) for part in name.split("/") for problem in naming.subdomain_problems(part)]


def _full_name(name: str, path: str) -> list[FieldError]:
    domain, slash, rest = name.partition("/")
    if not slash:
        return [invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")]
    found = [] if domain else [required(path, "the domain must not be empty")]
    found += [] if rest else [required(path, "the name must not be empty")]
    if domain:
        found += [invalid(path, domain, problem) for problem in naming.subdomain_problems(domain)]
    return found + (names.check_identifier(rest, path) if rest else [])


def check_claim_status(new: Json, old: Json) -> list[FieldError]:
    """What was allocated for a claim, and who uses it."""
    status, was = new.get("status") or {}, old.get("status") or {}
    users = status.get("reservedFor") or []
    listed = [user.get("uid", "") for user in users]
    found = _unique(listed, _USERS, "status.reservedFor", lambda at, where: _user(users[at], where))
    allocation, before = status.get("allocation"), was.get("allocation")
    if users and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        found.append(forbidden_field("status.reservedFor", detail))
    if allocation is None:
        return found
    if before is not None:
        if allocation == before:
            return found
        shown = internal.struct(allocation, "resource.AllocationResult")
        return [*found, invalid("status.allocation", shown, "field is immutable")]
    known = request_names((new.get("spec") or {}).get("devices") or {})
    for at, result in enumerate((allocation.get("devices") or {}).get("results") or ()):
        where = f"status.allocation.devices.results[{at}]"
        found += check_reference(result.get("request", ""), f"{where}.request", known)
        found += check_driver(result.get("driver", ""), f"{where}.driver")
        found += check_pool(result.get("pool", ""), f"{where}.pool")
        device = result.get("device", "")
        found += [invalid(f"{where}.device", device, problem) for problem in naming.label_problems(device)]
    for at, term in enumerate((allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()):
        found += pod_placement.check_node_term(term, f"status.allocation.nodeSelector.nodeSelectorTerms[{at}]")
    return found


def _user(user: Json, path: str) -> list[FieldError]:
    return [required(f"{path}.{key}") for key in ("resource", "name", "uid") if not user.get(key)]

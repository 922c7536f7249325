"""ResourceClaims, their templates and DeviceClasses."""

from __future__ import annotations

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
    unsupported,
)
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.quota import Quota, Usage
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation.names import check_unchanged

_ONE = "exactly one of `exactly` or `firstAvailable` is required"


def _check(document: Json) -> list[FieldError]:
    """Check a new ResourceClaim. The spec of an existing one never changes."""
    return _devices((document.get("spec") or {}).get("devices") or {}, "spec.devices")


def _check_template(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    return _devices((spec.get("spec") or {}).get("devices") or {}, "spec.spec.devices")


def _check_update(new: Json, old: Json) -> list[FieldError]:
    return check_unchanged(new, old, ["spec"])


def _check_class(document: Json) -> list[FieldError]:
    return _selectors((document.get("spec") or {}).get("selectors") or (), "spec.selectors")


def _devices(devices: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, request in enumerate(devices.get("requests") or ()):
        where, name = f"{path}.requests[{at}]", request.get("name", "")
        errors += _request(request, where)
        errors += [duplicate(where, name)] if name in seen else []
        seen.add(name)
    for at, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.constraints[{at}]"
        errors += [] if constraint.get("matchAttribute") else [required(f"{where}.matchAttribute")]
        for number, name in enumerate(constraint.get("requests") or ()):
            if name.partition("/")[0] not in seen:
                detail = "must be the name of a request in the claim"
                errors.append(invalid(f"{where}.requests[{number}]", name, detail))
    return errors


def _request(request: Json, path: str) -> list[FieldError]:
    name, exact, several = request.get("name", ""), request.get("exactly"), request.get("firstAvailable") or []
    errors = [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
    if exact is None and not several:
        errors.append(required(path, _ONE))
    elif exact is not None and several:
        errors.append(invalid(path, None, f"{_ONE}, but multiple fields are set"))
    elif exact is not None:
        errors += _check_subrequest(exact, f"{path}.exactly")
    for at, subrequest in enumerate(several):
        where, name = f"{path}.firstAvailable[{at}]", subrequest.get("name", "")
        errors += [invalid(f"{where}.name", name, problem) for problem in naming.label_problems(name)]
        errors += _check_subrequest(subrequest, where)
    return errors


def _check_subrequest(subrequest: Json, path: str) -> list[FieldError]:
    """Check how many devices of which class a request needs."""
    errors = [] if subrequest.get("deviceClassName") else [required(f"{path}.deviceClassName")]
    errors += _selectors(subrequest.get("selectors") or (), f"{path}.selectors")
    mode, count = subrequest.get("allocationMode", "ExactCount"), subrequest.get("count", 0)
    if mode == "ExactCount" and count <= 0:
        errors.append(invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in ("All", "ExactCount"):
        errors.append(unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    return errors


def _selectors(selectors: list[Json] | tuple[()], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, selector in enumerate(selectors):
        text = (selector.get("cel") or {}).get("expression", "")
        try:
            compile_expression(text, ("device",))
        except CompileError as error:
            errors.append(invalid(f"{path}[{at}].cel.expression", text, f"compilation failed: {error}"))
    return errors


def _check_status(new: Json, old: Json) -> list[FieldError]:
    """Check that an allocation never changes, and that only an allocated claim has consumers."""
    status, before = new.get("status") or {}, (old.get("status") or {}).get("allocation")
    allocation = status.get("allocation")
    if status.get("reservedFor") and allocation is None:
        return [forbidden_field("status.reservedFor", "may not be specified when `allocated` is not set")]
    if None not in (allocation, before) and allocation != before:
        return [invalid("status.allocation", allocation, "field is immutable")]
    return []


def _default_requests(spec: Json) -> None:
    devices = spec.setdefault("devices", {})
    if not devices.get("requests"):
        devices["requests"] = None
    for request in devices.get("requests") or ():
        exact = request.get("exactly")
        for subrequest in (*((exact,) if exact is not None else ()), *(request.get("firstAvailable") or ())):
            subrequest.setdefault("allocationMode", "ExactCount")
            if subrequest["allocationMode"] == "ExactCount":
                subrequest.setdefault("count", 1)
            for key in ("tolerations", "capacity"):
                # The feature gates of these fields are off.
                subrequest.pop(key, None)


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
    status_keeps=None,
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
    checks=Checks(create=_check_template, update=_check_update),
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

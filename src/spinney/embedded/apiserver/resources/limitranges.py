"""LimitRanges."""

from __future__ import annotations

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required
from spinney.embedded.apiserver.resources import complete
from spinney.embedded.apiserver.resources.record import Checks, Resource
from spinney.embedded.apiserver.resources.validation import containers

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_OTHERS = ("storage", "cpu", "memory", "ephemeral-storage", "pods", "persistentvolumeclaims")
# Pairs of fields of which the first may not exceed the second, with the one that an error names.
_ORDER = (
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    types: set[str] = set()
    for at, limit in enumerate((document.get("spec") or {}).get("limits") or ()):
        where = f"spec.limits[{at}]"
        kind = limit.get("type", "")
        problems = naming.qualified_problems(kind)
        errors += [invalid(f"{where}.type", kind, problem) for problem in problems]
        if not problems and "/" not in kind and kind not in _TYPES:
            errors.append(invalid(f"{where}.type", kind, "must be a standard limit type or fully qualified"))
        if kind in types:
            errors.append(duplicate(f"{where}.type", kind))
        types.add(kind)
        errors += _names(limit, where)
        if kind == "Pod":
            errors += [
                forbidden_field(f"{where}.{key}", "may not be specified when `type` is 'Pod'")
                for key in ("default", "defaultRequest")
                if limit.get(key)
            ]
        if kind == "PersistentVolumeClaim" and not any("storage" in (limit.get(key) or {}) for key in ("min", "max")):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(required(f"{where}.limits", detail))
        errors += _ordered(limit, where)
    return errors


def _names(limit: Json, where: str) -> list[FieldError]:
    """Check the names of limited resources."""
    errors: list[FieldError] = []
    for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        if limit.get("type") == "Pod" and key.startswith("default"):
            continue
        for name in limit.get(key) or ():
            problems = containers.name_problems(name)
            if limit.get("type") not in ("Pod", "Container"):
                problems = problems[:1] if "/" not in name and name not in _OTHERS else ()
            errors += [invalid(f"{where}.{key}[{name}]", name, problem) for problem in problems]
    return errors


def _ordered(limit: Json, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for low, high, field in _ORDER:
        smaller, larger = limit.get(low) or {}, limit.get(high) or {}
        for name in sorted(smaller.keys() & larger.keys()):
            if quantity.exact(smaller[name]) > quantity.exact(larger[name]):
                detail = f"{low} value {smaller[name]} is greater than {high} value {larger[name]}"
                errors.append(invalid(f"{where}.{field}[{name}]", limit[field][name], detail))
    return errors


def _default(document: Json) -> None:
    for limit in document.setdefault("spec", {}).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        requests = {**(limit.get("min") or {}), **limits, **(limit.get("defaultRequest") or {})}
        if limits:
            limit["default"] = limits
        if requests:
            limit["defaultRequest"] = requests


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    # This kind alone may be created without a name.
    call.name = document["metadata"].setdefault("name", core.chance.uid())


LIMIT_RANGES = Resource(
    kind="LimitRange",
    plural="limitranges",
    short_names=("limits",),
    default=_default,
    complete=complete.spec_member("limits"),
    prepare_create=_prepare_create,
    allow_create_on_update=True,
    checks=Checks(object=_check),
)

"""Quotas and limit ranges of a namespace."""

from __future__ import annotations

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.errors import FieldError, duplicate, forbidden_field, invalid, required

# What may not be above what: the field that is wrong, the one it is compared with, and how the two are told.
_ORDER = (
    ("min", "min", "max", "min value {0} is greater than max value {1}"),
    ("defaultRequest", "min", "defaultRequest", "min value {0} is greater than default request value {1}"),
    ("defaultRequest", "defaultRequest", "max", "default request value {0} is greater than max value {1}"),
    (
        "defaultRequest",
        "defaultRequest",
        "default",
        "default request value {0} is greater than default limit value {1}",
    ),
    ("default", "min", "default", "min value {0} is greater than default value {1}"),
    ("default", "default", "max", "default value {0} is greater than max value {1}"),
)
# The value that such a message shows, where it is not that of the field.
_SHOWN = {("default", "min", "default"): "min", ("default", "default", "max"): "max"}


def check_quota(document: Json) -> list[FieldError]:
    """A ResourceQuota."""
    found: list[FieldError] = []
    for name, amount in ((document.get("spec") or {}).get("hard") or {}).items():
        if quantity.exact(amount) < 0:
            found.append(invalid(f"spec.hard[{name}]", amount, "must be greater than or equal to 0"))
    return found


def check_limit_range(document: Json) -> list[FieldError]:
    """A LimitRange."""
    found: list[FieldError] = []
    types: set[str] = set()
    for at, limit in enumerate((document.get("spec") or {}).get("limits") or ()):
        where = f"spec.limits[{at}]"
        kind = limit.get("type", "")
        if not kind:
            found.append(required(f"{where}.type"))
        if kind in types:
            found.append(duplicate(f"{where}.type", kind))
        types.add(kind)
        if kind == "Pod":
            found += [
                forbidden_field(f"{where}.{key}", "may not be specified when `type` is 'Pod'")
                for key in ("default", "defaultRequest")
                if limit.get(key)
            ]
        if kind == "PersistentVolumeClaim" and not any("storage" in (limit.get(key) or {}) for key in ("min", "max")):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            found.append(required(f"{where}.limits", detail))
        found += _ordered(limit, where)
    return found


def _ordered(limit: Json, where: str) -> list[FieldError]:
    found: list[FieldError] = []
    for field, low, high, detail in _ORDER:
        smaller, larger = limit.get(low) or {}, limit.get(high) or {}
        for name in sorted(smaller.keys() & larger.keys()):
            if quantity.exact(smaller[name]) > quantity.exact(larger[name]):
                shown = limit[_SHOWN.get((field, low, high), field)][name]
                why = detail.format(smaller[name], larger[name])
                found.append(invalid(f"{where}.{field}[{name}]", shown, why))
    return found

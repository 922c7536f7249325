"""Checks of update strategies."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported

NOT_NEGATIVE = "must be greater than or equal to 0"
_NONE = (0, "0%")
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def check_deployment(strategy: Json, path: str) -> list[FieldError]:
    """Check the strategy of a Deployment."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        return [unsupported(path, strategy, ("Recreate", "RollingUpdate"))]
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden_field(f"{path}.rollingUpdate", detail)] if rolling else []
    rolling = rolling or {}
    where = f"{path}.rollingUpdate"
    errors = check_share(rolling, "maxUnavailable", where) + check_share(rolling, "maxSurge", where)
    if rolling.get("maxUnavailable") in _NONE and rolling.get("maxSurge") in _NONE:
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{where}.maxUnavailable", rolling["maxUnavailable"], detail))
    return errors + check_at_most_all(rolling, "maxUnavailable", where)


def check_share(holder: Json, key: str, path: str) -> list[FieldError]:
    """Check a number of pods or a percentage."""
    value = holder.get(key)
    if isinstance(value, int):
        return [invalid(f"{path}.{key}", value, NOT_NEGATIVE)] if value < 0 else []
    return [] if value is None or _percent(value) is not None else [invalid(f"{path}.{key}", value, _PERCENT)]


def check_at_most_all(holder: Json, key: str, path: str) -> list[FieldError]:
    """Refuse a percentage above 100."""
    value = holder.get(key)
    is_more = isinstance(value, str) and (_percent(value) or 0) > 100
    return [invalid(f"{path}.{key}", value, "must not be greater than 100%")] if is_more else []


def _percent(value: str) -> int | None:
    return whole_number(value[:-1]) if value.endswith("%") else None


def check_stateful(strategy: Json, path: str) -> list[FieldError]:
    """Check the update strategy of a StatefulSet."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        return [invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")]
    partition = (rolling or {}).get("partition", 0)
    if kind == "OnDelete" and rolling is not None:
        return [invalid(f"{path}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'")]
    return [invalid(f"{path}.rollingUpdate.partition", partition, NOT_NEGATIVE)] if partition < 0 else []


def check_daemons(strategy: Json, path: str) -> list[FieldError]:
    """Check the update strategy of a DaemonSet."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate") or {}
    if kind not in ("RollingUpdate", "OnDelete"):
        return [unsupported(path, strategy, ("RollingUpdate", "OnDelete"))]
    if kind == "OnDelete":
        return []
    where = f"{path}.rollingUpdate"
    errors: list[FieldError] = []
    for key in ("maxUnavailable", "maxSurge"):
        errors += check_share(rolling, key, where) + check_at_most_all(rolling, key, where)
    fewer, more = (_amount(rolling.get(key, 0)) for key in ("maxUnavailable", "maxSurge"))
    if not fewer and not more:
        errors.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    if fewer and more:
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{where}.maxSurge", rolling.get("maxSurge"), detail))
    return errors


def _amount(value: int | str) -> int:
    """A number or a percentage as a number, 0 where it cannot be parsed."""
    return value if isinstance(value, int) else _percent(value) or 0

"""Checks of update strategies."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required, unsupported

NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def check_deployment(strategy: Json, path: str) -> list[FieldError]:
    """Check the strategy of a Deployment."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        return [unsupported(path, {"Type": kind, "RollingUpdate": None}, ("Recreate", "RollingUpdate"))]
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden_field(f"{path}.rollingUpdate", detail)] if rolling else []
    rolling = rolling or {}
    errors = _share(rolling, "maxUnavailable", f"{path}.rollingUpdate") + _share(
        rolling, "maxSurge", f"{path}.rollingUpdate"
    )
    if _zero(rolling.get("maxUnavailable")) and _zero(rolling.get("maxSurge")):
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{path}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], detail))
    return errors + _whole(rolling, "maxUnavailable", f"{path}.rollingUpdate")


def _zero(value: object) -> bool:
    return value in (0, "0%")


def _share(rolling: Json, key: str, path: str) -> list[FieldError]:
    """Check a number of pods or a percentage."""
    value = rolling.get(key)
    if isinstance(value, int):
        return [invalid(f"{path}.{key}", value, NOT_NEGATIVE)] if value < 0 else []
    if value is None:
        return []
    if whole_number(str(value).removesuffix("%")) is None or not str(value).endswith("%"):
        return [invalid(f"{path}.{key}", value, _PERCENT)]
    return []


def check_stateful(strategy: Json, path: str) -> list[FieldError]:
    """Check the update strategy of a StatefulSet."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        return [invalid(path, {"Type": kind, "RollingUpdate": None}, "must be 'RollingUpdate' or 'OnDelete'")]
    partition = (rolling or {}).get("partition", 0)
    if kind == "OnDelete" and rolling is not None:
        shown = {"Partition": partition, "MaxUnavailable": rolling.get("maxUnavailable")}
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    return [invalid(f"{path}.rollingUpdate.partition", partition, NOT_NEGATIVE)] if partition < 0 else []


def check_daemons(strategy: Json, path: str) -> list[FieldError]:
    """Check the update strategy of a DaemonSet."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate") or {}
    if kind not in ("RollingUpdate", "OnDelete"):
        return [unsupported(path, {"Type": kind, "RollingUpdate": None}, ("RollingUpdate", "OnDelete"))]
    if kind == "OnDelete":
        return []
    where = f"{path}.rollingUpdate"
    errors: list[FieldError] = []
    for key in ("maxUnavailable", "maxSurge"):
        errors += _share(rolling, key, where) + _whole(rolling, key, where)
    fewer, more = (_amount(rolling.get(key, 0)) for key in ("maxUnavailable", "maxSurge"))
    if not fewer and not more:
        errors.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    if fewer and more:
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(invalid(f"{where}.maxSurge", rolling.get("maxSurge"), detail))
    return errors


def _amount(value: object) -> int:
    """A number or a percentage as a number, 0 where it cannot be parsed."""
    if isinstance(value, int):
        return value
    percent = whole_number(str(value).removesuffix("%"))
    return percent if percent is not None and str(value).endswith("%") else 0


def _whole(rolling: Json, key: str, path: str) -> list[FieldError]:
    value = rolling.get(key)
    if isinstance(value, str) and _amount(value) > 100:
        return [invalid(f"{path}.{key}", value, "must not be greater than 100%")]
    return []

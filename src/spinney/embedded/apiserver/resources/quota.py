"""How resource quotas count the objects of a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from spinney.api import quantity
from spinney.api.meta import Json

Usage = dict[str, Fraction]


class Scope(NamedTuple):
    """A scope of a quota, which may select by values."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def selects(self, names: set[Any]) -> bool:
        """Whether one of an object's names is selected. An object without a name is selected by DoesNotExist."""
        match self.operator:
            case "In":
                return bool(names & set(self.values))
            case "NotIn":
                return not names or bool(names - set(self.values))
            case "Exists":
                return bool(names)
        return not names


def _no_usage(document: Json) -> Usage:
    """Nothing beside the object itself."""
    return {}


def _not_covered(scope: Scope, document: Json) -> bool:
    return False


def _nothing_missing(hard: Json, document: Json) -> list[str]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How quotas count the objects of a kind, beside `count/<resource>`."""

    # Counted under its plural, too.
    counted: bool = False
    usage: Callable[[Json], Usage] = _no_usage
    # Whether a scope covers an object; a quota without scopes covers all.
    covers: Callable[[Scope, Json], bool] = _not_covered
    # What a new object has to specify because a quota limits it.
    missing: Callable[[Json, Json], list[str]] = _nothing_missing
    # An update may ask for more than before.
    grows: bool = False


def amounts(holder: Json, kind: str) -> Usage:
    """The requests or limits of a container, a pod or a claim."""
    texts = (holder.get("resources") or {}).get(kind) or {}
    return {name: quantity.exact(amount) for name, amount in texts.items()}


def written(name: str, amount: Fraction) -> str:
    """An amount as Kubernetes writes it in a quota's status."""
    if amount.denominator != 1:
        return quantity.canonical(f"{-(-amount * 1000 // 1)}m")
    for unit in ("Gi", "Mi", "Ki") if name.endswith(("memory", "storage")) else ():
        if amount and amount % quantity.exact(f"1{unit}") == 0:
            return f"{amount // quantity.exact(f'1{unit}')}{unit}"
    return quantity.canonical(str(amount.numerator))

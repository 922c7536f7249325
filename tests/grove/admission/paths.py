"""Changes of plain objects by field path, as admission messages write them: `spec.template.cliques[0].name`."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

GONE = object()


def changed(source: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with fields set, or removed where the value is GONE; missing parents appear."""
    result = deepcopy(source)
    for path, value in changes.items():
        _put(result, path, value)
    return result


def _put(target: Any, path: str, value: Any) -> None:
    *parents, last = [int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", path)]
    for part in parents:
        target = target[part] if isinstance(part, int) else target.setdefault(part, {})
    if value is GONE:
        del target[last]
    else:
        target[last] = value

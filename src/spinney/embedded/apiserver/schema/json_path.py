"""The part of JSONPath that printer columns and scale paths use."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\]\\])+)"
    r"|\[\?\(@\.(?P<field>[^=!<>)]+?)\s*(?P<operator>==|!=)\s*(?P<quote>['\"])(?P<value>.*?)(?P=quote)\)\]"
    r"|\[(?P<star>\*)\]"
    r"|\[(?P<index>-?\d{1,9})\]"
    r"|\[(?P<slice>-?\d{0,9}:-?\d{0,9})\]"
    r"|\[(?P<mark>['\"])(?P<key>.*?)(?P=mark)\]"
)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[re.Match[str], ...]:
    path = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if path and not path.startswith((".", "[")):
        path = "." + path
    return tuple(_STEP.finditer(path))


def find(document: Any, path: str) -> list[Any]:
    """All values at a path."""
    values = [document]
    for step in _steps(path):
        values = [item for node in values for item in _take(node, step)]
    return [item for item in values if item is not None]


def _take(node: Any, step: re.Match[str]) -> list[Any]:
    name = step["name"] or step["key"]
    if name is not None:
        name = name.replace("\\.", ".").replace("\\/", "/")
        if name == "*":
            return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
        return [node[name]] if isinstance(node, dict) and name in node else []
    if step["star"]:
        return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    if not isinstance(node, list):
        return []
    if step["index"] is not None:
        at = int(step["index"])
        return [node[at]] if -len(node) <= at < len(node) else []
    if step["slice"] is not None:
        first, _, last = step["slice"].partition(":")
        return node[int(first) if first else None : int(last) if last else None]
    wanted, equal = step["value"], step["operator"] == "=="
    return [item for item in node if (_text(find(item, step["field"])) == wanted) is equal]


def _text(values: list[Any]) -> str:
    if not values:
        return ""
    return str(values[0]).lower() if isinstance(values[0], bool) else str(values[0])

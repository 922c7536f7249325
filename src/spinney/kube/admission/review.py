"""Answers of an admission webhook: allowed, refused, or allowed with changes."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from spinney.api.meta import Json, encode


def allowed(request: Json, warnings: Sequence[str] = ()) -> Json:
    """Let the request through."""
    answer: Json = {"uid": request.get("uid", ""), "allowed": True}
    if warnings:
        answer["warnings"] = list(warnings)
    return answer


def refused(request: Json, message: str, *, code: int = 403, reason: str = "Forbidden") -> Json:
    """Stop the request, and tell its sender why."""
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"uid": request.get("uid", ""), "allowed": False, "status": status}


def changed(request: Json, wanted: Json, warnings: Sequence[str] = ()) -> Json:
    """Let the request through with its object as wanted."""
    answer = allowed(request, warnings)
    if operations := list(difference(request.get("object") or {}, wanted)):
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(encode(operations)).decode()
    return answer


def difference(old: Any, new: Any, path: str = "") -> Iterator[Json]:
    """The JSON patch from one document to another; lists that differ are replaced whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() - new.keys():
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
        for key, value in new.items():
            place = f"{path}/{_escaped(key)}"
            if key not in old:
                yield {"op": "add", "path": place, "value": value}
            else:
                yield from difference(old[key], value, place)
    elif old != new:
        yield {"op": "replace", "path": path, "value": new}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

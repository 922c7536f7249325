"""Values as the API server's own types print them, which some refusals show instead of what a client wrote.

`data/internal.json.gz` says the members of each struct, and their types: s(tring), i(nteger), b(oolean), q(uantity),
x (a number or a text), t(ime), o(bject's metadata), p(ointer), l(ist), m(ap), @struct, and j for what is printed as on
the wire.
"""

from __future__ import annotations

import difflib
import gzip
import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from spinney.api.meta import Json

_ZEROS: dict[str, Any] = {"s": "", "i": 0, "b": False, "q": "0", "x": 0}
_POD_SPEC = "core.PodSpec"
# On the wire these are members of the pod's spec.
_OF_CONTEXT = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


@lru_cache(maxsize=1)
def _structs() -> dict[str, list[tuple[str, str, str]]]:
    packed = files("spinney.embedded.apiserver").joinpath("data/internal.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=dict[str, list[tuple[str, str, str]]])


def struct(value: Json, name: str) -> Json:
    """A value of a struct, like `core.PodTemplateSpec`."""
    if name == _POD_SPEC:
        context = {**(value.get("securityContext") or {}), **{key: value[key] for key in _OF_CONTEXT if key in value}}
        value = {**value, "securityContext": context}
    shown: Json = {}
    for member, wire, kind in _structs()[name]:
        if wire:
            shown[member] = _shown(value.get(wire), kind)
        elif kind == "o":
            shown |= _sorted(value.get("metadata") or {})
        else:
            shown |= struct(value, kind[1:])
    return shown


def _shown(value: Any, kind: str) -> Any:
    letter, rest = kind[0], kind[1:]
    if letter == "@":
        return struct(value or {}, rest)
    if value is None:
        return _ZEROS.get(letter)
    if letter == "p":
        return _shown(value, rest)
    if letter == "l":
        return [_shown(each, rest) for each in value]
    if letter == "m":
        return {key: _shown(each, rest) for key, each in sorted(value.items())}
    return _sorted(value) if letter == "j" else value


def _sorted(value: Any) -> Any:
    """Maps inside of metadata and selectors, with their keys in order; other members keep theirs."""
    if not isinstance(value, dict):
        return value
    maps = ("labels", "annotations", "matchLabels")
    return {key: dict(sorted(each.items())) if key in maps else each for key, each in value.items()}


def difference(old: Json, new: Json, name: str) -> str:
    """Where two values of a struct differ, line by line."""
    before, after = (json.dumps(struct(each, name), indent=1, ensure_ascii=False).split("\n") for each in (old, new))
    lines = list(difflib.unified_diff(before, after, lineterm=""))[2:]
    return "\n".join((*lines, ""))

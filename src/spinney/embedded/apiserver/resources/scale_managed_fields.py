"""Convert managed fields between an object and its Scale."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.apiserver.write import field_sets
from spinney.embedded.apiserver.write.field_sets import FieldSet

_OWNED: FieldSet = {"f:spec": {"f:replicas": {}}}
_VERSION = "autoscaling/v1"


def of_scale(entries: list[Json], path: str) -> list[Json]:
    """Entries of the object that manage its replicas, as entries of its Scale."""
    owned = _field(path)
    return [
        {**entry, "apiVersion": _VERSION, "fieldsV1": _OWNED}
        for entry in entries
        if field_sets.intersection(entry["fieldsV1"], owned)
    ]


def of_object(entries: list[Json], scaled: list[Json], path: str, version: str) -> list[Json]:
    """Entries of the object after a write that left its Scale with these entries."""
    owned, left = _field(path), {_manager(entry): entry for entry in scaled}
    result: list[Json] = []
    for entry in entries:
        keeps = left.pop(_manager(entry), None) is not None
        rest = entry["fieldsV1"] if keeps else field_sets.difference(entry["fieldsV1"], owned)
        if rest:
            result.append({**entry, "fieldsV1": rest})
    for entry in left.values():
        # Kubernetes drops the time here.
        new = {key: value for key, value in entry.items() if key != "time"}
        result.append({**new, "apiVersion": version, "fieldsV1": owned})
    return result


def _field(path: str) -> FieldSet:
    owned: FieldSet = {}
    for part in reversed(path.strip(".").split(".")):
        owned = {f"f:{part}": owned}
    return owned


def _manager(entry: Json) -> tuple[str, str, str]:
    return entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", "")

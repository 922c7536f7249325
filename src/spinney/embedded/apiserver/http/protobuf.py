"""Kubernetes' protobuf bodies, which Go clients send for built-in kinds and kubectl for `create` without a file.

The wire format is decoded by a table of field numbers; `scripts/protobuf_data.py` makes it.
"""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.api.times import rfc3339, rfc3339_micro
from spinney.embedded.apiserver.errors import bad_request, unsupported_media_type
from spinney.embedded.apiserver.schema.shapes import definitions

MAGIC = b"k8s\x00"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
# Go writes every plain field, also when it is empty; of these names the empty value was meant.
_MEANT = frozenset(
    """
    replicas parallelism completions backoffLimit terminationGracePeriodSeconds gracePeriodSeconds runAsUser runAsGroup
    fsGroup revisionHistoryLimit ttlSecondsAfterFinished minReplicas partition automountServiceAccountToken
    enableServiceLinks allowPrivilegeEscalation runAsNonRoot controller blockOwnerDeletion suspend immutable optional
    expirationSeconds value minAvailable maxUnavailable maxSurge
    """.split()  # noqa: SIM905  # a list of words reads better than a list of strings
)


@lru_cache(maxsize=1)
def _messages() -> dict[str, dict[str, list[str]]]:
    packed = files("spinney.embedded.apiserver").joinpath("data/protobuf.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=dict[str, dict[str, list[str]]])


def decode(body: bytes) -> Json:
    """The object in a protobuf envelope."""
    try:
        envelope = {number: value for number, _, value in _fields(body[len(MAGIC) :])}
        head = {number: value.decode() for number, _, value in _fields(envelope.get(1, b""))}
        api_version, kind = head.get(1, ""), head.get(2, "")
        name = _message_name(api_version, kind)
        if name not in _messages():
            raise unsupported_media_type(("application/json", "application/yaml"))
        return {"apiVersion": api_version, "kind": kind, **_message(envelope.get(2, b""), name)}
    except (IndexError, struct.error, UnicodeDecodeError, AttributeError):
        raise bad_request("proto: illegal wireType or unexpected EOF") from None


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind in ("DeleteOptions", "Status", "PatchOptions"):
        return _META + kind
    return f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Field number, wire type and raw value of each field."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        match wire:
            case 0:
                value, at = _varint(data, at)
                yield number, wire, value
            case 1:
                yield number, wire, struct.unpack_from("<d", data, at)[0]
                at += 8
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise IndexError(at)
                yield number, wire, data[at : at + size]
                at += size
            case 5:
                yield number, wire, struct.unpack_from("<f", data, at)[0]
                at += 4
            case _:
                raise IndexError(wire)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise IndexError(at)


def _message(data: bytes, name: str) -> Json:
    fields = _messages()[name]
    properties = definitions().get(name.replace("k8s.io.", "io.k8s.", 1), {}).get("properties")
    result: Json = {}
    for number, _, raw in _fields(data):
        field = fields.get(str(number))
        if field is None:
            continue
        key, of, label = field
        if label == "map":
            entry = {place: value for place, _, value in _fields(raw)}
            result.setdefault(key, {})[entry.get(1, b"").decode()] = _value(entry.get(2, b""), of)
        elif label == "repeated":
            result.setdefault(key, []).append(_value(raw, of))
        else:
            value = _value(raw, of)
            if properties is not None and key not in properties and isinstance(value, dict):
                # An embedded struct: in JSON its fields stand beside the others.
                result.update(value)
            elif value or isinstance(value, dict) or (key in _MEANT and value is not None):
                result[key] = value
    return result


def _value(raw: Any, of: str) -> Any:
    match of:
        case "string":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "bool":
            return bool(raw)
        case "int32" | "int64":
            return raw - (1 << 64) if raw >> 63 else raw
        case "double" | "float" | "uint32" | "uint64":
            return raw
    short = of.rpartition(".")[2]
    if short in _SPECIAL:
        return _SPECIAL[short]({number: value for number, _, value in _fields(raw)})
    return _message(raw, of)


def _time(parts: dict[int, Any]) -> str | None:
    if not parts.get(1):
        return None
    return rfc3339(datetime.fromtimestamp(parts[1], UTC))


def _micro_time(parts: dict[int, Any]) -> str | None:
    if not parts.get(1):
        return None
    moment = datetime.fromtimestamp(parts[1], UTC).replace(microsecond=parts.get(2, 0) // 1000)
    return rfc3339_micro(moment)


def _int_or_string(parts: dict[int, Any]) -> int | str:
    return str(parts.get(3, b"").decode()) if parts.get(1) else int(parts.get(2, 0))


def _raw_json(parts: dict[int, Any]) -> Any:
    return msgspec.json.decode(parts[1]) if parts.get(1) else None


_SPECIAL: dict[str, Any] = {
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "Quantity": lambda parts: parts.get(1, b"0").decode(),
    "RawExtension": _raw_json,
    "FieldsV1": _raw_json,
    "JSON": _raw_json,
}

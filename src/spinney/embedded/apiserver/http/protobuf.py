"""Kubernetes' protobuf bodies, which Go clients send for built-in kinds and kubectl for `create` without a file.

The wire format is decoded by a table of field numbers; `scripts/protobuf_data.py` makes it.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.api.times import rfc3339, rfc3339_micro
from spinney.embedded.apiserver import data_files
from spinney.embedded.apiserver.errors import bad_request, too_many_values, unsupported_media_type
from spinney.embedded.apiserver.schema.shapes import definitions

MAGIC = b"k8s\x00"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
# Go writes every plain field, also where it is zero. Only in fields of these names a zero is kept.
_ZERO_IS_KEPT = frozenset(
    """
    replicas parallelism completions backoffLimit terminationGracePeriodSeconds gracePeriodSeconds runAsUser runAsGroup
    fsGroup revisionHistoryLimit ttlSecondsAfterFinished minReplicas partition automountServiceAccountToken
    enableServiceLinks allowPrivilegeEscalation runAsNonRoot controller blockOwnerDeletion suspend immutable optional
    expirationSeconds value minAvailable maxUnavailable maxSurge
    """.split()  # noqa: SIM905  # a list of words reads better than a list of strings
)

# Go writes empty fields, too, so there are several for each value in JSON.
_MOST_FIELDS = 200_000
# What a field of a plain type is held in; all others are held in bytes.
_HELD_IN: dict[str, type] = {
    **dict.fromkeys(("bool", "int32", "int64", "uint32", "uint64"), int),
    **dict.fromkeys(("double", "float"), float),
}


class _Malformed(Exception):
    """Bytes that are not the message that they should be."""


@lru_cache(maxsize=1)
def _messages() -> dict[str, dict[str, list[str]]]:
    return data_files.read("protobuf", dict[str, dict[str, list[str]]])


def decode(body: bytes) -> Json:
    """The object in a protobuf envelope."""
    try:
        return _Reader().object(body[len(MAGIC) :])
    except (_Malformed, IndexError, struct.error, UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        raise bad_request("proto: illegal wireType or unexpected EOF") from None


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind in ("DeleteOptions", "Status", "PatchOptions"):
        return _META + kind
    return f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


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


class _Reader:
    """Reads one object, of a bounded number of fields."""

    def __init__(self) -> None:
        self._count = 0

    def object(self, data: bytes) -> Json:
        """The object in an envelope, with its kind and version."""
        envelope = self._parts(data)
        head = self._parts(_held(envelope.get(1, b""), bytes))
        api_version, kind = (_held(head.get(number, b""), bytes).decode() for number in (1, 2))
        name = _message_name(api_version, kind)
        if name not in _messages():
            raise unsupported_media_type(("application/json", "application/yaml"))
        return {"apiVersion": api_version, "kind": kind, **self._message(_held(envelope.get(2, b""), bytes), name)}

    def _parts(self, data: bytes) -> dict[int, Any]:
        """The last value of each field."""
        return {number: value for number, _, value in self._fields(data)}

    def _fields(self, data: bytes) -> Iterator[tuple[int, int, Any]]:
        """Field number, wire type and raw value of each field."""
        at = 0
        while at < len(data):
            self._count += 1
            if self._count > _MOST_FIELDS:
                raise too_many_values(self._count, _MOST_FIELDS)
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

    def _message(self, data: bytes, name: str) -> Json:
        fields = _messages()[name]
        properties = definitions().get(name.replace("k8s.io.", "io.k8s.", 1), {}).get("properties")
        result: Json = {}
        for number, _, raw in self._fields(data):
            field = fields.get(str(number))
            if field is None:
                continue
            key, of, label = field
            if label == "map":
                entry = self._parts(_held(raw, bytes))
                value = self._value(entry.get(2, b""), of)
                result.setdefault(key, {})[_held(entry.get(1, b""), bytes).decode()] = value
            elif label == "repeated":
                result.setdefault(key, []).append(self._value(raw, of))
            else:
                value = self._value(raw, of)
                if properties is not None and key not in properties and isinstance(value, dict):
                    # An embedded struct: in JSON its fields stand beside the others.
                    result.update(value)
                elif value or isinstance(value, dict) or (key in _ZERO_IS_KEPT and value is not None):
                    result[key] = value
        return result

    def _value(self, raw: Any, of: str) -> Any:
        _held(raw, _HELD_IN.get(of, bytes))
        match of:
            case "string":
                return raw.decode()
            case "bytes":
                return base64.b64encode(raw).decode()
            case "bool":
                return bool(raw)
            case "int32" | "int64":
                return _signed(raw)
            case "double" | "float":
                if not math.isfinite(raw):
                    raise _Malformed
                return raw
            case "uint32" | "uint64":
                return raw
        short = of.rpartition(".")[2]
        return _SPECIAL[short](self._parts(raw)) if short in _SPECIAL else self._message(raw, of)


def _held(raw: Any, kind: type) -> Any:
    """The raw value of a field, if its wire type is one that holds this."""
    if not isinstance(raw, kind):
        raise _Malformed
    return raw


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _moment(parts: dict[int, Any]) -> datetime | None:
    seconds, nanos = (_signed(_held(parts.get(number, 0), int)) for number in (1, 2))
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanos // 1000)
    except (ValueError, OverflowError, OSError):
        raise _Malformed from None


def _time(parts: dict[int, Any]) -> str | None:
    moment = _moment(parts)
    return rfc3339(moment) if moment is not None else None


def _micro_time(parts: dict[int, Any]) -> str | None:
    moment = _moment(parts)
    return rfc3339_micro(moment) if moment is not None else None


def _int_or_string(parts: dict[int, Any]) -> int | str:
    if parts.get(1):
        return str(_held(parts.get(3, b""), bytes).decode())
    return _signed(_held(parts.get(2, 0), int))


def _quantity(parts: dict[int, Any]) -> str:
    return str(_held(parts.get(1, b"0"), bytes).decode())


def _raw_json(parts: dict[int, Any]) -> Any:
    return msgspec.json.decode(_held(parts[1], bytes)) if parts.get(1) else None


_SPECIAL: dict[str, Callable[[dict[int, Any]], Any]] = {
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "Quantity": _quantity,
    "RawExtension": _raw_json,
    "FieldsV1": _raw_json,
    "JSON": _raw_json,
}

"""The messages of the kubelet's device-plugin API, as protobuf bytes: only the fields that a plugin needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

VERSION = "v1beta1"
_LENGTH_DELIMITED = 2


class Malformed(Exception):
    """A message that is no protobuf, or not of the kubelet's kind."""


def register_request(endpoint: str, resource: str) -> bytes:
    """What a plugin tells the kubelet: its socket's name and its resource."""
    return _text(1, VERSION) + _text(2, endpoint) + _text(3, resource)


def devices(identities: Iterable[str]) -> bytes:
    """The healthy devices of a node."""
    return b"".join(_field(1, _text(1, identity) + _text(2, "Healthy")) for identity in identities)


def allocated(environments: Iterable[Mapping[str, str]]) -> bytes:
    """The environment variables of each container that gets devices."""
    return b"".join(_field(1, _environment(variables)) for variables in environments)


def wanted_devices(request: bytes) -> list[list[str]]:
    """The identities of the devices that the kubelet gives to each container."""
    return [[device.decode() for device in _values(container, 1)] for container in _values(request, 1)]


def registration(request: bytes) -> tuple[str, str]:
    """Endpoint and resource of a registration."""
    (endpoint,), (resource,) = list(_values(request, 2)), list(_values(request, 3))
    return endpoint.decode(), resource.decode()


def allocate_request(containers: Sequence[Sequence[str]]) -> bytes:
    """What the kubelet asks for: devices of each container."""
    return b"".join(_field(1, b"".join(_text(1, device) for device in ids)) for ids in containers)


def environments(response: bytes) -> list[dict[str, str]]:
    """The environment variables of each container in an answer."""
    return [
        {next(_values(entry, 1)).decode(): next(_values(entry, 2)).decode() for entry in _values(container, 1)}
        for container in _values(response, 1)
    ]


def identities(response: bytes) -> list[str]:
    """The identities of the devices in a list."""
    return [next(_values(device, 1)).decode() for device in _values(response, 1)]


def _environment(variables: Mapping[str, str]) -> bytes:
    return b"".join(_field(1, _text(1, name) + _text(2, value)) for name, value in variables.items())


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _values(message: bytes, wanted: int) -> Iterator[bytes]:
    """The values of one length-delimited field; others are passed over."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            _, position = _read_varint(message, position)
            continue
        if kind != _LENGTH_DELIMITED:
            raise Malformed(f"field {number} has wire type {kind}")
        length, position = _read_varint(message, position)
        if position + length > len(message):
            raise Malformed(f"field {number} ends after the message")
        if number == wanted:
            yield message[position : position + length]
        position += length


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise Malformed("a number ends after the message")

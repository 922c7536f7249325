"""Bodies as Go clients send them."""

from __future__ import annotations

import base64

import pytest

from spinney.embedded.apiserver.http.protobuf import decode
from tests.embedded.conftest import MAPS, PODS, Asker


def varint(number: int) -> bytes:
    """A number in seven-bit groups."""
    out = b""
    while True:
        number, low = number >> 7, number & 0x7F
        if not number:
            return out + bytes([low])
        out += bytes([low | 0x80])


def field(number: int, value: bytes | int) -> bytes:
    """One field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """A message as Kubernetes wraps it."""
    head = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, head) + field(2, message)


def test_a_config_map() -> None:
    """Maps and nested messages are read by their field numbers; empty plain fields are left out."""
    metadata = field(1, b"a") + field(2, b"") + field(11, field(1, b"k") + field(2, b"v"))
    body = envelope("v1", "ConfigMap", field(1, metadata) + field(2, field(1, b"x") + field(2, b"y")))
    assert decode(body) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "data": {"x": "y"},
    }


def test_special_types() -> None:
    """Bytes become base64, embedded structs stand beside their neighbours, quantities are strings."""
    secret = envelope("v1", "Secret", field(2, field(1, b"k") + field(2, b"\x00\x01")))
    assert decode(secret)["data"] == {"k": base64.b64encode(b"\x00\x01").decode()}
    volume = field(1, b"v") + field(2, field(2, b""))
    pod = envelope("v1", "Pod", field(2, field(1, volume)))
    assert decode(pod)["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    quota = envelope("v1", "ResourceQuota", field(2, field(1, field(1, b"pods") + field(2, field(1, b"5")))))
    assert decode(quota)["spec"]["hard"] == {"pods": "5"}


def test_a_budget_of_nothing() -> None:
    """`kubectl create pdb --max-unavailable=0` means 0, not that nothing was said."""
    nothing = field(1, 0) + field(2, 0) + field(3, b"")
    budget = envelope("policy/v1", "PodDisruptionBudget", field(2, field(3, nothing)))
    assert decode(budget)["spec"] == {"maxUnavailable": 0}


@pytest.mark.parametrize("body", [b"", b"k8s\x00\xff", b"{}", b"k8s\x00" + field(1, b"\xff")])
async def test_bad_bodies(ask: Asker, body: bytes) -> None:
    """What is no message is a bad request, and the server lives on."""
    answer = await ask("POST", "/api/v1/namespaces", body, kind="application/vnd.kubernetes.protobuf")
    assert answer.status in (400, 415)


@pytest.mark.parametrize(
    "message",
    [
        field(1, 5),
        field(1, field(1, 5)),
        field(1, field(7, b"x")),
        field(1, field(8, field(1, 1 << 60))),
        field(1, field(8, field(1, 10**14))),
        field(1, field(8, field(1, b"x"))),
        field(1, field(8, varint(1 << 3 | 1) + b"\xff" * 8)),
        field(1, field(17, field(7, field(1, b"{{")))),
        field(1, field(17, field(7, field(1, b"[" * 50_000)))),
    ],
)
async def test_a_field_of_another_wire_type_ended_in_an_exception(ask: Asker, message: bytes) -> None:
    """Numbers for texts, times that no calendar has, and JSON inside that cannot be read are the client's mistakes."""
    body = envelope("v1", "ConfigMap", message)
    answer = await ask("POST", MAPS, body, kind="application/vnd.kubernetes.protobuf")
    assert (answer.status, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("count", [60_000, 250_000])
async def test_empty_parts_by_the_million_filled_the_memory(ask: Asker, count: int) -> None:
    """An empty container takes two bytes in protobuf; there may be as many values as in JSON."""
    pod = field(1, field(1, b"p")) + field(2, field(2, field(1, b"")) * count)
    answer = await ask("POST", PODS, envelope("v1", "Pod", pod), kind="application/vnd.kubernetes.protobuf")
    assert (answer.status, answer["reason"]) == (413, "RequestEntityTooLarge")


async def test_create_by_protobuf(ask: Asker) -> None:
    """kubectl creates a namespace this way."""
    body = envelope("v1", "Namespace", field(1, field(1, b"demo")) + field(2, b"") + field(3, b""))
    made = await ask("POST", "/api/v1/namespaces", body, kind="application/vnd.kubernetes.protobuf")
    assert made.status == 201
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "demo"}

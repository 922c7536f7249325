"""A device plugin that offers GPUs which do not exist: the kubelet counts and assigns them as real ones."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError, StreamTerminatedError
from grpclib.server import Server, Stream

from spinney.api import labels
from spinney.services.fakegpus import messages

SOCKETS = Path("/var/lib/kubelet/device-plugins")
_KUBELET = "kubelet.sock"
_ENDPOINT = "spinney-fake-gpus.sock"
_SERVICE = f"/{messages.VERSION}.DevicePlugin"
_REGISTER = f"/{messages.VERSION}.Registration/Register"
# How often to look whether the kubelet has started again: it then forgets its plugins and removes their sockets.
_LOOK_SECONDS = 1.0
_log = structlog.get_logger("spinney.fake-gpus")


class Bytes(CodecBase):
    """Messages as they are on the wire."""

    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: type[bytes]) -> bytes:
        """The message itself."""
        return message

    def decode(self, data: bytes, message_type: type[bytes]) -> bytes:
        """The message itself."""
        return data


def gpu_identity(node: str, index: int) -> str:
    """The UUID of a node's fake GPU, in the vendor's form, the same after every start."""
    text = hashlib.sha256(f"{node}/{index}".encode()).hexdigest()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


class DevicePlugin:
    """What the kubelet asks a device plugin."""

    def __init__(self, identities: list[str]) -> None:
        self._identities = identities

    def __mapping__(self) -> Mapping[str, Handler]:
        """The methods by their paths."""
        unary, streamed = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        return {
            f"{_SERVICE}/GetDevicePluginOptions": Handler(self._nothing, unary, bytes, bytes),
            f"{_SERVICE}/ListAndWatch": Handler(self._list, streamed, bytes, bytes),
            f"{_SERVICE}/Allocate": Handler(self._allocate, unary, bytes, bytes),
            f"{_SERVICE}/GetPreferredAllocation": Handler(self._nothing, unary, bytes, bytes),
            f"{_SERVICE}/PreStartContainer": Handler(self._nothing, unary, bytes, bytes),
        }

    async def _nothing(self, stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        await stream.send_message(b"")

    async def _list(self, stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        await stream.send_message(messages.devices(self._identities))
        # Fake GPUs neither break nor change: the list stays open until the kubelet leaves.
        await asyncio.Event().wait()

    async def _allocate(self, stream: Stream[bytes, bytes]) -> None:
        request = await stream.recv_message()
        devices = messages.wanted_devices(request or b"")
        _log.info("gpus.allocated", devices=devices)
        names = (labels.ENV_VISIBLE_DEVICES, labels.ENV_FAKE_GPUS)
        await stream.send_message(messages.allocated(dict.fromkeys(names, ",".join(ids)) for ids in devices))


async def serve(node: str, count: int, resource: str = labels.GPU_RESOURCE, sockets: Path = SOCKETS) -> None:
    """Offer GPUs to the kubelet of this node until cancelled, and register again whenever the kubelet restarts."""
    identities = [gpu_identity(node, index) for index in range(count)]
    while True:
        kubelet = await _kubelet_socket(sockets)
        server = Server([DevicePlugin(identities)], codec=Bytes())
        (sockets / _ENDPOINT).unlink(missing_ok=True)
        await server.start(path=str(sockets / _ENDPOINT))
        try:
            await _register(sockets, resource)
            _log.info("gpus.offered", node=node, resource=resource, count=count)
            await _until_changed(sockets, kubelet)
        except (GRPCError, StreamTerminatedError, OSError) as error:
            _log.warning("kubelet.refused", error=str(error))
            await asyncio.sleep(_LOOK_SECONDS)
        finally:
            server.close()
            (sockets / _ENDPOINT).unlink(missing_ok=True)


async def _register(sockets: Path, resource: str) -> None:
    channel = Channel(path=str(sockets / _KUBELET), codec=Bytes())
    try:
        method: UnaryUnaryMethod[bytes, bytes] = UnaryUnaryMethod(channel, _REGISTER, bytes, bytes)
        await method(messages.register_request(_ENDPOINT, resource))
    finally:
        channel.close()


async def _kubelet_socket(sockets: Path) -> Any:
    while (identity := _identity(sockets / _KUBELET)) is None:  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(_LOOK_SECONDS)
    return identity


async def _until_changed(sockets: Path, kubelet: Any) -> None:
    while _identity(sockets / _KUBELET) == kubelet and (sockets / _ENDPOINT).exists():  # noqa: ASYNC110 - as above
        await asyncio.sleep(_LOOK_SECONDS)


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_ctime_ns
    return None

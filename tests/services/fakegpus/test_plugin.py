"""The device plugin that offers fake GPUs, against a kubelet's side of the same sockets."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from spinney.api import labels
from spinney.cli.fake_gpus import fake_gpus
from spinney.services.fakegpus import messages
from spinney.services.fakegpus.plugin import Bytes, gpu_identity, serve

SERVICE = "/v1beta1.DevicePlugin"


class Kubelet:
    """The kubelet's side: plugins register, and are then asked for their devices."""

    def __init__(self, sockets: Path) -> None:
        self.sockets = sockets
        self.registered: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def __mapping__(self) -> Mapping[str, Handler]:
        """The method by its path."""
        register = Handler(self._register, Cardinality.UNARY_UNARY, bytes, bytes)
        return {"/v1beta1.Registration/Register": register}

    async def _register(self, stream: Stream[bytes, bytes]) -> None:
        self.registered.put_nowait(messages.registration(await stream.recv_message() or b""))
        await stream.send_message(b"")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve the socket; a kubelet that starts removes those of plugins."""
        for path in self.sockets.iterdir():
            path.unlink()
        server = Server([self], codec=Bytes())
        await server.start(path=str(self.sockets / "kubelet.sock"))
        try:
            yield
        finally:
            server.close()
            await server.wait_closed()


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@asynccontextmanager
async def plugin(sockets: Path) -> AsyncIterator[None]:
    """The plugin with two GPUs."""
    task = asyncio.create_task(serve("node-1", 2, sockets=sockets))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_kubelet_lists_and_allocates(sockets: Path) -> None:
    """The kubelet hears of the resource, sees every GPU, and containers learn which ones they got."""
    kubelet = Kubelet(sockets)
    async with kubelet.running(), plugin(sockets):
        endpoint, resource = await kubelet.registered.get()
        assert resource == "nvidia.com/gpu"
        channel = Channel(path=str(sockets / endpoint), codec=Bytes())
        listing: UnaryStreamMethod[bytes, bytes] = UnaryStreamMethod(channel, f"{SERVICE}/ListAndWatch", bytes, bytes)
        async with listing.open() as stream:
            await stream.send_message(b"", end=True)
            offered = messages.identities(await stream.recv_message() or b"")
            await stream.cancel()
        assert offered == [gpu_identity("node-1", 0), gpu_identity("node-1", 1)]
        allocate: UnaryUnaryMethod[bytes, bytes] = UnaryUnaryMethod(channel, f"{SERVICE}/Allocate", bytes, bytes)
        answer = messages.environments(await allocate(messages.allocate_request([offered, offered[:1]])))
        channel.close()
    assert [each[labels.ENV_FAKE_GPUS] for each in answer] == [",".join(offered), offered[0]]
    assert [each["NVIDIA_VISIBLE_DEVICES"] for each in answer] == [",".join(offered), offered[0]]


async def test_kubelet_that_starts_again_hears_of_the_gpus_again(sockets: Path) -> None:
    """A kubelet that starts forgets its plugins and removes their sockets: ours comes back by itself."""
    kubelet = Kubelet(sockets)
    async with plugin(sockets):
        async with kubelet.running():
            first = await kubelet.registered.get()
        async with kubelet.running():
            assert await kubelet.registered.get() == first
            assert (sockets / first[0]).exists()


def test_gpus_keep_their_names() -> None:
    """A GPU has the same UUID after every start, and nodes share none."""
    assert gpu_identity("a", 0) == gpu_identity("a", 0)
    assert len({gpu_identity(node, index) for node in "abc" for index in range(8)}) == 24


@pytest.mark.parametrize("message", [b"\x0a", b"\x0a\x05ab", b"\x0d\x00\x00\x00\x00", b"\xff"])
def test_broken_messages_are_refused(message: bytes) -> None:
    """What is no message of the kubelet is told, not read as something else."""
    with pytest.raises(messages.Malformed):
        messages.wanted_devices(message)


def test_manifest() -> None:
    """The DaemonSet has no rights, and nothing but the folder of sockets of the node."""
    printed = CliRunner().invoke(fake_gpus, ["manifest", "--count", "4", "--image", "registry.example/spinney:1"])
    made = yaml.safe_load(printed.output)
    pod = made["spec"]["template"]["spec"]
    assert (made["kind"], pod["automountServiceAccountToken"]) == ("DaemonSet", False)
    assert [each["hostPath"]["path"] for each in pod["volumes"]] == ["/var/lib/kubelet/device-plugins"]
    assert (pod["containers"][0]["image"], pod["containers"][0]["args"][2]) == (
        "registry.example/spinney:1",
        "--count=4",
    )

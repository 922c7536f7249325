"""A port of the machine's loopback interface that leads into the cluster's network."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from pathlib import Path

from spinney.testing.cluster.namespaces import enter_network
from spinney.testing.schedulers.confined import copy


class Forwarding:
    """Listens on loopback; a thread inside the cluster's network connects each caller to one address there."""

    def __init__(self, pid: int, target: tuple[str, int]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._target = target
        # Opened here: the process may be gone when the thread looks.
        self._network = Path(f"/proc/{pid}/ns/net").open()  # noqa: SIM115 - closed by stop
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="forwarding", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection through it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._listening.close()
        self._network.close()

    def _run(self) -> None:
        enter_network(self._network.fileno())
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._listening))
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        # Cancelled when the cluster stops, which is no error of the connection.
        with suppress(asyncio.CancelledError):
            await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))

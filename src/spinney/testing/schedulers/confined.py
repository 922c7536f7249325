"""Runs a program in a network of its own, in which one port of the loopback interface leads to ours.

For programs that listen on all addresses: `python -m spinney.testing.schedulers.confined PORT PROGRAM ARGUMENT…`.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from contextlib import suppress

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_SET_FLAGS, _UP = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_CHUNK = 1 << 18


def main(arguments: list[str]) -> int:
    """Start the program and pass connections on until it ends; its exit code is ours."""
    port, command = int(arguments[0]), arguments[1:]
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        _become(command, port, theirs)
    theirs.close()
    _, handles, _, _ = socket.recv_fds(ours, 1, 1)
    if not handles:
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    return asyncio.run(_relay(socket.socket(fileno=handles[0]), port, child))


def _become(command: list[str], port: int, parent: socket.socket) -> None:
    """Turn this process into the program; a socket stays in the network in which it was made, whoever holds it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    # Who is not root may make a network only inside of a user namespace.
    if libc.unshare(_NEW_NET if os.geteuid() == 0 else _NEW_NET | _NEW_USER) != 0:
        sys.exit(f"no network of its own for {command[0]}: {os.strerror(ctypes.get_errno())}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    listener = socket.create_server(("127.0.0.1", port))
    socket.send_fds(parent, [b"l"], [listener.fileno()])
    listener.close()
    os.execv(command[0], command)


async def _relay(listener: socket.socket, port: int, child: int) -> int:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    server = await asyncio.start_server(connected, sock=listener)
    async with server:
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what one side of a connection sends, until it closes."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


if __name__ == "__main__":
    # The relay is not waited for: what still runs in it has no one to talk to.
    os._exit(main(sys.argv[1:]))

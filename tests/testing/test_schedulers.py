"""Other projects' schedulers: where builds lie, what is said where one cannot be built, and their own network."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from spinney.testing import gomodules
from spinney.testing.golang import Unavailable
from spinney.testing.schedulers import build, kai
from spinney.testing.schedulers.homes import home, lacking
from spinney.testing.schedulers.sources import SOURCES


def test_folder(cache: Path) -> None:
    """Each lies by its version in the user's cache folder."""
    assert build.folder("volcano") == cache / "schedulers" / "volcano" / SOURCES["volcano"].version
    assert not build.built("volcano")


def test_no_op(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is built is not built again."""
    monkeypatch.setattr(gomodules, "find_go", lambda: pytest.fail("Go is not needed"))
    for name, source in SOURCES.items():
        build.folder(name).mkdir(parents=True)
        for program in source.programs:
            (build.folder(name) / program).touch()
    assert build.main([]) == 0
    assert capsys.readouterr().out.split() == [str(build.folder(name)) for name in SOURCES]


def test_unknown_scheduler(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is none is one clear line that lists those that are."""
    assert build.main(["slurm"]) == 1
    assert "scheduler 'slurm' is not one of volcano, koordinator, yunikorn" in capsys.readouterr().err


def test_failed_build_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A build that fails says why, and leaves no folder that looks like a build."""
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\n[ $1 = env ] && exit 0\necho no such module >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr(gomodules, "find_go", lambda: str(go))
    with pytest.raises(Unavailable, match="no such module"):
        build.ensure("yunikorn")
    assert not build.folder("yunikorn").exists()


def test_kai_comes_from_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, or with one that is not built, one clear line says what to do."""
    monkeypatch.delenv("SPINNEY_KAI", raising=False)
    assert "set SPINNEY_KAI to a checkout" in lacking("kai")
    monkeypatch.setenv("SPINNEY_KAI", str(tmp_path))
    assert "has no bin/scheduler-" in lacking("kai")
    kai.crds(tmp_path).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name in kai.PROGRAMS:
        kai.program(tmp_path, name).touch()
    assert lacking("kai") == ""
    assert home("kai").programs["binder"] == kai.program(tmp_path, "binder")


LISTENING = """
import socket, sys
port, everywhere = int(sys.argv[1]), socket.create_server(("0.0.0.0", int(sys.argv[2])))
with socket.create_connection(("127.0.0.1", port)) as ours:
    ours.sendall(b"from inside")
    sys.exit(0 if ours.recv(16) == b"from outside" else 1)
"""


async def test_a_confined_program_reaches_one_port_of_ours_and_nobody_reaches_it() -> None:
    """What it listens on is in its own network; its port of the loopback interface leads to ours."""
    taken: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.set_result(await reader.read(16))
        writer.write(b"from outside")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    port, taken_port = (str(each.sockets[0].getsockname()[1]) for each in (server, other))
    async with server, other:
        # It listens on a port that is taken here: only in a network of its own can it do so.
        program = [sys.executable, "-c", LISTENING, port, taken_port]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "spinney.testing.schedulers.confined", port, *program
        )
        assert await taken == b"from inside"
        assert await process.wait() == 0

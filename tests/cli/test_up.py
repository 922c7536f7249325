"""`spinney up`, run as a user runs it."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spinney.api.core import Namespace, Node
from spinney.api.kai import Queue
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server


@contextmanager
def up(kubeconfig: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `spinney up` and the line it printed when it was ready."""
    command = [sys.executable, "-m", "spinney.cli", "up", "--port", "0", "--kubeconfig", str(kubeconfig), *arguments]
    log = kubeconfig.with_name("log")
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield process, line or log.read_text()
        finally:
            process.kill()


async def names(kubeconfig: Path, kind: type[Node | Namespace | Queue]) -> set[str]:
    """What the API serves over HTTPS to whoever holds the kubeconfig."""
    client = connect(find_server(str(kubeconfig), ""))
    try:
        return {item.name for item in (await client.list(kind)).items}
    finally:
        await client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_up_says_ready_serves_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """One line that begins with `ready` names the kubeconfig; SIGTERM and Ctrl-C end it with 0."""
    kubeconfig = tmp_path / "kubeconfig"
    with up(kubeconfig, "--nodes", "4", "--racks", "2") as (process, line):
        assert line.startswith("ready")
        assert f"KUBECONFIG={kubeconfig}" in line
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        assert await names(kubeconfig, Node) == {"node-00", "node-01", "node-02", "node-03"}
        assert {"default-parent-queue", "default-queue"} <= await names(kubeconfig, Queue)
        assert {"kai-resource-reservation", "kai-scale-adjust"} <= await names(kubeconfig, Namespace)

        process.send_signal(number)

        assert process.wait(timeout=120) == 0


async def test_bare_has_only_the_cluster(tmp_path: Path) -> None:
    """No kinds of ours, no namespaces of ours, but nodes."""
    kubeconfig = tmp_path / "kubeconfig"
    with up(kubeconfig, "--bare", "--nodes", "2") as (_, line):
        assert line.startswith("ready")
        assert len(await names(kubeconfig, Node)) == 2
        assert "kai-scale-adjust" not in await names(kubeconfig, Namespace)


def test_a_watch_ends_when_the_server_does(tmp_path: Path) -> None:
    """`spinney ls -w` went on to show what was."""
    kubeconfig = tmp_path / "kubeconfig"
    with up(kubeconfig, "--bare", "--nodes", "1") as (process, _):
        command = [sys.executable, "-m", "spinney.cli", "ls", "-w", "-A", "--kubeconfig", str(kubeconfig)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as watching:
            try:
                assert watching.stderr is not None
                assert watching.stderr.readline() == "no workloads in any namespace\n"
                process.kill()
                assert "not reachable" in watching.stderr.read()
                assert watching.wait() == 1
            finally:
                watching.kill()


def test_an_impossible_profile_is_one_clear_line(tmp_path: Path) -> None:
    """The option, what was found and what is allowed; no stack trace."""
    with up(tmp_path / "kubeconfig", "--racks", "0") as (process, line):
        assert "Invalid value for '--racks': 0 is not in the range x>=1." in line
        assert process.wait(timeout=120) == 2

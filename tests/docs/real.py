"""A real API server with Spinney's components beside it, each page with the nodes that its `spinney up` asks for."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spinney.sim.installation import install_base
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import free_ports
from tests.docs.commands import Page
from tests.docs.shell import PATIENCE, starts_cluster
from tests.worlds import kubectl

_COMPONENTS = (
    *("grove", "backends", "scheduler", "binder", "podgrouper", "podgroup-controller", "queue-controller"),
    "--no-leader-election",
    *("--namespace", "spinney-system"),
)
# What the nodes of `spinney up` are given; its other options are those of the whole cluster.
_NODE_OPTION = re.compile(r"--(?:nodes|gpus|racks|blocks|zones) \d+")


class RealCluster:
    """The control plane, and the program that gives it nodes for one page."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.kubeconfig = plane.kubeconfig("admin")
        self._folder = folder

    @contextmanager
    def nodes_of(self, page: Page) -> Iterator[None]:
        """Run the nodes of a page, and take them away afterwards."""
        up = next(command.text for command in page.commands if starts_cluster(command.text))
        options = " ".join(_NODE_OPTION.findall(up)).split()
        with _program(self._folder / "nodes.log", "registered", "nodes", *options, "--kubeconfig", self.kubeconfig):
            yield
        _kubectl(self.kubeconfig, "delete", "nodes", "--all")


@contextmanager
def real_cluster(plane: ControlPlane, folder: Path) -> Iterator[RealCluster]:
    """Install everything on a control plane, and run the components as `spinney run` does."""
    asyncio.run(_install(plane))
    webhooks, health = free_ports(2)
    listening = ("--webhook-url", f"https://127.0.0.1:{webhooks}", "--health-listen", f"127.0.0.1:{health}")
    arguments = (*_COMPONENTS, *listening, "--kubeconfig", plane.kubeconfig("admin"))
    with _program(folder / "components.log", "", "run", *arguments):
        _wait_ready(f"http://127.0.0.1:{health}/readyz")
        yield RealCluster(plane, folder)


def _wait_ready(url: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"{url}: the components are not ready")


async def _install(plane: ControlPlane) -> None:
    client = plane.client()
    try:
        await install_base(client)
    finally:
        await client.close()


@contextmanager
def _program(log: Path, ready: str, *arguments: str | Path) -> Iterator[None]:
    """Run `spinney` in the background, from the moment when it prints a word that says it is ready."""
    command = [sys.executable, "-m", "spinney.cli", *map(str, arguments)]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            if ready:
                assert any(ready in line for line in process.stdout), log.read_text()
            yield
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _kubectl(kubeconfig: Path, *arguments: str) -> None:
    subprocess.run([kubectl(), "--kubeconfig", str(kubeconfig), *arguments], check=True, capture_output=True)

"""How soon a component is ready after its container starts: each one in the image, locked down as on a cluster.

`spinney up --bare` serves the API. A container has a read-only root and another user, and the machine's
network. The time runs from the call of runc to the first 200 of /readyz; JSON holds it
and the component's CPU time.
It needs root, runc and `make image`; `--processes` takes the programs of this environment instead of containers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from _machine import cpu_seconds

from spinney.api.image import default_image
from spinney.app.installation import install_crds
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.testing.images import buildah

COMPONENTS = (
    *("grove", "backends", "platform", "dashboard", "scheduler", "binder", "admission", "podgrouper"),
    *("podgroup-controller", "queue-controller", "node-scale-adjuster"),
)
# Without an election, ready means that the component works.
OPTIONS = ("--namespace=default", "--no-leader-election", "--kubeconfig=/run/spinney/kubeconfig")
USER = 65532
LONGEST = 60.0


def bundle(root: Path, folder: Path, shared: Path, arguments: list[str]) -> None:
    """What runc needs to start a container: not root, read-only, without capabilities, on the machine's network."""
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "mode=1777"]},
        {"destination": "/run/spinney", "type": "bind", "source": str(shared), "options": ["bind", "ro"]},
    ]
    environment = ["PATH=/opt/spinney/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", "TMPDIR=/dev/shm"]
    config = {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": USER, "gid": USER},
            "args": arguments,
            "env": environment,
            "cwd": "/",
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }
    (folder / "config.json").write_text(json.dumps(config))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_ready(port: int, started: float) -> float:
    """Seconds until /readyz says that the component is ready."""
    while time.monotonic() - started < LONGEST:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
            return time.monotonic() - started
        time.sleep(0.005)
    raise TimeoutError(f"not ready after {LONGEST:.0f} s")


def in_container(component: str, root: Path, shared: Path) -> tuple[float, float]:
    """Seconds until ready and CPU seconds of a component in a container."""
    port, name = free_port(), f"spinney-start-{component}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        options = ["run", component, *OPTIONS, f"--health-listen=127.0.0.1:{port}"]
        bundle(root, folder, shared, ["/opt/spinney/bin/spinney", *options])
        command = ["runc", "--root", str(folder / "state"), "run", "--bundle", place, "--pid-file", f"{place}/pid"]
        started = time.monotonic()
        with subprocess.Popen([*command, name], stderr=subprocess.DEVNULL) as process:
            try:
                waited = until_ready(port, started)
                pid = int((folder / "pid").read_text())
                return waited, cpu_seconds([pid])
            finally:
                subprocess.run(["runc", "--root", str(folder / "state"), "kill", name, "KILL"], check=False)
                process.wait()


def as_process(component: str, shared: Path) -> tuple[float, float]:
    """Seconds until ready and CPU seconds of a component from this environment."""
    port = free_port()
    options = [*OPTIONS[:-1], f"--kubeconfig={shared / 'kubeconfig'}", f"--health-listen=127.0.0.1:{port}"]
    started = time.monotonic()
    command = [sys.executable, "-m", "spinney.cli", "run", component, *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            return until_ready(port, started), cpu_seconds([process.pid])
        finally:
            process.kill()


@contextmanager
def api_server(folder: Path) -> Iterator[None]:
    """A Kubernetes API with our kinds, in a process of its own."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "spinney.cli", "up", "--bare", "--nodes=2", "--port=0"]
    with subprocess.Popen([*command, f"--kubeconfig={kubeconfig}"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            while not kubeconfig.exists() and process.stdout.readline():
                pass
            asyncio.run(install_kinds(kubeconfig))
            kubeconfig.chmod(0o644)
            yield
        finally:
            process.terminate()


async def install_kinds(kubeconfig: Path) -> None:
    """Create our CustomResourceDefinitions."""
    client = connect(find_server(str(kubeconfig)))
    try:
        await install_crds(client)
    finally:
        await client.close()


def measured(components: list[str], times: int, root: Path | None) -> dict[str, Any]:
    """The quickest of several starts of each component."""
    results = {}
    with tempfile.TemporaryDirectory() as place:
        shared = Path(place)
        shared.chmod(0o755)
        with api_server(shared):
            for component in components:
                starts = [
                    in_container(component, root, shared) if root is not None else as_process(component, shared)
                    for _ in range(times)
                ]
                waited, worked = min(each[0] for each in starts), min(each[1] for each in starts)
                results[component] = {"readySeconds": round(waited, 3), "cpuSeconds": round(worked, 2)}
                print(f"{component:24}{waited:6.2f} s ready {worked:6.2f} s CPU", file=sys.stderr)
    return results


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("components", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--times", type=int, default=3, help="starts of each component; the quickest counts")
    parser.add_argument("--processes", action="store_true", help="start processes instead of containers")
    options = parser.parse_args()
    if options.processes:
        results = measured(options.components, options.times, None)
    else:
        with buildah.mounted(default_image()) as root:
            results = measured(options.components, options.times, root)
    print(json.dumps({"image": not options.processes, "times": options.times, "components": results}, indent=2))


if __name__ == "__main__":
    main()

"""`python -m spinney.testing.cluster`: a real cluster on this machine, until Ctrl-C or `--down`."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from spinney.testing.cluster import fake_gpus, prepared
from spinney.testing.cluster.cluster import PID, RealCluster, clean, folder_of
from spinney.testing.golang import Unavailable

_DOWN_SECONDS = 300.0
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Parse, start or stop; what cannot be is one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="make cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=2, help="how many nodes (default: 2)")
    parser.add_argument("--kubeconfig", type=Path, default=Path("cluster.kubeconfig"), help="where to write it")
    parser.add_argument("--gpus", type=int, default=8, help="fake GPUs of each node (default: 8)")
    parser.add_argument("--name", default="local", help="for several clusters at once (default: local)")
    parser.add_argument("--build", action="store_true", help="only build what a cluster needs")
    parser.add_argument("--down", action="store_true", help="stop the cluster that runs")
    options = parser.parse_args(arguments)
    try:
        if options.down:
            return _down(options.name)
        if options.build:
            prepared.prepare(_say)
            return 0
        return _up(options.name, options.nodes, options.kubeconfig, options.gpus)
    except Unavailable as error:
        print(f"no cluster: {error}", file=sys.stderr)
        return 1


def _up(name: str, nodes: int, kubeconfig: Path, gpus: int) -> int:
    if nodes < 1 or nodes > 200:
        raise Unavailable("--nodes is between 1 and 200")
    if (running := _running(name)) is not None:
        raise Unavailable(
            f"one runs already (process {running}): `make cluster ARGS=--down` stops it, --name starts another"
        )
    for number in _STOPPING:
        signal.signal(number, _interrupt_once)
    try:
        archives = prepared.prepare(_say)
        started = time.monotonic()
        with RealCluster(name, nodes, _say) as cluster:
            _say("images onto the nodes")
            prepared.load(cluster, archives)
            cluster.wait_until_ready()
            if gpus:
                _say("fake GPUs")
                fake_gpus.offer(cluster, gpus)
            shutil.copy(cluster.kubeconfig, kubeconfig)
            print(
                f"ready after {time.monotonic() - started:.0f} s: export KUBECONFIG={kubeconfig.resolve()}", flush=True
            )
            signal.pause()
    except KeyboardInterrupt:
        _say("stopped")
    return 0


def _interrupt_once(*_: object) -> None:
    """Begin to stop; a second Ctrl-C must not leave half of the cluster behind."""
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _down(name: str) -> int:
    running = _running(name)
    if running is None:
        clean(name)
        print("no cluster runs")
        return 0
    os.kill(running, signal.SIGTERM)
    end = time.monotonic() + _DOWN_SECONDS
    while _running(name) is not None:
        if time.monotonic() > end:
            raise Unavailable(f"process {running} has not stopped the cluster within {_DOWN_SECONDS:.0f} s")
        time.sleep(0.1)
    print("stopped")
    return 0


def _running(name: str) -> int | None:
    """The process that holds the cluster, if it lives."""
    try:
        pid = int((folder_of(name) / PID).read_text())
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except (OSError, ValueError):
        return None
    return pid if "spinney.testing.cluster" in command else None


def _say(text: str) -> None:
    print(f"cluster: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

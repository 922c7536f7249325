"""The real control plane as tests use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spinney.kube.errors import Forbidden
from spinney.testing.controlplane import ControlPlane
from spinney.testing.process import Program, free_ports
from tests.worlds import Cluster, Real

PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}


async def test_granted_user(cluster: Cluster) -> None:
    """A user can be given exactly some rights."""
    client = await cluster.granted("reader-of-pods", PODS)
    assert (await client.call("GET", "/api/v1/pods")).status == 200
    with pytest.raises(Forbidden):
        await client.call("GET", "/api/v1/nodes")


async def test_granted_account(cluster: Cluster) -> None:
    """A service account can be given exactly some rights."""
    namespace = await cluster.namespace()
    client = await cluster.granted(f"system:serviceaccount:{namespace}:default", PODS)
    assert (await client.call("GET", "/api/v1/pods")).status == 200


async def test_gang_api_is_served(control_plane: ControlPlane) -> None:
    """The version under test serves Workloads."""
    client = control_plane.client()
    body = json.loads((await client.call("GET", "/apis/scheduling.k8s.io/v1alpha1")).body)
    await client.close()
    assert "workloads" in [each["name"] for each in body["resources"]]


async def test_scheduler_on_demand(control_plane: ControlPlane) -> None:
    """kube-scheduler starts when it is asked for, once, and stops when told."""
    control_plane.start_scheduler()
    control_plane.start_scheduler()
    assert control_plane.is_running("kube-scheduler")
    control_plane.stop("kube-scheduler")
    assert not control_plane.is_running("kube-scheduler")


async def test_kubeconfig_is_private(control_plane: ControlPlane) -> None:
    """A kubeconfig is readable by its owner only."""
    path = await Real(control_plane).kubeconfig()
    assert path.stat().st_mode & 0o777 == 0o600


def test_free_ports() -> None:
    """Free ports are different ones, and none that a connection of somebody else could get meanwhile."""
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert max(ports) < 32768


def test_stop(tmp_path: Path) -> None:
    """A program is stopped, also when it does not listen to the polite way."""
    stubborn = Program(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"], tmp_path / "log")
    assert stubborn.running
    stubborn.stop()
    assert not stubborn.running


def test_tail(tmp_path: Path) -> None:
    """The end of a program's log is at hand for an error message."""
    program = Program(["/bin/sh", "-c", "echo one; echo two"], tmp_path / "log")
    _until(lambda: not program.running)
    assert program.tail(1) == "two"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_children_die_with_a_killed_run(tmp_path: Path) -> None:
    """A test run that is killed leaves no program behind."""
    script = (
        "import sys, time, pathlib\n"
        "from spinney.testing.process import Program\n"
        "program = Program(['/bin/sleep', '1000'], pathlib.Path(sys.argv[1]))\n"
        "print(program.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    child = int(run.stdout.readline())
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    _until(lambda: _gone(child))


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A zombie that nobody has reaped yet is gone as well.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

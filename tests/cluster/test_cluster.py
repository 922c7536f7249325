"""The real cluster itself: nodes, network, names, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from spinney.testing.cluster import cgroups, sysctls
from spinney.testing.cluster.cluster import RealCluster, clean, folder_of
from spinney.testing.images import pause
from tests.cluster.pods import pod_until, python_pod
from tests.cluster.waiting import until
from tests.make import Builder
from tests.worlds import run

SERVE = "import http.server as h; h.HTTPServer(('', 8080), h.SimpleHTTPRequestHandler).serve_forever()"
ASK = """
import urllib.request
for name in ("server.servers", "servers", "stable"):
    print(name, urllib.request.urlopen(f"http://{name}:8080/", timeout=20).status)
"""


def test_nodes_are_ready(real_cluster: RealCluster) -> None:
    """Every kubelet has registered its node, which is ready."""
    assert real_cluster.ready_nodes() == ["node-1", "node-2"]


async def test_names_and_addresses_across_nodes(real_cluster: RealCluster) -> None:
    """A pod reaches one on the other node by its own name, a headless Service and a stable address."""
    place = "names"
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    server = python_pod("server", place, SERVE, readinessProbe=ready)
    server["metadata"]["labels"] = {"app": "server"}
    server["spec"] |= {"nodeName": "node-1", "hostname": "server", "subdomain": "servers"}
    ports = [{"port": 8080}]
    real_cluster.apply(
        Builder("v1", "Namespace", place).build(),
        Builder("v1", "Service", "servers", place)
        .spec(clusterIP="None", selector={"app": "server"}, ports=ports)
        .build(),
        Builder("v1", "Service", "stable", place).spec(selector={"app": "server"}, ports=ports).build(),
        server,
    )
    real_cluster.kubectl("wait", "pod/server", "-n", place, "--for=condition=Ready", "--timeout=600s")
    client = python_pod("client", place, ASK)
    client["spec"]["nodeName"] = "node-2"
    real_cluster.apply(client)
    await pod_until(real_cluster, place, "client", "Succeeded")
    said = real_cluster.kubectl("logs", "client", "-n", place)
    assert said.split() == ["server.servers", "200", "servers", "200", "stable", "200"]


async def test_killed_cluster_leaves_no_process() -> None:
    """When the process that holds a cluster is killed, all of its processes end; the rest can be removed."""
    name = f"killed-{os.getpid()}"
    program = (
        "from spinney.testing.cluster.cluster import RealCluster\n"
        f"with RealCluster({name!r}, nodes=1) as cluster:\n"
        "    print(cluster.nodes[0].namespaces.pid, flush=True)\n"
        "    input()\n"
    )
    pipe = asyncio.subprocess.PIPE
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=pipe, stdout=pipe)
    assert holder.stdout is not None
    network = _network(int(await holder.stdout.readline()))
    holder.kill()
    await holder.wait()
    await until(lambda: not _processes_in([network]))
    clean(name)
    _assert_gone(name, [network])


async def test_command_starts_and_stops_a_cluster(real_cluster: RealCluster, tmp_path: Path) -> None:
    """The command says when the cluster is ready, its kubeconfig works, and another call leaves nothing of it."""
    name, kubeconfig = f"command-{os.getpid()}", tmp_path / "kubeconfig"
    mounts, settings = _mounts(), sysctls.read()
    command = (sys.executable, "-m", "spinney.testing.cluster", "--name", name)
    options = ("--nodes", "1", "--gpus", "0", "--kubeconfig", str(kubeconfig))
    started = await asyncio.create_subprocess_exec(*command, *options, stdout=asyncio.subprocess.PIPE)
    assert started.stdout is not None
    assert (await started.stdout.readline()).startswith(b"ready")
    kubectl = (str(real_cluster.plane.binaries / "kubectl"), f"--kubeconfig={kubeconfig}")
    said = await run(*kubectl, "get", "nodes", "--no-headers")
    assert said.out.split()[:2] == ["node-1", "Ready"]
    await run(*kubectl, "run", "waits", f"--image={pause.NAME}")
    await run(*kubectl, "wait", "pod/waits", "--for=condition=Ready", "--timeout=600s")
    networks = _networks_of(name)
    assert networks
    stopping = await asyncio.create_subprocess_exec(*command, "--down")
    assert (await stopping.wait(), await started.wait()) == (0, 0)
    _assert_gone(name, networks)
    assert (_mounts(), sysctls.read()) == (mounts, settings)


def _assert_gone(name: str, networks: Iterable[str]) -> None:
    assert _processes_in(networks) == []
    assert cgroups.left(name) == []
    assert not folder_of(name).exists()


def _networks_of(cluster: str) -> set[str]:
    """The networks of the programs whose arguments name the cluster's folder, without the machine's own."""
    networks = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended while we looked
            if str(folder_of(cluster)).encode() in (process / "cmdline").read_bytes():
                networks.add(_network(int(process.name)))
    return networks - {_network(os.getpid())}


def _network(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def _processes_in(networks: Iterable[str]) -> list[str]:
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "ns/net") in networks:
                processes.append(process.name)
        except OSError:
            continue  # ended while we looked
    return processes


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()

"""A real cluster on one machine, started and stopped as a whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from spinney.api.meta import Json
from spinney.kube.client.client import Client
from spinney.testing import build
from spinney.testing.cluster import auditing, cgroups, containerd, dns, programs, requirements, sysctls
from spinney.testing.cluster.forwarding import Forwarding
from spinney.testing.cluster.kubelet import Identity
from spinney.testing.cluster.namespaces import Namespaces, inside_network
from spinney.testing.cluster.network import connect, node_address, pod_range
from spinney.testing.cluster.node import Credentials, Node
from spinney.testing.controlplane import ControlPlane, Extension
from spinney.testing.golang import Unavailable, cache_folder

# The file with the process that holds the cluster.
PID = "pid"
_READY_SECONDS = 600.0
# What the vendor's tools find out on a real node.
_LABELS = "nvidia.com/gpu.memory=81920,nvidia.com/gpu.product=Fake-GPU"
_KUBELET_CLIENT = ("kube-apiserver-kubelet-client", ("system:masters",))
Progress = Callable[[str], None]


def folder_of(name: str) -> Path:
    """Where a cluster keeps its files while it runs."""
    return cache_folder() / "clusters" / name


class CommandFailed(Exception):
    """A command against the cluster has failed; the message is what it said."""


class RealCluster:
    """Control plane, kubelets, containers, network and DNS; `with` starts it, and leaves nothing behind."""

    def __init__(
        self, name: str, nodes: int = 2, progress: Progress = lambda _: None, plane_folder: Path | None = None
    ) -> None:
        requirements.check()
        self.name = name
        self.folder = folder_of(name)
        # Where the control plane keeps its files, its store among them.
        self._plane_folder = plane_folder or self.folder / "plane"
        self.nodes: list[Node] = []
        self._count = nodes
        self._progress = progress
        self._stack = ExitStack()
        self._binaries = programs.node_programs()
        self._coredns = programs.coredns()

    def __enter__(self) -> RealCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; its server is on the machine's loopback interface."""
        return self.plane.kubeconfig()

    @property
    def audit_log(self) -> Path:
        """What was asked of the API server, by whom: one JSON document a line."""
        return self.folder / auditing.LOG

    def start(self) -> None:
        """Start everything, and wait until all nodes are ready."""
        clean(self.name)
        self.folder.mkdir(parents=True)
        (self.folder / PID).write_text(str(os.getpid()))
        before = sysctls.read()
        (self.folder / "sysctls.json").write_text(json.dumps(before))
        self._stack.callback(clean, self.name)
        self._progress("nodes and their network")
        self._make_nodes()
        self._progress("control plane")
        self._start_control_plane()
        self._progress("kubelets")
        for node in self.nodes:
            node.start_runtime(pod_range(self.nodes.index(node)))
            node.join(self._credentials(node))
        self._start_dns()

    def stop(self) -> None:
        """Stop everything, and remove what is left on the machine."""
        self._stack.close()

    def revive(self, program: str) -> None:
        """Start a program of the control plane again that has ended, on what it left behind."""
        self.plane.revive(program, inside_network(self.nodes[0].namespaces.pid))

    def load(self, archive: Path) -> None:
        """Give every node the images of an archive."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda node: containerd.import_image(node.namespaces, archive), self.nodes))

    def name_image(self, image: str, *names: str) -> None:
        """Give an image more names on every node, so that nothing needs to be pulled under them."""
        for node in self.nodes:
            for name in names:
                containerd.name_image(node.namespaces, image, name)

    def wait_until_ready(self) -> None:
        """Wait until every node says that it is ready."""
        end = time.monotonic() + _READY_SECONDS
        while len(self.ready_nodes()) < len(self.nodes):
            problems = [problem for node in self.nodes if (problem := node.problem())]
            if problems or time.monotonic() > end:
                raise Unavailable("\n".join(problems) or f"ready are only {self.ready_nodes()}")
            time.sleep(0.2)

    def ready_nodes(self) -> list[str]:
        """The names of the nodes that are ready."""
        listed = json.loads(self.kubectl("get", "nodes", "--output=json"))["items"]
        return [node["metadata"]["name"] for node in listed if _is_ready(node)]

    def client(self) -> Client:
        """A client that acts as the administrator."""
        return self.plane.client()

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as the administrator; raises with what it says where it fails."""
        return self._run(self.plane.binaries / "kubectl", *arguments, stdin=stdin)

    def helm(self, *arguments: str) -> str:
        """Run helm as the administrator."""
        return self._run(programs.helm(), *arguments)

    def apply(self, *documents: Json) -> None:
        """Apply objects on the server's side."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        self.kubectl("apply", "--server-side", "--filename=-", stdin=listed)

    def _make_nodes(self) -> None:
        for index in range(self._count):
            name = f"node-{index + 1}"
            namespaces = Namespaces(self.folder / name)
            self._stack.callback(namespaces.stop)
            group = cgroups.node_group(self.name, name)
            identity = Identity(name, node_address(index), group, self._plane_folder / "pki" / "ca.crt")
            self.nodes.append(Node(namespaces, identity, self._binaries, _LABELS))
        connect([node.namespaces for node in self.nodes])

    def _start_control_plane(self) -> None:
        pid = self.nodes[0].namespaces.pid
        self.plane = ControlPlane(self._plane_folder, build.KUBERNETES, self._extension())
        self.plane.authority.user(*_KUBELET_CLIENT)
        self._stack.callback(self.plane.kill)
        with inside_network(pid):
            self.plane.start()
            port = int(self.plane.url.rpartition(":")[2])
            self._inner_url = f"https://{node_address(0)}:{port}"
            self.plane.start_controllers()
            self.plane.start_scheduler()
        forwarding = Forwarding(pid, ("127.0.0.1", port))
        self._stack.callback(forwarding.stop)
        self.plane.url = f"https://127.0.0.1:{forwarding.port}"

    def _extension(self) -> Extension:
        address = node_address(0)
        pki = self._plane_folder / "pki"
        client = pki / "user-kube-apiserver-kubelet-client-system_masters"
        api_server = (
            # Inside the cluster's own network: nothing of the machine's is listened on.
            "--bind-address=0.0.0.0",
            f"--advertise-address={address}",
            "--endpoint-reconciler-type=lease",
            "--allow-privileged=true",
            "--enable-admission-plugins=NodeRestriction",
            f"--kubelet-client-certificate={client}.crt",
            f"--kubelet-client-key={client}.key",
            "--kubelet-preferred-address-types=InternalIP",
            *auditing.flags(self.folder),
        )
        return Extension(address, {"kube-apiserver": api_server})

    def _credentials(self, node: Node) -> Credentials:
        kubelet = self.plane.kubeconfig(f"system:node:{node.name}", ("system:nodes",), self._inner_url)
        return Credentials(kubelet, self.plane.kubeconfig("system:kube-proxy", (), self._inner_url))

    def _start_dns(self) -> None:
        kubeconfig = self.plane.kubeconfig(dns.USER, (), self._inner_url)
        self.apply(*dns.objects(node_address(0)))
        dns.start(self.nodes[0].namespaces, self._coredns, node_address(0), kubeconfig)

    def _run(self, program: Path, *arguments: str, stdin: str = "") -> str:
        command = [str(program), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise CommandFailed(f"{program.name} {' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout


def clean(name: str) -> None:
    """Remove what a cluster that no longer runs has left: control groups, kernel settings, files."""
    folder = folder_of(name)
    cgroups.remove(name)
    kept = folder / "sysctls.json"
    if kept.exists():
        sysctls.restore(json.loads(kept.read_text()))
    shutil.rmtree(folder, ignore_errors=True)


def _is_ready(node: Json) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

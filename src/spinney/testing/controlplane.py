"""Runs the real control plane on loopback: etcd and kube-apiserver, the others on demand."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from spinney.api.meta import Json
from spinney.kube.client.client import Client
from spinney.testing import build
from spinney.testing.certificates import Authority
from spinney.testing.gates import gang_api, gang_gates
from spinney.testing.golang import Unavailable
from spinney.testing.plain import Plain
from spinney.testing.process import Program, free_ports

ADMIN = ("admin", ("system:masters",))
_START_SECONDS = 300.0


@dataclass(frozen=True)
class Extension:
    """What a control plane with nodes needs beyond one on loopback: an address for them, and flags by program."""

    address: str = ""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_ATTEMPTS = 3


class ControlPlane:
    """One Kubernetes control plane without nodes, in a folder of its own; `with` starts and stops it."""

    def __init__(self, folder: Path, version: str = build.KUBERNETES, extension: Extension | None = None) -> None:
        self.folder = folder
        self.version = version
        self.binaries = build.ensure(version)
        self.url = ""
        self._etcd = ""
        self._programs: dict[str, Program] = {}
        self._commands: dict[str, list[str]] = {}
        self._extension = extension or Extension()
        address = self._extension.address
        self.authority = Authority(folder / "pki", (address,) if address else ())
        self._signing_key = self.authority.signing_key()

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start etcd and the API server, and wait until it is ready."""
        for attempt in range(_ATTEMPTS):
            etcd_port, peer_port, port = free_ports(3)
            self.url, self._etcd = f"https://127.0.0.1:{port}", f"http://127.0.0.1:{etcd_port}"
            try:
                self._start_etcd(etcd_port, peer_port)
                self._start_api_server(etcd_port, port)
                return
            except Unavailable:
                # Another process may have taken a port between our look and the start.
                self.stop()
                if attempt == _ATTEMPTS - 1:
                    raise

    def start_controllers(self) -> None:
        """Start kube-controller-manager, unless it runs."""
        self._start_component(
            "kube-controller-manager",
            ("system:masters",),
            f"--root-ca-file={self.authority.certificate}",
            f"--service-account-private-key-file={self._signing_key}",
        )

    def start_scheduler(self) -> None:
        """Start kube-scheduler, which also schedules gangs, unless it runs."""
        self._start_component("kube-scheduler", None)

    def stop(self, program: str = "") -> None:
        """Stop one program, or everything, the API server before its store."""
        names = [program] if program else list(reversed(self._programs))
        for name in names:
            running = self._programs.pop(name, None)
            if running is not None:
                running.stop()

    def kill(self) -> None:
        """End everything at once: what it holds is not needed again."""
        while self._programs:
            self._programs.popitem()[1].kill()

    def pid(self, program: str) -> int:
        """The process of a program."""
        return self._programs[program].pid

    def is_running(self, name: str) -> bool:
        """Whether a program was started, and has not ended."""
        program = self._programs.get(name)
        return program is not None and program.running

    def crash(self, program: str) -> None:
        """End one program at once, as `kill -9` does; `revive` starts it again on what it left behind."""
        self._programs[program].kill()

    def revive(self, program: str, place: AbstractContextManager[None] | None = None) -> None:
        """Start a program that has ended again, as it was started before, and wait for the API server.

        A place is entered for the start, such as the network of a node.
        """
        self._programs[program].kill()
        with place or nullcontext():
            self._programs[program] = Program(self._commands[program], self.folder / f"{program}.log")
        if program == "kube-apiserver":
            self._wait(program, f"{self.url}/readyz")

    def client(self, user: str = ADMIN[0], groups: tuple[str, ...] | None = None) -> Client:
        """A client that acts as a user, by client certificate; without a name, as the administrator."""
        return Client(self.transport(user, groups))

    def transport(self, user: str = ADMIN[0], groups: tuple[str, ...] | None = None) -> Plain:
        """The bare wire of a user: no retries, no flow control."""
        return Plain(self.url, self._context(user, known_groups(user, groups)))

    def token_transport(self, token: str) -> Plain:
        """The bare wire of the user of a bearer token."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        return Plain(self.url, context, {"authorization": f"Bearer {token}"} if token else {})

    def kubeconfig(self, user: str = ADMIN[0], groups: tuple[str, ...] | None = None, url: str = "") -> Path:
        """A kubeconfig file of a user, by default the administrator's, who reaches the server by its own URL."""
        certificate, key = self.authority.user(user, known_groups(user, groups))
        path = certificate.with_suffix(".kubeconfig")
        path.write_text(yaml.safe_dump(_kubeconfig(url or self.url, self.authority.certificate, certificate, key)))
        path.chmod(0o600)
        return path

    def compact(self) -> None:
        """Make the store forget every version but the newest of each object."""
        newest = _post(f"{self._etcd}/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        _post(f"{self._etcd}/v3/kv/compaction", {"revision": newest, "physical": True})

    def _start_etcd(self, port: int, peer_port: int) -> None:
        listen, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        self._start(
            "etcd",
            f"--data-dir={self.folder / f'etcd-{port}'}",
            f"--listen-client-urls={listen}",
            f"--advertise-client-urls={listen}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _start_api_server(self, etcd_port: int, port: int) -> None:
        certificate, key = self.authority.server()
        served, gates = gang_api(self.version), gang_gates(self.version)["kube-apiserver"]
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.certificate}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._signing_key}",
            f"--service-account-signing-key-file={self._signing_key}",
            *([f"--runtime-config={served}=true"] if served else []),
            # One kind that is served from the store, so that tests can make its past forgotten.
            "--watch-cache-sizes=limitranges#0",
            *_gates(gates),
        )
        self._wait("kube-apiserver", f"{self.url}/readyz")

    def _context(self, user: str, groups: tuple[str, ...]) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(*self.authority.user(user, groups))
        return context

    def _start_component(self, name: str, groups: tuple[str, ...] | None, *flags: str) -> None:
        """Start a client of the API server with a user of its own, unless it runs."""
        if self.is_running(name):
            return
        (port,) = free_ports(1)
        kubeconfig = self.kubeconfig(f"system:{name}", groups)
        self._start(
            name,
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            *flags,
            *_gates(gang_gates(self.version)[name]),
        )
        self._wait(name, f"https://127.0.0.1:{port}/healthz")

    def _start(self, name: str, *arguments: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        # Of a flag that comes twice, the later one holds.
        command = [str(self.binaries / name), *arguments, *self._extension.flags.get(name, ())]
        self._commands[name] = command
        self._programs[name] = Program(command, self.folder / f"{name}.log")

    def _wait(self, name: str, url: str) -> None:
        context = self._context(*ADMIN)
        if not url.startswith(self.url):
            # The others serve /healthz with a certificate they make themselves.
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        program = self._programs[name]
        _until(lambda: _answers(url, context), program)


def _gates(gates: tuple[str, ...]) -> list[str]:
    return [f"--feature-gates={','.join(gates)}"] if gates else []


def known_groups(user: str, groups: tuple[str, ...] | None) -> tuple[str, ...]:
    """The groups of a user where none are named: those of the administrator and of service accounts."""
    if groups is not None:
        return groups
    if user == ADMIN[0]:
        return ADMIN[1]
    if user.startswith("system:serviceaccount:"):
        return ("system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}")
    return ()


def _kubeconfig(url: str, authority: Path, certificate: Path, key: Path) -> Json:
    def data(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": data(authority)}}],
        "users": [
            {"name": "test", "user": {"client-certificate-data": data(certificate), "client-key-data": data(key)}}
        ],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }


def _post(url: str, body: Json) -> Json:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.load(answer))


def _until(holds: Callable[[], bool], program: Program) -> None:
    end = time.monotonic() + _START_SECONDS
    while not holds():
        if not program.running:
            raise Unavailable(f"{program.name} ended:\n{program.tail()}")
        if time.monotonic() > end:
            raise Unavailable(f"{program.name} is not ready after {_START_SECONDS:.0f} s:\n{program.tail()}")
        time.sleep(0.1)


def _answers(url: str, context: ssl.SSLContext) -> bool:
    try:
        with urllib.request.urlopen(url, context=context, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False

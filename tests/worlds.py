"""The two worlds a test can run on, behind one small interface: the embedded cluster and the real control plane."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import msgspec

from spinney.api.meta import encode
from spinney.embedded import cluster as embedded_cluster
from spinney.embedded.apiserver.access.credentials import Authority, write_kubeconfig
from spinney.embedded.apiserver.calls import ANONYMOUS
from spinney.embedded.apiserver.errors import Refusal
from spinney.embedded.apiserver.http.listener import Listener
from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.client.client import Client
from spinney.kube.client.transport import InProcess, Request, Response, Transport, User
from spinney.kube.errors import AlreadyExists
from spinney.testing import build
from spinney.testing.controlplane import ControlPlane, known_groups
from tests import data
from tests.waiting import until

Groups = tuple[str, ...] | None
Json = dict[str, Any]

_CLUSTER_WIDE = (
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "rbac.authorization.k8s.io/v1/clusterrolebindings",
    "rbac.authorization.k8s.io/v1/clusterroles",
)


class World(Protocol):
    """A running cluster. The groups of `admin` and of service accounts need not be named."""

    name: str

    def transport(self, user: str = "admin", groups: Groups = None) -> Transport:
        """The bare wire of a user."""

    def token_transport(self, token: str) -> Transport:
        """The bare wire of a bearer token; of nobody where it is empty."""

    async def kubeconfig(self, user: str = "admin", groups: Groups = None) -> Path:
        """A kubeconfig for a user, with an address that it works on."""

    async def forget(self) -> None:
        """Drop the history of objects, as time would, so that old versions are gone."""


class Real:
    """The real control plane, shared by all tests of a run."""

    name = "real"

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.transport = plane.transport
        self.token_transport = plane.token_transport

    async def kubeconfig(self, user: str = "admin", groups: Groups = None) -> Path:
        """A kubeconfig for a user."""
        return self.plane.kubeconfig(user, groups)

    async def forget(self) -> None:
        """Compact the store."""
        self.plane.compact()

    async def clear(self) -> None:
        """Delete the roles, bindings and webhooks that a test left for all namespaces: the next one may meet them."""
        client = Client(self.transport())
        own = [("labelSelector", "!kubernetes.io/bootstrapping")]
        for path in _CLUSTER_WIDE:
            await client.call("DELETE", f"/apis/{path}", own)
        await client.close()


class Embedded:
    """An embedded cluster of the test's own: clients in this process call it, others come by HTTPS."""

    name = "embedded"

    def __init__(self, cluster: embedded_cluster.Cluster, authority: Authority, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self.server = cluster.server
        self._stack = stack
        self._authority = authority
        self._listener: Listener | None = None
        self._folder = Path(stack.enter_context(TemporaryDirectory()))

    def transport(self, user: str = "admin", groups: Groups = None) -> Transport:
        """Straight into the server, as a user."""
        return InProcess(self.server, User(user, (*known_groups(user, groups), "system:authenticated")))

    def token_transport(self, token: str) -> Transport:
        """Straight into the server, as whoever it says the token is."""
        return Bearer(self.server, token)

    async def kubeconfig(self, user: str = "admin", groups: Groups = None) -> Path:
        """A kubeconfig for a user, by client certificate; the server begins to listen when the first is asked for."""
        if self._listener is None:
            self._listener = Listener(self.server, self._authority)
            await self._listener.start()
            self._stack.push_async_callback(self._listener.stop)
        path = self._folder / f"{user.replace(':', '_')}.kubeconfig"
        write_kubeconfig(path, self._listener.url, self._authority, User(user, known_groups(user, groups)))
        return path

    async def forget(self) -> None:
        """Drop the window of the past."""
        for table in self.server.store.tables.values():
            table.events.clear()
            table.floor = self.server.store.version


class Bearer:
    """Straight into a server with a token, as its front door does: who it is, is found out for every request."""

    def __init__(self, server: ApiServer, token: str) -> None:
        self._server = server
        self._token = token

    async def send(self, request: Request) -> Response:
        """Hand the request over as whoever the token says."""
        try:
            user = self._server.authenticator.user_of_token(self._token) if self._token else ANONYMOUS
        except Refusal as refusal:
            return Response(refusal.code, encode(refusal.body()))
        return await self._server.handle(msgspec.structs.replace(request, user=user))

    async def close(self) -> None:
        """Nothing is held open."""


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


class Cluster:
    """One test's view of a world: clients, namespaces of its own, kubectl. Closes what it hands out."""

    def __init__(self, world: World, stack: AsyncExitStack, number: int) -> None:
        self.world = world
        self.name = world.name
        self.stack = stack
        self._number = number
        self._names = 0

    def transport(self, user: str = "admin", groups: Groups = None) -> Transport:
        """The bare wire of a user."""
        return self._closing(self.world.transport(user, groups))

    def token_transport(self, token: str) -> Transport:
        """The bare wire of a bearer token; of nobody where it is empty."""
        return self._closing(self.world.token_transport(token))

    def client(self, user: str = "admin", groups: Groups = None) -> Client:
        """A client that acts as a user; without a name, as the administrator."""
        return Client(self.transport(user, groups))

    async def granted(self, user: str, *rules: Json) -> Client:
        """A client of a user who has exactly these rights, in all namespaces, once the server grants them."""
        name = self.unique("granted")
        admin = self.client()
        kind, subject = "User", {"name": user, "apiGroup": "rbac.authorization.k8s.io"}
        if user.startswith("system:serviceaccount:"):
            _, _, namespace, account = user.split(":")
            kind, subject = "ServiceAccount", {"name": account, "namespace": namespace}
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        role = {"metadata": {"name": name}, "rules": list(rules)}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [{"kind": kind, **subject}]}
        await admin.call("POST", f"{rbac}/clusterroles", body=role)
        await admin.call("POST", f"{rbac}/clusterrolebindings", body=binding)
        await self._noticed(user, rules[-1])
        return self.client(user)

    async def _noticed(self, user: str, rule: Json) -> None:
        attributes = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": rule["resources"][0]}
        review = {"spec": {"user": user, "groups": list(known_groups(user, None)), "resourceAttributes": attributes}}
        admin = self.client()

        async def is_allowed() -> bool:
            answer = await admin.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=review)
            return bool(json.loads(answer.body)["status"]["allowed"])

        await until(is_allowed)

    def unique(self, stem: str) -> str:
        """A name that no other test of this run uses, for what is not in a namespace."""
        self._names += 1
        return f"{stem}-{self._number}-{self._names}"

    async def namespace(self) -> str:
        """A fresh namespace with its default service account."""
        name = self.unique("t")
        client = self.client()
        await client.call("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
        with suppress(AlreadyExists):
            # A controller makes this account too, in its own time; pods are refused until it is there.
            account = {"metadata": {"name": "default"}}
            await client.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", body=account)
        return name

    async def kubeconfig(self, user: str = "admin", groups: Groups = None) -> Path:
        """A kubeconfig file for a user."""
        return await self.world.kubeconfig(user, groups)

    async def forget(self) -> None:
        """Make old versions too old."""
        await self.world.forget()

    async def kubectl(self, *arguments: str, stdin: str = "", user: str = "admin") -> Ran:
        """Run kubectl against this world, to its end."""
        return await run(kubectl(), *arguments, stdin=stdin, env=await self.kubectl_environment(user))

    async def kubectl_environment(self, user: str = "admin") -> dict[str, str]:
        """What kubectl finds in its environment: this cluster, and a discovery cache of its own."""
        kubeconfig = await self.kubeconfig(user)
        cache = kubeconfig.with_name(f"kubectl-cache-{self._number}")
        return {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(cache)}

    def _closing(self, transport: Transport) -> Transport:
        self.stack.push_async_callback(transport.close)
        return transport


def kubectl() -> str:
    """The kubectl to test with: the one built with the control plane, else the one on the PATH."""
    own = build.folder() / "kubectl"
    program = str(own) if own.exists() else shutil.which("kubectl")
    if not program:
        data.unavailable("real", "no kubectl: run `make controlplane`, or put one on the PATH")
    return str(program)


async def run(*command: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
    """Run a program to its end; it is ended with the test where that comes first."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    try:
        out, err = await process.communicate(stdin.encode())
    finally:
        if process.returncode is None:
            process.kill()
    return Ran(process.returncode or 0, out.decode(), err.decode())

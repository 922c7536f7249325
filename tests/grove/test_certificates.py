"""Upstream's certificate suite: webhooks keep working while their certificates change hands."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme

from spinney.api.core import Secret
from spinney.api.crd import crds
from spinney.api.grove import PodCliqueSet
from spinney.app.serving import Supplied, WebhookOptions, serve_webhooks
from spinney.grove.component import component
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.errors import ApiError, NotFound
from spinney.kube.manifests import webhook_configurations
from spinney.testing.process import free_ports
from tests import make
from tests.backends import live
from tests.worlds import Cluster

GROUPS = ("grove.io", "scheduler.grove.io")
PATIENCE = 120


async def test_cm1_certificates_change_hands(cluster: Cluster, tmp_path: Path) -> None:
    """CM1: with certificates of ours, then with some that another keeps in files, then with ours, sets are reviewed.

    Upstream's suite has cert-manager write the files; here another authority does. What is served is what the Secret
    or the file holds, and the API server trusts it.
    """
    admin = cluster.client()
    namespace = await cluster.namespace()
    await live.install(admin, crds(GROUPS))
    theirs = in_files(tmp_path)
    async with hooked(admin) as (host, port):
        options = WebhookOptions(url=f"https://127.0.0.1:{port}")
        manual = WebhookOptions(url=options.url, supplied=theirs)
        for mode in (options, manual, options):
            serving = asyncio.create_task(serve_webhooks(host, [component()], mode, namespace))
            try:
                await reviewed(admin, namespace, serving)
                assert await served(port) == await expected(admin, namespace, mode)
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)


def in_files(folder: Path) -> Supplied:
    """A certificate of another authority, its key and that authority, in files."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    paths = [folder / name for name in ("tls.crt", "tls.key", "ca.crt")]
    issued.cert_chain_pems[0].write_to_path(str(paths[0]))
    issued.private_key_pem.write_to_path(str(paths[1]))
    authority.cert_pem.write_to_path(str(paths[2]))
    return Supplied(*paths)


@asynccontextmanager
async def hooked(admin: Client) -> AsyncIterator[tuple[Host, int]]:
    """An operator whose webhooks can be served, and a free port; nothing stays registered."""
    (port,) = free_ports(1)
    host = Host(admin, SystemClock(), [(component(), None)])
    running = asyncio.create_task(host.run())
    await asyncio.wait_for(host.ready.wait(), PATIENCE)
    try:
        yield host, port
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for wanted in webhook_configurations(component(), "default"):
            path = f"/apis/admissionregistration.k8s.io/v1/{wanted['kind'].lower()}s/{wanted['metadata']['name']}"
            with suppress(NotFound):
                await admin.call("DELETE", path)
        await unreviewed(admin)


async def reviewed(admin: Client, namespace: str, serving: asyncio.Task[None]) -> None:
    """Wait until a set gets the webhooks' defaults, and one that is wrong their refusal."""
    wrong = make.pcs("wrong", namespace).clique("a", 1, 2).build()
    async with asyncio.timeout(PATIENCE):
        while True:
            assert not serving.done(), serving.exception()
            with suppress(ApiError):
                made = await dry(admin, make.pcs("right", namespace).clique("a").build(), namespace)
                if made.spec.template.termination_delay:
                    break
            await asyncio.sleep(0.1)
    with pytest.raises(ApiError, match="minAvailable must not be greater than replicas"):
        await dry(admin, wrong, namespace)


async def unreviewed(admin: Client) -> None:
    """Wait until the API server has forgotten the webhooks: later tests have none."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(ApiError):
                await dry(admin, make.pcs("plain").clique("a").build(), "default")
                return
            await asyncio.sleep(0.1)


async def dry(admin: Client, body: dict[str, object], namespace: str) -> PodCliqueSet:
    """What would become of a set, without a trace of it."""
    return await admin.create(PodCliqueSet, body, namespace, dry_run=True)


async def served(port: int) -> str:
    """The certificate that is shown to whoever connects."""
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))


async def expected(admin: Client, namespace: str, mode: WebhookOptions) -> str:
    """The certificate that should be served: of the file, or of the Secret."""
    if mode.supplied is not None:
        return mode.supplied.certificate.read_text().replace("\r\n", "\n")
    secret = await admin.get(Secret.resource, (namespace, "spinney-grove-webhook"))
    return base64.b64decode(secret["data"]["certificate"]).decode()

"""The servers beside components in one process: webhooks and metrics over TLS, and health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from spinney.kube.admission.registration import Registration
from spinney.kube.admission.server import WebhookServer
from spinney.kube.controllers.health import Health
from spinney.kube.controllers.host import Host
from spinney.kube.controllers.secured_metrics import SecuredMetrics
from spinney.kube.process_settings import Listen, is_loopback
from spinney.kube.runtime import Component


@dataclass(frozen=True)
class Supplied:
    """Files that an administrator keeps current: a serving certificate, its key, and the CA.

    Without the CA, the administrator registers the webhooks as well.
    """

    certificate: Path
    key: Path
    authority: Path | None

    def read(self) -> tuple[str, str, str]:
        """The contents of the files now: certificate, key, authority."""
        authority = self.authority.read_text() if self.authority is not None else ""
        return self.certificate.read_text(), self.key.read_text(), authority


@dataclass(frozen=True)
class WebhookOptions:
    """How webhooks are served: by URL or by Service, with certificates of ours or with those supplied."""

    url: str = ""
    listen: Listen | None = None
    supplied: Supplied | None = None
    # The Secret of certificates of ours, where it is not named after the component.
    secret: str = ""

    def completed(self, supplied: Supplied | None, secret: str) -> WebhookOptions:
        """These options with certificates from elsewhere, unless they name their own, and with a Secret."""
        return replace(self, supplied=self.supplied or supplied, secret=secret)


def webhook_address(options: WebhookOptions) -> Listen:
    """Where to listen: as given, else at the port of the URL, and only on loopback if the URL is there."""
    if options.listen is not None:
        return options.listen
    parts = urlsplit(options.url)
    port = parts.port or (443 if options.url else 9443)
    return Listen("127.0.0.1" if is_loopback(parts.hostname or "") else "0.0.0.0", port)


async def serve_webhooks(host: Host, components: list[Component], options: WebhookOptions, namespace: str) -> None:
    """Serve the components' webhooks and keep their registrations current, until cancelled."""
    server = WebhookServer(host.reviewers())
    name = urlsplit(options.url).hostname
    registration = Registration(
        host.client.named("webhooks"),
        host.clock,
        components,
        server,
        namespace=namespace,
        url=options.url,
        names=[name] if name else [],
        secret=options.secret,
    )
    address = webhook_address(options)
    async with asyncio.TaskGroup() as tasks:
        started = asyncio.Event()
        if options.supplied is None:
            await registration.certify()
            tasks.create_task(server.serve(address.host, address.port, lambda _: started.set()))
            await started.wait()
            await registration.refresh()
            tasks.create_task(registration.run())
        else:
            used = options.supplied.read()
            server.use(used[0], used[1])
            tasks.create_task(server.serve(address.host, address.port, lambda _: started.set()))
            await started.wait()
            if used[2]:
                await registration.register(used[2])
            tasks.create_task(_follow(options.supplied, used, server, registration))


async def _follow(
    supplied: Supplied, used: tuple[str, str, str], server: WebhookServer, registration: Registration
) -> None:
    while True:
        await asyncio.sleep(60)
        read = supplied.read()
        if read != used:
            server.use(read[0], read[1])
            used = read
        if read[2]:
            await registration.register(read[2])


async def serve_health(host: Host, address: Listen, started: Callable[[], None]) -> None:
    """Serve health until cancelled, and metrics if the address is on loopback."""
    await Health(lambda: host.not_ready).serve(address.host, address.port, started)


async def serve_metrics(host: Host, address: Listen) -> None:
    """Serve metrics until cancelled: to everyone on loopback, elsewhere over TLS to those who may read them."""
    if is_loopback(address.host):
        await serve_health(host, address, lambda: None)
    else:
        await SecuredMetrics(host.client.named("metrics"), host.clock).serve(address.host, address.port)

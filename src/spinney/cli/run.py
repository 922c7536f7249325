"""`spinney run`: components against a real API server, until stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from spinney.api.meta import convert
from spinney.app.components import COMPONENTS, load
from spinney.app.process_settings import flag_or, in_folder, listening, pages_of, said_by, warn_of
from spinney.app.serving import Supplied, WebhookOptions, parse_address, serve_health, serve_webhooks
from spinney.kube import logs
from spinney.kube.chance import Chance
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.controllers.leader import Timing
from spinney.kube.gc_tuning import collect_rarely, keep_what_is_here
from spinney.kube.runtime import Component


@click.command(
    epilog=f"""Components: {", ".join(COMPONENTS)}.

\b
Examples:
  spinney run grove backends --kubeconfig ~/.kube/config
  spinney run scheduler binder --context staging --config scheduler=scheduler.yaml
  spinney run grove --webhook-url https://10.0.0.7:9443
"""
)
@click.argument("components", nargs=-1, required=True, metavar="COMPONENT...")
@click.option("--kubeconfig", default="", metavar="FILE", help="Instead of $KUBECONFIG or ~/.kube/config.")
@click.option("--context", default="", help="A context of the kubeconfig, instead of the current one.")
@click.option("--namespace", "-n", default="", help="For leases and certificates. Default: that of the context.")
@click.option("--config", "configs", multiple=True, metavar="[COMPONENT=]FILE", help="A component's configuration.")
@click.option("--only", default="", metavar="NAMES", help="Of backends, only these: --only kai,volcano.")
@click.option("--webhook-url", default="", help="Register webhooks by this https URL instead of by a Service.")
@click.option("--webhook-listen", default="", metavar="HOST:PORT", help="Where to serve webhooks.")
@click.option("--webhook-cert", default="", metavar="FILE", help="Serve with this certificate instead of our own.")
@click.option("--webhook-key", default="", metavar="FILE", help="The key of --webhook-cert.")
@click.option(
    "--webhook-ca", default="", metavar="FILE", help="Who signed --webhook-cert; without it, register nothing."
)
@click.option("--health-listen", default="", metavar="HOST:PORT", help="Serve /healthz, /readyz and /metrics there.")
@click.option(
    "--leader-election/--no-leader-election",
    "elect",
    default=True,
    show_default=True,
    help="Act only while holding a Lease, so that several replicas can run.",
)
@click.option(
    "--lease-duration", default=15.0, show_default=True, help="Seconds after which a silent leader is replaced."
)
@click.option(
    "--renew-deadline", default=10.0, show_default=True, help="Seconds without renewal after which a leader stops."
)
@click.option("--retry-period", default=2.0, show_default=True, help="Seconds between tries to get or renew the Lease.")
@click.option("--qps", default=2000.0, show_default=True, help="Requests per second, on average.")
@click.option("--burst", default=4000, show_default=True, help="Requests at once before the average counts.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--log-level", type=click.Choice(logs.LEVELS), default="info", show_default=True)
def run(  # one name per option
    *,
    components: tuple[str, ...],
    kubeconfig: str,
    context: str,
    namespace: str,
    configs: tuple[str, ...],
    only: str,
    webhook_url: str,
    webhook_listen: str,
    webhook_cert: str,
    webhook_key: str,
    webhook_ca: str,
    health_listen: str,
    elect: bool,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    qps: float,
    burst: int,
    log_format: logs.Format,
    log_level: str,
) -> None:
    """Run components until Ctrl-C."""
    loaded = [load(name) for name in dict.fromkeys(components)]
    configured = list(zip(loaded, _configurations(loaded, configs), strict=True))
    if only:
        if not any(map(_has_parts, (config for _, config in configured))):
            raise click.BadParameter("none of these components has parts to choose from", param_hint="--only")
        configured = [(component, _narrowed(config, only)) for component, config in configured]
    configured = [(_as_configured(component, config), config) for component, config in configured]
    loaded = [component for component, _ in configured]
    said = said_by(configured)
    webhooks = WebhookOptions(
        url=_https(webhook_url),
        listen=parse_address(webhook_listen, "--webhook-listen") if webhook_listen else None,
        supplied=_supplied(webhook_cert, webhook_key, webhook_ca) or in_folder(said.certificates),
        secret=said.secret,
    )
    timing = Timing(
        flag_or("lease_duration", lease_duration, said.timing and said.timing.duration),
        flag_or("renew_deadline", renew_deadline, said.timing and said.timing.renew_deadline),
        flag_or("retry_period", retry_period, said.timing and said.timing.retry_period),
    )
    if not timing.duration > timing.renew_deadline > timing.retry_period > 0:
        raise click.UsageError("leases need --lease-duration > --renew-deadline > --retry-period > 0")
    pages = [parse_address(health_listen, "--health-listen")] if health_listen else pages_of(said)
    server = find_server(kubeconfig, context)
    logs.configure(flag_or("log_format", log_format, said.log_format), flag_or("log_level", log_level, said.log_level))
    warn_of(said)
    place = namespace or server.namespace
    elected = flag_or("elect", elect, said.elect)
    per_second, at_first = flag_or("qps", qps, said.qps), flag_or("burst", burst, said.burst)

    async def main() -> None:
        chance = Chance()
        client = connect(server, chance=chance, per_second=per_second, burst=at_first)
        identity = f"{socket.gethostname()}_{chance.uid()}" if elected else ""
        hooked = [component for component in loaded if component.webhooks]
        try:
            # One question before anything starts: who cannot get an answer hears why at once.
            await client.call("GET", "/version")
            host = Host(client, SystemClock(), configured, namespace=place, identity=identity, timing=timing)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(host.run())
                tasks.create_task(_freeze(host))
                for address in pages:
                    tasks.create_task(serve_health(host, address))
                if hooked and (webhooks.url or webhooks.listen or "KUBERNETES_SERVICE_HOST" in os.environ):
                    tasks.create_task(serve_webhooks(host, hooked, listening(webhooks, said), place))
        finally:
            await client.close()

    run_loop(main())


async def _freeze(host: Host) -> None:
    """Once the caches are full, leave them alone."""
    await host.ready.wait()
    keep_what_is_here()


def _https(url: str) -> str:
    if url and not url.startswith("https://"):
        raise click.BadParameter(f"{url!r} does not start with https://", param_hint="--webhook-url")
    return url


def _supplied(*files: str) -> Supplied | None:
    certificate, key, authority = files
    if not any(files):
        return None
    if not certificate or not key:
        raise click.UsageError("--webhook-cert and --webhook-key go together, with --webhook-ca where we register")
    supplied = Supplied(Path(certificate), Path(key), Path(authority) if authority else None)
    try:
        supplied.read()
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from error
    return supplied


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the fastest loop there is; SIGTERM and Ctrl-C end it in good order."""
    collect_rarely()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            return


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  # absent on Windows

    return uvloop.new_event_loop


def _configurations(components: list[Component], configs: tuple[str, ...]) -> list[Any]:
    """What each component's `run` is handed, read from the files that are named for it."""
    files: dict[str, str] = {}
    for given in configs:
        name, sign, file = given.partition("=")
        if not sign and len(components) > 1:
            raise click.BadParameter(f"{given!r}: with several components say COMPONENT=FILE", param_hint="--config")
        files[name if sign else components[0].name] = file if sign else given
    unknown = set(files) - {component.name for component in components}
    if unknown:
        raise click.BadParameter(f"{', '.join(sorted(unknown))}: not among the components", param_hint="--config")
    return [_configuration(component, files.get(component.name, "")) for component in components]


def _narrowed(config: Any, only: str) -> Any:
    """The configuration with only some parts of its component switched on, where it has parts."""
    if not _has_parts(config):
        return config
    return msgspec.structs.replace(config, only=tuple(filter(None, only.split(","))))


def _has_parts(config: Any) -> bool:
    return config is not None and "only" in type(config).__struct_fields__


def _as_configured(component: Component, config: Any) -> Component:
    if component.configured is None:
        return component
    try:
        return component.configured(config)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--config") from error


def _configuration(component: Component, file: str) -> Any:
    if component.settings is None:
        if file:
            raise click.BadParameter(f"{component.name} takes no configuration file", param_hint="--config")
        return None
    if not file:
        return convert(component.settings, {})
    try:
        return convert(component.settings, yaml.safe_load(Path(file).read_bytes()) or {})
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}", param_hint="--config") from error
    except yaml.YAMLError as error:
        raise click.BadParameter(f"{file}: not YAML: {' '.join(str(error).split())}", param_hint="--config") from error
    except msgspec.ValidationError as error:
        raise click.BadParameter(f"{file}: {error}", param_hint="--config") from error

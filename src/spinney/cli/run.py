"""`spinney run`: components against a real API server, until stopped."""

from __future__ import annotations

from pathlib import Path

import click

from spinney.app.broken_backends import warn_of_broken_backends
from spinney.app.component_settings import choose_fallback, choose_parts, configured_components
from spinney.app.components import registered
from spinney.app.event_loop import run_until_stopped
from spinney.app.process_settings import certificates_in, process_settings, warn_of_ignored
from spinney.app.running import run_components
from spinney.app.serving import Supplied, WebhookOptions
from spinney.cli.options import Address, Connection, bundled, connection_options, webhook_url
from spinney.kube import logs
from spinney.kube.gc_tuning import collect_rarely
from spinney.kube.process_settings import Listen, ProcessOptions


def _webhooks(
    *, webhook_url: str, webhook_listen: Listen | None, webhook_cert: str, webhook_key: str, webhook_ca: str
) -> WebhookOptions:
    return WebhookOptions(webhook_url, webhook_listen, _supplied(webhook_cert, webhook_key, webhook_ca))


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


_webhook_options = bundled(
    "webhooks",
    _webhooks,
    webhook_url,
    click.option("--webhook-listen", type=Address(), metavar="HOST:PORT", help="Where to serve webhooks."),
    click.option("--webhook-cert", default="", metavar="FILE", help="Serve with this certificate instead of our own."),
    click.option("--webhook-key", default="", metavar="FILE", help="The key of --webhook-cert."),
    click.option(
        "--webhook-ca", default="", metavar="FILE", help="Who signed --webhook-cert; without it, register nothing."
    ),
)


def _process(
    *,
    health_listen: Listen | None,
    metrics_listen: Listen | None,
    elect: bool | None,
    qps: float | None,
    burst: int | None,
    log_format: str | None,
    log_level: str | None,
) -> ProcessOptions:
    return ProcessOptions(
        health=health_listen,
        metrics=metrics_listen,
        elect=elect,
        qps=qps,
        burst=burst,
        log_format=log_format or "",
        log_level=log_level or "",
    )


_process_options = bundled(
    "flags",
    _process,
    click.option(
        "--health-listen",
        type=Address(),
        metavar="HOST:PORT",
        help="Serve /healthz and /readyz there, and /metrics if it is on loopback.",
    ),
    click.option(
        "--metrics-listen",
        type=Address(),
        metavar="HOST:PORT",
        help="Serve /metrics there: over TLS, to those who may get it by RBAC; on loopback to everyone.",
    ),
    click.option(
        "--leader-election/--no-leader-election",
        "elect",
        default=None,
        help="Act only while holding a Lease, so that several replicas can run. Default: on.",
    ),
    click.option("--qps", type=float, help="Requests per second, on average. Default: 2000."),
    click.option("--burst", type=int, help="Requests at once before the average counts. Default: 4000."),
    click.option("--log-format", type=click.Choice(["text", "json"]), help="Default: text."),
    click.option("--log-level", type=click.Choice(logs.LEVELS), help="Default: info."),
)


def _lease(
    *, lease_duration: float | None, renew_deadline: float | None, retry_period: float | None
) -> dict[str, float | None]:
    return {"duration": lease_duration, "renew_deadline": renew_deadline, "retry_period": retry_period}


_lease_options = bundled(
    "lease",
    _lease,
    click.option("--lease-duration", type=float, help="Seconds after which a silent leader is replaced. Default: 15."),
    click.option(
        "--renew-deadline", type=float, help="Seconds without renewal after which a leader stops. Default: 10."
    ),
    click.option("--retry-period", type=float, help="Seconds between tries to get or renew the Lease. Default: 2."),
)


@click.command(
    epilog=f"""Components: {", ".join(registered())}.

A configuration file of a component may change the defaults of this process; a flag wins over the file.

\b
Examples:
  spinney run grove backends --kubeconfig ~/.kube/config
  spinney run scheduler binder --context staging --config scheduler=scheduler.yaml
  spinney run grove --webhook-url https://10.0.0.7:9443
"""
)
@click.argument("components", nargs=-1, required=True, metavar="COMPONENT...")
@connection_options
@click.option("--namespace", "-n", default="", help="For leases and certificates. Default: that of the context.")
@click.option("--config", "configs", multiple=True, metavar="[COMPONENT=]FILE", help="A component's configuration.")
@click.option("--only", "names", default="", metavar="NAMES", help="Of backends, only these: --only kai,volcano.")
@click.option(
    "--fallback-backend",
    default="",
    metavar="NAME",
    help="The backend of sets whose schedulerName no backend claims. Default: kai.",
)
@_webhook_options
@_process_options
@_lease_options
def run(
    *,
    components: tuple[str, ...],
    connection: Connection,
    namespace: str,
    configs: tuple[str, ...],
    names: str,
    fallback_backend: str,
    webhooks: WebhookOptions,
    flags: ProcessOptions,
    lease: dict[str, float | None],
) -> None:
    """Run components until Ctrl-C."""
    collect_rarely()
    configured = configured_components(components, configs, [*choose_parts(names), *choose_fallback(fallback_backend)])
    settings = process_settings(configured, flags, lease)
    webhooks = webhooks.completed(certificates_in(settings.certificates), settings.secret)
    server = connection.server()
    logs.configure(settings.log_format, settings.log_level)
    warn_of_ignored(settings)
    warn_of_broken_backends(component.name for component, _ in configured)
    run_until_stopped(run_components(server, configured, settings, webhooks, namespace or server.namespace))

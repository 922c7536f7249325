"""`spinney run`: components against a real API server, until stopped."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from spinney.api.meta import convert
from spinney.cli.components import load
from spinney.kube.clock import SystemClock
from spinney.kube.config import find_server
from spinney.kube.host import Host
from spinney.kube.https import connect
from spinney.kube.runtime import Component


@click.command(
    epilog="""\b
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
@click.option("--qps", default=1000.0, show_default=True, help="Requests per second, on average.")
@click.option("--burst", default=2000, show_default=True, help="Requests at once before the average counts.")
def run(
    *,
    components: tuple[str, ...],
    kubeconfig: str,
    context: str,
    namespace: str,
    configs: tuple[str, ...],
    qps: float,
    burst: int,
) -> None:
    """Run components until Ctrl-C."""
    loaded = [load(name) for name in dict.fromkeys(components)]
    configured = list(zip(loaded, _configurations(loaded, configs), strict=True))
    server = find_server(kubeconfig, context)

    async def main() -> None:
        client = connect(server, per_second=qps, burst=burst)
        try:
            # One question before anything starts: who cannot get an answer hears why at once.
            await client.call("GET", "/version")
            await Host(client, SystemClock(), configured, namespace or server.namespace).run()
        finally:
            await client.close()

    run_loop(main())


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the fastest loop there is; SIGTERM and Ctrl-C end it in good order."""
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

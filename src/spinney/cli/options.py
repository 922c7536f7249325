"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from spinney.api.numbers import whole_number
from spinney.kube.client.kubeconfig import Server, find_server
from spinney.kube.process_settings import Listen


def bundled(name: str, build: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give a command several options; it gets what `build` makes of their values as one argument."""
    parameters = tuple(inspect.signature(build).parameters)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            own = {parameter: values.pop(parameter) for parameter in parameters}
            return command(**values, **{name: build(**own)})

        decorated: Callable[..., Any] = call
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


@dataclass(frozen=True)
class Connection:
    """Which cluster a command talks to."""

    kubeconfig: str
    context: str

    @property
    def is_named(self) -> bool:
        """Whether the user chose a cluster, so that a missing one is an error."""
        return bool(self.kubeconfig or self.context)

    def server(self) -> Server:
        """The API server, and who we are to it."""
        return find_server(self.kubeconfig, self.context)


class Address(click.ParamType[Listen]):
    """`HOST:PORT`."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Listen:
        """The address, or a usage error."""
        if isinstance(value, Listen):
            return value
        host, _, port = str(value).rpartition(":")
        number = whole_number(port)
        if not host or number is None or number > 65535:
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return Listen(host.strip("[]"), number)


class HttpsUrl(click.ParamType[str]):
    """A URL that begins with https://, or nothing."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The URL, or a usage error."""
        if value and not str(value).startswith("https://"):
            self.fail(f"{value!r} does not start with https://", param, ctx)
        return str(value)


CONNECTION = (
    click.option("--kubeconfig", default="", metavar="FILE", help="Instead of $KUBECONFIG or ~/.kube/config."),
    click.option("--context", default="", help="A context of the kubeconfig, instead of the current one."),
)

connection_options = bundled("connection", Connection, *CONNECTION)


webhook_url = click.option(
    "--webhook-url",
    type=HttpsUrl(),
    default="",
    metavar="URL",
    help="Register webhooks by this https URL instead of by a Service.",
)

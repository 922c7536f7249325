"""The `spinney` command: one group, one module per command, imported when it is used."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

# name → where its click command lives. One line per command.
COMMANDS = {
    "backends": "spinney.cli.backends:backends",
    "conformance": "spinney.cli.conformance:conformance",
    "crds": "spinney.cli.crds:crds",
    "demo": "spinney.cli.demo:demo",
    "explain": "spinney.cli.explain:explain",
    "fairshare": "spinney.cli.fairshare:fairshare",
    "initc": "spinney.cli.initc:initc",
    "manifests": "spinney.cli.manifests:manifests",
    "queues": "spinney.cli.queues:queues",
    "render": "spinney.cli.render:render_set",
    "nodes": "spinney.cli.nodes:nodes",
    "run": "spinney.cli.run:run",
    "snapshot": "spinney.cli.snapshot:snapshot",
    "status": "spinney.cli.status:status",
    "up": "spinney.cli.up:up",
}


class LazyGroup(click.Group):
    """Imports a command when it is asked for, and turns what can go wrong with a cluster into one clear line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command there is."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their first sentences, read from the sources: importing them all takes seconds."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(COMMANDS[name])) for name in self.list_commands(ctx)])

    def main(self, *args: Any, **extra: Any) -> Any:
        """As click's, but what the user did wrong is said in one line."""
        try:
            result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.Abort:
            sys.exit(130)
        except click.ClickException as error:
            where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
            hint = f" (see '{where} --help')" if where else ""
            click.echo(f"spinney: {' '.join(error.format_message().split())}{hint}", err=True)
            sys.exit(error.exit_code)
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an expected failure ends it with a message and exit code 1."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            message = _expected(error)
            if message is None:
                raise
            raise _failure(message, _exit_code(error)) from error


def _failure(message: str, code: int) -> click.ClickException:
    class Failure(click.ClickException):
        exit_code = code

    return Failure(message)


def _exit_code(error: BaseException) -> int:
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return int(getattr(error, "exit_code", 0)) or max((_exit_code(each) for each in inner), default=1)


def _summary(where: str) -> str:
    module, _, attribute = where.partition(":")
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    for node in ast.parse(Path(found.origin).read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            paragraph = (ast.get_docstring(node) or "").partition("\n\n")[0]
            return " ".join(paragraph.split())
    return ""


def _expected(error: BaseException) -> str | None:
    from spinney.kube.client.credentials import ConfigError  # noqa: PLC0415  # only where something went wrong
    from spinney.kube.controllers.leader import LeaseLost  # noqa: PLC0415  # as above
    from spinney.kube.errors import ApiError, CannotStart, ConnectionLost, Unauthorized  # noqa: PLC0415  # as above

    if isinstance(error, BaseExceptionGroup):
        return next((found for each in error.exceptions if (found := _expected(each))), None)
    if isinstance(error, Unauthorized):
        return f"the API server does not accept our credentials (expired?): {error}"
    if isinstance(error, ConfigError | ApiError | CannotStart | ConnectionLost | LeaseLost | OSError):
        return str(error) or type(error).__name__
    return None


@click.group(cls=LazyGroup)
@click.version_option(package_name="spinney")
def main() -> None:
    """Gang scheduling for Kubernetes: describe an AI workload once, get it placed together or not at all."""

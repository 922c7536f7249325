"""The `spinney` command: one group, one module per command, imported when it is used."""

from __future__ import annotations

import errno
import re
import sys
from typing import Any

import click

from spinney.app.errors import UserError
from spinney.cli.imports import imported

# name → where its click command lives, and its line in the help: importing every command takes seconds.
COMMANDS = {
    "backends": ("backends:backends", "List the backends: gate, scheduler, API, and whether the scheduler runs."),
    "capacity": ("ask.capacity:capacity", "Idle GPUs by the reason why nobody uses them."),
    "conformance": ("conformance:conformance", "Compare decisions with those of the original projects."),
    "crds": ("installation.crds:crds", "Print the CustomResourceDefinitions that Spinney needs."),
    "decisions": ("ask.decisions:decisions", "Show, replay and compare what the scheduler decided, cycle by cycle."),
    "defrag": ("change.defrag:defrag", "Move pods together, so that whole nodes become free."),
    "demo": ("demo:demo", "Show gangs on their way from created to running, in a cluster in this process."),
    "doctor": ("installation.doctor:doctor", "Examine a cluster: what is wrong with the installation, and what to do."),
    "evictions": ("ask.evictions:evictions", "Who was evicted, for whom, by which right, and what it cost."),
    "explain": ("ask.explain:explain", "Why a workload, pod, queue or node waits, and the smallest change that helps."),
    "fairshare": ("fairshare:fairshare", "Fair shares for the queues in FILE."),
    "fake-gpus": ("fake_gpus:fake_gpus", "Offer GPUs that do not exist, to try things on any cluster."),
    "faults": ("faults:faults", "Search for faults that an installation does not survive, in virtual time."),
    "initc": ("initc:initc", "Wait until enough pods of other cliques of this pod's gang are ready."),
    "install": (
        "installation.install:install",
        "Print every object of an installation, as YAML: the same as the Helm chart.",
    ),
    "ls": ("ask.ls:ls", "All workloads of every kind: how far they are, and why they wait."),
    "manifests": (
        "installation.manifests:manifests",
        "Print accounts, roles and webhook configurations for components, as YAML.",
    ),
    "nodes": ("nodes:nodes", "Add simulated nodes to a cluster and run the pods that are bound to them."),
    "queue": ("change.queue:queue", "Create queues, change what they may use, and move them in the tree."),
    "queues": (
        "ask.queues:queues",
        "The tree of queues: quota, fair share, allocated, borrowed and pending resources.",
    ),
    "record": ("ask.record:record", "Keep a live cluster's history in a file, for replay."),
    "render": ("render:render_set", "Print what Spinney would create for a PodCliqueSet."),
    "replay": ("ask.replay:replay", "Replay a trace, a snapshot or a history under several policies."),
    "restart": ("change.workload_verbs:restart", "Replace all pods of a workload."),
    "resume": ("change.workload_verbs:resume", "Let a suspended workload run again."),
    "run": ("run:run", "Run components until Ctrl-C."),
    "snapshot": ("snapshot:snapshot", "Keep a moment of a cluster in a file, and plan on it again."),
    "status": ("ask.status:status", "Show workloads as trees of gangs and pods."),
    "suspend": ("change.workload_verbs:suspend", "Stop a workload without deleting it."),
    "top": ("ask.top:top", "GPUs, racks, queues, who waits and who was evicted, live."),
    "undo": ("change.workload_verbs:undo", "Take back the last change that a verb made."),
    "uninstall": ("installation.uninstall:uninstall", "Take Spinney out of a cluster; pods that run go on running."),
    "up": ("up:up", "Run a Kubernetes API with simulated nodes and all components, until Ctrl-C."),
    "whatif": ("ask.whatif:whatif", "What would start, be evicted and still wait if something changed."),
}


class LazyGroup(click.Group):
    """Imports a command when it is used, and prints an expected failure as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command there is."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(imported(f"spinney.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with one line each."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run as click does, but print a usage error as one line."""
        try:
            result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.Abort:
            sys.exit(130)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
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
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            # Click ends quietly when the reader of a pipe is gone.
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


def _expected(error: BaseException) -> str | None:
    from spinney.api.quantity import QuantityError  # noqa: PLC0415  # only where something went wrong
    from spinney.embedded.apiserver.store.journal import DataError  # noqa: PLC0415  # as above
    from spinney.kube.client.credentials import ConfigError  # noqa: PLC0415  # only where something went wrong
    from spinney.kube.controllers.leader import LeaseLost  # noqa: PLC0415  # as above
    from spinney.kube.errors import ApiError, CannotStart, ConnectionLost, Unauthorized  # noqa: PLC0415  # as above

    if isinstance(error, BaseExceptionGroup):
        return next((message for each in error.exceptions if (message := _expected(each))), None)
    if isinstance(error, Unauthorized):
        return f"the API server does not accept our credentials (expired?): {error}"
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        where = re.search(r"\('([^']+)', (\d+)", str(error))
        port = f"port {where[2]} of {where[1]}" if where else "the port"
        return f"something else listens on {port} already: end it, or choose another port (--port 0 picks a free one)"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(
        error,
        UserError
        | DataError
        | ConfigError
        | ApiError
        | CannotStart
        | ConnectionLost
        | LeaseLost
        | QuantityError
        | OSError,
    ):
        return str(error) or type(error).__name__
    return None


@click.group(cls=LazyGroup)
@click.version_option(package_name="spinney")
def main() -> None:
    """Gang scheduling for Kubernetes: describe an AI workload once, get it placed together or not at all."""
    from spinney.kube.logs import warn_on_stderr  # noqa: PLC0415  # help does without it

    warn_on_stderr()

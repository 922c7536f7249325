"""`spinney queue`: create queues, change what they may use, and move them in the tree."""

from __future__ import annotations

import json
import math
from typing import Any

import click

from spinney.cli.ask.cluster_options import Source
from spinney.cli.options import Connection, connection_options

_RESOURCES = {"gpu": 1.0, "cpu": 1000.0, "memory": 1.0}


class Bound(click.ParamType[float]):
    """A number, or `unlimited`."""

    name = "NUMBER|unlimited"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; -1 for unlimited."""
        if str(value) == "unlimited":
            return -1.0
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is neither a number nor unlimited", param, ctx)
        if number < 0:
            self.fail(f"{value!r} is below 0; write unlimited for no bound", param, ctx)
        return number


class Weight(click.FloatRange):
    """A number of 0 or more."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def _bounds(command: Any) -> Any:
    for flag, text in (
        ("--memory-limit", "MB of memory at most."),
        ("--memory-quota", "MB of memory that it is entitled to."),
        ("--cpu-limit", "Cores at most."),
        ("--cpu-quota", "Cores that it is entitled to."),
        ("--limit", "GPUs at most."),
        ("--quota", "GPUs that it is entitled to."),
    ):
        command = click.option(flag, type=Bound(), help=text)(command)
    weight = click.option("--weight", type=Weight(min=0), help="Its part of what is left beyond quotas.")
    return click.option("--priority", type=int, help="Queues of higher priority are served first.")(weight(command))


_dry_run = click.option("--dry-run", is_flag=True, help="Let the API server check it, and change nothing.")


@click.group(
    epilog="""\b
Examples:
  spinney queue create team-a --parent default-parent-queue --quota 16
  spinney queue set team-a --quota 32 --limit unlimited
  spinney queue move team-a --parent research
"""
)
def queue() -> None:
    """Create queues, change what they may use, and move them in the tree."""


@queue.command(
    epilog="""\b
Examples:
  spinney queue create team-a --parent default-parent-queue --quota 16 --limit 32
"""
)
@click.argument("name")
@click.option("--parent", default="", help="The queue above it; without one it is a root.")
@_bounds
@_dry_run
@connection_options
def create(*, name: str, parent: str, dry_run: bool, connection: Connection, **bounds: float | None) -> None:
    """Create a queue; what is not said is unlimited."""
    from spinney.api.kai import Queue  # noqa: PLC0415  # slow to import

    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {resource: {**unlimited, **_share(resource, bounds)} for resource in _RESOURCES}
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {}), **_priority(bounds)}
    source = Source(connection)
    source.connected(lambda client: client.create(Queue, {"metadata": {"name": name}, "spec": spec}, dry_run=dry_run))
    click.echo(f"{'would create' if dry_run else 'created'} queue {name}{f' below {parent}' if parent else ''}")


@queue.command(
    "set",
    epilog="""\b
Examples:
  spinney queue set team-a --quota 32 --limit unlimited --dry-run
""",
)
@click.argument("name")
@_bounds
@_dry_run
@connection_options
def set_(*, name: str, dry_run: bool, connection: Connection, **bounds: float | None) -> None:
    """Change what a queue may use; what is not said stays."""
    resources = {resource: share for resource in _RESOURCES if (share := _share(resource, bounds))}
    spec = {**({"resources": resources} if resources else {}), **_priority(bounds)}
    if not spec:
        raise click.UsageError("say what to set: --quota, --limit, --weight, --priority …")
    _patch(name, {"spec": spec}, connection, dry_run=dry_run)


@queue.command(
    epilog="""\b
Examples:
  spinney queue move team-a --parent research
  spinney queue move team-a --parent ""     # make it a root
"""
)
@click.argument("name")
@click.option("--parent", required=True, help="The queue to put it below; empty makes it a root.")
@_dry_run
@connection_options
def move(*, name: str, parent: str, dry_run: bool, connection: Connection) -> None:
    """Put a queue, with everything in it, below another one."""
    _patch(name, {"spec": {"parentQueue": parent or None}}, connection, dry_run=dry_run)


def _share(resource: str, bounds: dict[str, float | None]) -> dict[str, float]:
    prefix = "" if resource == "gpu" else f"{resource}_"
    amounts = {field: bounds.get(f"{prefix}{field}") for field in ("quota", "limit")}
    share = {
        field: value if value < 0 else value * _RESOURCES[resource]
        for field, value in amounts.items()
        if value is not None
    }
    weight = bounds.get("weight")
    return {**share, **({"overQuotaWeight": weight} if weight is not None else {})}


def _priority(bounds: dict[str, float | None]) -> dict[str, float]:
    value = bounds.get("priority")
    return {"priority": value} if value is not None else {}


def _patch(name: str, patch: dict[str, Any], connection: Connection, *, dry_run: bool) -> None:
    from spinney.api.kai import Queue  # noqa: PLC0415  # slow to import
    from spinney.cli.change.undoing import change  # noqa: PLC0415  # as above

    source = Source(connection)
    done = source.connected(lambda client: change(client, Queue.resource, ("", name), patch, dry_run=dry_run))
    text = json.dumps(patch["spec"])
    click.echo(
        f"{'would change' if dry_run else 'changed'} queue {name}: {text}" if done else f"queue {name} is so already"
    )

"""`spinney status`: workloads as trees of gangs, subgroups and pods, and what each waits for."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

import click

from spinney.cli.ask.cluster_options import (
    Source,
    all_namespaces_option,
    cluster_options,
    namespace_option,
    note_partial,
    plain,
    require,
)
from spinney.cli.ask.watching import follow
from spinney.cli.output import age, print_json

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from spinney.answers.cluster import Cluster
    from spinney.answers.model import Group, PodRow, WorkloadTree

_COLOURS = {"Running": "green", "Ready": "green", "Starting": "cyan", "Waiting": "yellow", "Gated": "yellow"}
# Wider than any line: lines into a pipe are not wrapped.
_PIPE_WIDTH = 10_000


@click.command(
    epilog="""\b
Examples:
  spinney status                       # every workload of the namespace
  spinney status inference -w          # one, live until Ctrl-C
  spinney status job/train
  spinney status -A -o json | jq '.items[].workload.phase'
"""
)
@click.argument("what", required=False, default="", metavar="[[KIND/]NAME]")
@namespace_option
@all_namespaces_option
@click.option("--watch", "-w", is_flag=True, help="Follow until Ctrl-C.")
@click.option("--output", "-o", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
@cluster_options
def status(*, what: str, namespace: str, all_namespaces: bool, watch: bool, output: str, source: Source) -> None:
    """Show workloads of every kind, their gangs and pods, and what each waits for."""
    if what and all_namespaces:
        raise click.UsageError("a NAME and --all-namespaces do not go together")
    place = "" if all_namespaces else source.namespace(namespace)

    def show() -> None:
        cluster = source.read(place)
        require(cluster, "Pod", everywhere=all_namespaces)
        _print(cluster, trees(cluster, what, place), output, place)

    if watch:
        follow(source, place, show)
    else:
        show()


def trees(cluster: Cluster, what: str, namespace: str) -> list[WorkloadTree]:
    """The trees of all workloads of a namespace, or of one; an error if nothing has that name."""
    from spinney.answers.finding import find, split  # noqa: PLC0415  # slow to import
    from spinney.answers.tree import tree_of  # noqa: PLC0415  # as above
    from spinney.answers.workloads import parts_of, prospects_of  # noqa: PLC0415  # as above

    prospects = prospects_of(cluster)
    if what:
        kind, name = split(what)
        chosen = [each.parts for each in find(cluster, kind, name, namespace)]
        if not chosen:
            raise click.ClickException(f"no {kind or 'workload, gang or pod'} {name!r} in namespace {namespace}")
    else:
        parts = parts_of(cluster)
        refs = sorted(parts, key=lambda ref: (ref.namespace, ref.kind, ref.name))
        chosen = [parts[ref] for ref in refs if not namespace or ref.namespace == namespace]
    return [tree_of(cluster, each, prospects) for each in chosen]


def _print(cluster: Cluster, shown: list[WorkloadTree], output: str, namespace: str) -> None:
    from rich.console import Console  # noqa: PLC0415  # slow to import

    from spinney.answers.model import Listing  # noqa: PLC0415  # as above
    from spinney.api.times import rfc3339  # noqa: PLC0415  # as above

    if output == "json":
        print_json(plain(Listing(at=rfc3339(cluster.now), items=shown, partial=cluster.partial)))
        return
    note_partial(cluster)
    if not shown:
        click.echo(f"no workloads in {f'namespace {namespace}' if namespace else 'any namespace'}", err=True)
        return
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
    for each in shown:
        console.print(_tree(each, cluster.now))


def _tree(tree: WorkloadTree, now: datetime) -> Tree:
    from rich.tree import Tree  # noqa: PLC0415  # slow to import

    workload = tree.workload
    pods = f"{workload.ready}/{workload.total} ready"
    detail = workload.why.text if workload.why is not None else ""
    root = Tree(
        _line(f"{workload.ref.namespace}/{workload.ref}", workload.phase, pods, age(workload.created, now), detail)
    )
    for group in tree.groups:
        _add(root, group, now)
    return root


def _add(branch: Tree, group: Group, now: datetime) -> None:
    least = f", at least {group.minimum}" if group.minimum is not None else ""
    counts = f"{group.ready}/{group.total} ready{least}"
    after = f"after {', '.join(group.starts_after)}" if group.starts_after else ""
    below = branch.add(_line(f"{group.kind.lower()} {group.name}", group.phase, group.detail, counts, after))
    for each in group.groups:
        _add(below, each, now)
    for pod in group.pods:
        below.add(_pod(pod, now))


def _pod(pod: PodRow, now: datetime) -> Text:
    place = " ".join((pod.node or "", *pod.domain.values())).strip()
    gpus = f"{pod.gpus.count:g} GPU{'' if pod.gpus.count == 1 else 's'}" if pod.gpus.count else ""
    return _line(pod.name, pod.phase, gpus, age(pod.created, now), pod.reason.text if pod.reason else place)


def _line(name: str, state: str, *details: str) -> Text:
    from rich.text import Text  # noqa: PLC0415  # slow to import

    line = Text(name)
    if state:
        line.append(f"  {state}", style=_COLOURS.get(state, ""))
    for text in details:
        if text:
            line.append(f"  {text}", style="dim")
    return line

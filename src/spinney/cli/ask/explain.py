"""`spinney explain`: why something waits, in sentences, with numbers and the smallest change that helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.cli.ask.cluster_options import Source, cluster_options, namespace_option, note_partial, plain, require
from spinney.cli.output import print_json

if TYPE_CHECKING:
    from spinney.answers.cluster import Cluster
    from spinney.answers.model import Explanation


@click.command(
    epilog="""\b
Examples:
  spinney explain inference            # whatever has that name: a workload, a gang, a pod, a queue, a node
  spinney explain job/train -n team-a
  spinney explain pytorchjob/bert
  spinney explain queue/team-a -o json
  spinney explain eviction/train-0     # who had to go for whom
  spinney explain gang/inference-0 --snapshot now.zip
"""
)
@click.argument("what", metavar="[KIND/]NAME")
@namespace_option
@cluster_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(*, what: str, namespace: str, source: Source, output: str) -> None:
    """Why a workload, gang, pod, queue or node waits: what blocks it, by how much, and the smallest change that helps.

    The advice is tried on a copy of the cluster's state before it is given.
    """
    from spinney.answers.finding import split  # noqa: PLC0415  # slow to import

    place = source.namespace(namespace)
    kind, name = split(what)
    cluster = source.read(place)
    explained = answers(cluster, kind, name, place)
    if output == "json":
        print_json(plain(explained))
        return
    note_partial(cluster)
    click.echo("\n".join(line for each in explained for line in each.sentences))


def answers(cluster: Cluster, kind: str, name: str, namespace: str) -> list[Explanation]:
    """What there is to say about a name; an error if nothing has it, or what has it may not be read."""
    from spinney.answers.explanation import explanations  # noqa: PLC0415  # slow to import

    needs = {"queue": ("Queue",), "node": ("Node",), "eviction": ("Event",)}.get(kind, ("Pod",))
    require(cluster, *needs)
    if cluster.namespace and cluster.namespace != namespace and kind not in ("queue", "node"):
        raise click.ClickException(f"you may read namespace {cluster.namespace} only")
    explained = explanations(cluster, kind, name, namespace)
    if explained:
        return explained
    if not kind:
        require(cluster, "Queue", "Node")
    where = "" if kind in ("queue", "node") else f" in namespace {namespace}"
    raise click.ClickException(f"no {kind or 'workload, gang, pod, queue or node'} {name!r}{where}")

"""`spinney whatif`: what would be different if something changed; nothing is touched."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.api.numbers import number
from spinney.cli.ask.cluster_options import Source, cluster_options, namespace_option, plain, require_plan
from spinney.cli.output import print_json, print_table, print_yaml

if TYPE_CHECKING:
    from spinney.answers.model import Displacement, ExpectedStart, WhatIf
    from spinney.answers.whatif.changes import Change

_NODES = re.compile(r"(\d+)x(\d+)gpus?((?:,[^=,]+=[^,]*)*)")
# Workloads that are printed; the JSON has all.
_MOST_WAITING = 20


@click.command(
    epilog="""\b
Examples:
  spinney whatif -f new.yaml
  spinney whatif --add-nodes 4x8gpu --set-quota team-a=16
  spinney whatif --drain node-3 --snapshot now.zip -o json
  spinney whatif --priority job/urgent=inference
"""
)
@click.option(
    "--filename", "-f", "files", multiple=True, metavar="FILE", help="Create the objects of FILE; - is stdin."
)
@click.option(
    "--add-nodes",
    multiple=True,
    metavar="4x8gpu[,cpu=64,memory=1Ti,LABEL=VALUE…]",
    help="Add nodes like those with as many GPUs that are there.",
)
@click.option("--remove-node", multiple=True, metavar="NODE", help="Take a node away at once.")
@click.option("--drain", multiple=True, metavar="NODE", help="Cordon a node and evict its pods.")
@click.option("--set-quota", multiple=True, metavar="QUEUE=GPUS", help="GPUs, or `unlimited`.")
@click.option("--set-limit", multiple=True, metavar="QUEUE=GPUS", help="GPUs, or `unlimited`.")
@click.option("--priority", multiple=True, metavar="WORKLOAD=N|CLASS", help="Another priority for [kind/]name.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another scheduler configuration."
)
@cluster_options
@namespace_option
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def whatif(*, source: Source, namespace: str, output: str, **asked: Any) -> None:
    """What would start, be evicted or moved, and what would still wait, if something changed.

    The scheduler plans on a copy of the cluster, with the changes and without; the difference is printed. Nothing is
    written. Options may be given several times and together.
    """
    from spinney.answers.whatif.changes import ChangeError  # noqa: PLC0415  # slow to import
    from spinney.answers.whatif.difference import whatif as answer  # noqa: PLC0415  # as above
    from spinney.kube.logs import configure  # noqa: PLC0415  # as above
    from spinney.sim.expansion import expand  # noqa: PLC0415  # as above

    # Logs of the controllers that expand new workloads do not concern the user.
    configure(level="error")
    wanted = _changes(asked, source.namespace(namespace))
    if not wanted:
        raise click.UsageError("say what to change: -f, --add-nodes, --drain, --set-quota …")
    cluster = source.read(source.namespace(namespace))
    require_plan(cluster)
    try:
        difference = answer(cluster, wanted, expand)
    except ChangeError as error:
        raise click.UsageError(str(error)) from error
    if output == "json":
        print_json(plain(difference))
    elif output == "yaml":
        print_yaml([plain(difference)])
    else:
        _print(difference)


def _changes(asked: dict[str, Any], namespace: str) -> list[Change]:
    """Every change that the options name: to what exists first, then what is created."""
    from spinney.answers.whatif import changes as ask  # noqa: PLC0415  # slow to import
    from spinney.app.offline_checks import read_documents  # noqa: PLC0415  # as above

    wanted: list[Change] = []
    if asked["config"] is not None:
        documents = read_documents(str(asked["config"]))
        wanted.append(ask.SetConfig(config=documents[0] if documents else {}))
    wanted += [ask.SetQuota(queue=queue, gpus=_bound(text)) for queue, text in map(_pair, asked["set_quota"])]
    wanted += [ask.SetLimit(queue=queue, gpus=_bound(text)) for queue, text in map(_pair, asked["set_limit"])]
    wanted += [ask.RemoveNode(node=name) for name in asked["remove_node"]]
    wanted += [ask.DrainNode(node=name) for name in asked["drain"]]
    wanted += [_nodes(text) for text in asked["add_nodes"]]
    wanted += [
        ask.SetPriority(workload=workload, priority=text, namespace=namespace)
        for workload, text in map(_pair, asked["priority"])
    ]
    objects = [document for name in asked["files"] for document in read_documents(name)]
    if asked["files"] and not objects:
        raise click.UsageError(f"{', '.join(asked['files'])}: no object in it")
    return [*wanted, *([ask.Create(objects=[_in(each, namespace) for each in objects])] if objects else [])]


def _in(document: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A document with the namespace of the context, where it names none."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace"):
        return document
    return {**document, "metadata": {**metadata, "namespace": namespace}}


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not name or not sign or not value:
        raise click.UsageError(f"{text!r}: write NAME=VALUE")
    return name, value


def _bound(text: str) -> float | None:
    if text == "unlimited":
        return None
    try:
        gpus = float(text)
    except ValueError:
        gpus = -1.0
    if not 0 <= gpus < math.inf:
        raise click.UsageError(f"{text!r} is neither a number of GPUs nor `unlimited`")
    return gpus


def _nodes(text: str) -> Change:
    from spinney.answers.whatif.changes import AddNodes  # noqa: PLC0415  # slow to import
    from spinney.api.quantity import milli  # noqa: PLC0415  # as above

    match = _NODES.fullmatch(text)
    if match is None:
        raise click.UsageError(f"{text!r}: write COUNTxGPUSgpu, such as 4x8gpu, or 4x8gpu,cpu=64,memory=1Ti,KEY=VALUE")
    pairs = dict(_pair(each) for each in match[3].split(",") if each)
    try:
        sizes = {key: milli(pairs.pop(key)) / 1000 for key in ("cpu", "memory") if key in pairs}
    except ValueError as error:
        raise click.UsageError(f"{text!r}: {error}") from error
    return AddNodes(
        count=int(match[1]), gpus=int(match[2]), cpu=sizes.get("cpu"), memory=sizes.get("memory"), labels=pairs
    )


def _print(difference: WhatIf) -> None:
    click.echo(f"What if: {'; '.join(difference.changes)}")
    _print_starts(difference)
    _print_displaced("Would be evicted", "-", difference.evicted)
    _print_displaced("Would move", "~", difference.moved)
    _print_shares(difference)
    _print_waiting(difference)
    click.echo(f"\n{difference.text}")
    for each in difference.assumed:
        click.echo(f"Assumed: {each}")


def _print_starts(difference: WhatIf) -> None:
    if not difference.starts:
        return
    click.echo("\nWould start")
    print_table(
        [
            (
                f"  + {each.workload}",
                each.queue,
                f"{each.pods} pod{'s' if each.pods != 1 else ''}, {number(each.gpus)} GPUs",
                f"on {', '.join(each.nodes)}",
                f"{_when(each.expected_start)} (otherwise: {_when(each.before)})" if each.before else "",
            )
            for each in difference.starts
        ]
    )


def _print_shares(difference: WhatIf) -> None:
    if not difference.shares:
        return
    click.echo("\nGPUs of queues")
    rows = [
        (
            f"  {each.queue}",
            _change(each.before.gpu, each.after.gpu),
            _change(each.allocated_before.gpu, each.allocated_after.gpu),
        )
        for each in difference.shares
    ]
    print_table([("  QUEUE", "FAIR SHARE", "ALLOCATED"), *rows])


def _print_displaced(title: str, sign: str, pods: Sequence[Displacement]) -> None:
    if not pods:
        return
    click.echo(f"\n{title}")
    print_table([_displaced(sign, each) for each in pods])


def _displaced(sign: str, each: Displacement) -> tuple[str, ...]:
    whose = str(each.workload) if each.workload is not None else ""
    return f"  {sign} {each.pod}", whose, f"from {each.node}", each.right, each.text


def _print_waiting(difference: WhatIf) -> None:
    if not difference.still_waiting:
        return
    click.echo("\nWould wait")
    # Workloads that are worse off come first.
    waiting = sorted(difference.still_waiting, key=lambda each: not each.worse)
    print_table(
        [
            (f"  {'!' if each.worse else '·'} {each.workload}", each.why.text, _when(each.expected_start))
            for each in waiting[:_MOST_WAITING]
        ]
    )
    if len(waiting) > _MOST_WAITING:
        click.echo(f"  … and {len(waiting) - _MOST_WAITING} more; `-o json` has all")


def _when(start: ExpectedStart | None) -> str:
    if start is None or start.at is None:
        return "start unknown"
    return "at once" if start.sureness == "exact" else f"about {start.at}"


def _change(before: float | None, after: float | None) -> str:
    old, new = ("unlimited" if amount is None else number(amount) for amount in (before, after))
    return old if old == new else f"{old} → {new}"

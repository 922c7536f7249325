"""The options that describe simulated nodes, shared by the commands that make them."""

from __future__ import annotations

import click

from spinney.api.meta import Json
from spinney.cli.options import bundled
from spinney.embedded.nodes.profile import GPU_MEMORY_MIB, Profile


def _profile(
    *,
    nodes: int,
    gpus: int,
    gpu_memory: int,
    dra: bool,
    cpu: str,
    memory: str,
    racks: int,
    blocks: int,
    zones: int,
    labels: tuple[str, ...],
    taints: tuple[str, ...],
) -> Profile:
    try:
        return Profile(
            count=nodes,
            gpus=gpus,
            gpu_memory_mib=gpu_memory,
            devices="dra" if dra else "plugin",
            cpu=cpu,
            memory=memory,
            racks=racks,
            blocks=min(blocks, racks),
            zones=min(zones, racks),
            labels=dict(_label(text) for text in labels),
            taints=tuple(_taint(text) for text in taints),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _label(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise ValueError(f"label {text!r}: write KEY=VALUE")
    return key, value


def _taint(text: str) -> Json:
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    if not key or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise ValueError(f"taint {text!r}: write KEY=VALUE:EFFECT with NoSchedule, PreferNoSchedule or NoExecute")
    return {"key": key, "value": value, "effect": effect}


# The command gets the profile of the nodes.
node_options = bundled(
    "nodes",
    _profile,
    click.option(
        "--nodes", type=click.IntRange(min=0), default=64, show_default=True, help="How many simulated nodes."
    ),
    click.option("--gpus", type=click.IntRange(min=0), default=8, show_default=True, help="GPUs per node."),
    click.option(
        "--gpu-memory",
        type=click.IntRange(min=1),
        default=GPU_MEMORY_MIB,
        show_default=True,
        metavar="MIB",
        help="Memory of a GPU.",
    ),
    click.option("--dra", is_flag=True, help="Offer GPUs in resource slices instead of as nvidia.com/gpu."),
    click.option("--cpu", default="128", show_default=True, help="CPUs per node."),
    click.option("--memory", default="1Ti", show_default=True, help="Memory per node."),
    click.option(
        "--racks", type=click.IntRange(min=1), default=8, show_default=True, help="Racks that the nodes stand in."
    ),
    click.option(
        "--blocks", type=click.IntRange(min=1), default=2, show_default=True, help="Blocks that the racks stand in."
    ),
    click.option(
        "--zones", type=click.IntRange(min=1), default=1, show_default=True, help="Zones that the racks stand in."
    ),
    click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label for every node."),
    click.option("--taint", "taints", multiple=True, metavar="KEY=VALUE:EFFECT", help="A taint for every node."),
)

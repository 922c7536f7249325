"""The options that describe simulated nodes, shared by the commands that make them."""

from __future__ import annotations

from typing import Any

import click

from spinney.api import duration
from spinney.api.meta import Json
from spinney.cli.options import bundled
from spinney.embedded.controllers.autoscaling.node_groups import NodeGroup
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


class NodeGroupType(click.ParamType[NodeGroup]):
    """`name=burst,min=0,max=4,gpus=8`."""

    name = "KEY=VALUE,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> NodeGroup:
        """The group, or a usage error that says what may be written."""
        if isinstance(value, NodeGroup):
            return value
        pairs = dict(part.partition("=")[::2] for part in str(value).split(","))
        unknown = [key for key in pairs if key not in _GROUP_KEYS]
        if unknown or not pairs.get("name"):
            self.fail(f"{value!r}: write name=NAME and any of {', '.join(_GROUP_KEYS[1:])}", param, ctx)
        try:
            gpus = int(pairs.get("gpus", "8"))
            return NodeGroup(
                name=pairs["name"],
                least=int(pairs.get("min", "0")),
                most=int(pairs.get("max", "4")),
                profile=Profile(gpus=gpus, cpu=pairs.get("cpu", "128"), memory=pairs.get("memory", "1Ti")),
                idle_seconds=duration.seconds(pairs.get("idle", "60s")),
            )
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


_GROUP_KEYS = ("name", "min", "max", "gpus", "cpu", "memory", "idle")

node_group_option = click.option(
    "--node-group",
    "node_groups",
    type=NodeGroupType(),
    multiple=True,
    help="Nodes that a stand-in autoscaler adds for unschedulable pods and removes when idle: "
    "name=burst,min=0,max=4,gpus=8,cpu=128,memory=1Ti,idle=60s.",
)

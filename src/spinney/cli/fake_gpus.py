"""`spinney fake-gpus`: GPUs for clusters whose nodes have none."""

from __future__ import annotations

import asyncio
import os
import socket

import click
import yaml

from spinney.api import labels
from spinney.api.image import default_image
from spinney.app.errors import UserError
from spinney.kube import logs
from spinney.services.fakegpus.manifest import daemon_set

_count = click.option("--count", type=click.IntRange(1, 64), default=8, show_default=True, help="GPUs of each node.")
_resource = click.option("--resource", default=labels.GPU_RESOURCE, show_default=True, help="The resource's name.")


@click.group()
def fake_gpus() -> None:
    """Offer GPUs that do not exist, so that gangs, fractions and queues can be tried on any cluster, such as kind."""


@fake_gpus.command(
    epilog="""\b
Example:
  spinney fake-gpus manifest --count 4 | kubectl apply --server-side -f -
"""
)
@_count
@_resource
@click.option("--namespace", "-n", default="kube-system", show_default=True, help="Where the pods run.")
@click.option("--image", default="", help="Default: SPINNEY_IMAGE, else the local image of this version.")
def manifest(count: int, resource: str, namespace: str, image: str) -> None:
    """Print the DaemonSet that offers fake GPUs on every node, as YAML."""
    made = daemon_set(namespace, image or default_image(), count, resource)
    click.echo(yaml.safe_dump(made, sort_keys=False), nl=False)


@fake_gpus.command(
    epilog="""\b
Example, on a node:
  spinney fake-gpus serve --count 4
"""
)
@_count
@_resource
def serve(count: int, resource: str) -> None:
    """Offer fake GPUs to the kubelet of this machine until stopped; as root. The DaemonSet runs this."""
    try:
        from spinney.services.fakegpus import plugin  # noqa: PLC0415  # an optional package
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: run `pip install spinney[fake-gpus]`") from error
    logs.configure("text", "info")
    node = os.environ.get("NODE_NAME") or socket.gethostname()
    asyncio.run(plugin.serve(node, count, resource))

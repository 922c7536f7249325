"""`spinney crds`: the definitions that a cluster needs, for `kubectl apply --server-side`."""

from __future__ import annotations

import click

from spinney.api.crd import FOREIGN_GROUPS, GROUPS, OUR_GROUPS
from spinney.api.crd import crds as crds_of
from spinney.cli.output import print_json, print_yaml


@click.command()
@click.option(
    "--group",
    "groups",
    multiple=True,
    type=click.Choice(GROUPS),
    metavar="GROUP",
    help=f"Only this API group; may be given several times. Ours: {', '.join(OUR_GROUPS)}. "
    f"Of other projects, on request: {', '.join(FOREIGN_GROUPS)}.",
)
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def crds(groups: tuple[str, ...], output: str) -> None:
    """Print the CustomResourceDefinitions that Spinney needs.

    \b
    Examples:
      spinney crds | kubectl apply --server-side -f -
      spinney crds --group grove.io
      spinney crds --group scheduling.volcano.sh -o json
    """
    documents = crds_of(groups or OUR_GROUPS)
    if output == "json":
        print_json({"apiVersion": "v1", "kind": "List", "items": documents})
        return
    print_yaml(documents)

"""`spinney crds`: the definitions that a cluster needs, for `kubectl apply --server-side`."""

from __future__ import annotations

import json

import click
import yaml

from spinney.api.crd import FOREIGN_GROUPS, GROUPS, OUR_GROUPS
from spinney.api.crd import crds as definitions


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
    found = definitions(groups or OUR_GROUPS)
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}, indent=2))
        return
    click.echo(yaml.dump_all(found, Dumper=_Plain, sort_keys=False, explicit_start=True, width=120), nl=False)


class _Plain(yaml.SafeDumper):
    """Writes shared parts out in full, so that each definition can be read and cut out alone ."""

    def ignore_aliases(self, data: object) -> bool:
        """Never an alias."""
        return True

"""`spinney manifests`: what an administrator applies before a component runs."""

from __future__ import annotations

import click

from spinney.api.meta import Json
from spinney.app.component_settings import choose_parts, configured_components
from spinney.app.components import load, registered
from spinney.app.errors import UserError
from spinney.cli.options import webhook_url
from spinney.cli.output import print_yaml
from spinney.kube.manifests import manifests as manifests_of


@click.command(
    epilog=f"""Components: {", ".join(registered())}.

\b
Examples:
  spinney manifests grove | kubectl apply -f -
  spinney manifests --all --namespace spinney-system
  spinney manifests backends --only kai,volcano --crds
  spinney manifests grove --webhook-url https://10.0.0.7:9443
"""
)
@click.argument("components", nargs=-1, metavar="COMPONENT...")
@click.option("--all", "everything", is_flag=True, help="Every component there is.")
@click.option("--namespace", "-n", default="spinney-system", show_default=True, help="Where the components run.")
@click.option("--only", "names", default="", metavar="NAMES", help="Of backends, only these: --only kai,volcano.")
@click.option("--crds", is_flag=True, help="Also the CustomResourceDefinitions of the backends' schedulers.")
@webhook_url
def manifests(
    *, components: tuple[str, ...], everything: bool, namespace: str, names: str, crds: bool, webhook_url: str
) -> None:
    """Print accounts, roles and webhook configurations for components, as YAML."""
    chosen = _loadable() if everything else components
    if not chosen:
        raise click.UsageError(f"name a component, or say --all; there are: {', '.join(registered())}")
    documents: list[Json] = []
    for component, _ in configured_components(chosen, overrides=choose_parts(names)):
        documents += component.crds() if crds else ()
        documents += manifests_of(component, namespace, webhook_url)
    print_yaml(documents)


def _loadable() -> tuple[str, ...]:
    """Every component; one of another package that cannot be loaded is named on stderr and left out."""
    names = []
    for name in registered():
        try:
            load(name)
        except UserError as error:
            click.echo(f"warning: {error}", err=True)
        else:
            names.append(name)
    return tuple(names)

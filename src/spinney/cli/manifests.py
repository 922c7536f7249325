"""`spinney manifests`: what an administrator applies before a component runs."""

from __future__ import annotations

import click
import yaml

from spinney.app.components import COMPONENTS, load
from spinney.kube import manifests as kube_manifests


@click.command(
    epilog=f"""Components: {", ".join(COMPONENTS)}.

\b
Examples:
  spinney manifests grove | kubectl apply -f -
  spinney manifests --all --namespace spinney-system
  spinney manifests grove --webhook-url https://10.0.0.7:9443
"""
)
@click.argument("components", nargs=-1, metavar="COMPONENT...")
@click.option("--all", "everything", is_flag=True, help="Every component there is.")
@click.option("--namespace", "-n", default="spinney-system", show_default=True, help="Where the components run.")
@click.option("--webhook-url", default="", help="Register webhooks by this https URL instead of by a Service.")
def manifests(components: tuple[str, ...], everything: bool, namespace: str, webhook_url: str) -> None:
    """Print accounts, roles and webhook configurations for components, as YAML."""
    if webhook_url and not webhook_url.startswith("https://"):
        raise click.BadParameter(f"{webhook_url!r} does not start with https://", param_hint="--webhook-url")
    names = tuple(COMPONENTS) if everything else components
    if not names:
        raise click.UsageError(f"name a component, or say --all; there are: {', '.join(sorted(COMPONENTS))}")
    documents = [
        document for name in names for document in kube_manifests.manifests(load(name), namespace, webhook_url)
    ]
    click.echo(yaml.safe_dump_all(documents, sort_keys=False), nl=False)

"""`spinney install`: every object of an installation, for `kubectl apply`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import click

from spinney.api.meta import Json
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.app.errors import wrong_value
from spinney.app.install.objects import definitions, namespace_object, objects
from spinney.app.install.values import read_values, setting
from spinney.cli.output import print_yaml


@click.command(
    epilog="""Values are those of the Helm chart: deploy/chart/README.md lists them with their defaults.

\b
Examples:
  spinney install | kubectl apply --server-side -f -
  spinney install --set replicas=2 --set image.repository=registry.example.com/spinney
  spinney install -f values.yaml --api-versions monitoring.coreos.com/v1
"""
)
@click.option("--namespace", "-n", default="spinney-system", show_default=True, help="Where the components run.")
@click.option(
    "--values", "-f", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="A file of values."
)
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="One value; wins over files.")
@click.option(
    "--api-versions",
    "served",
    multiple=True,
    metavar="GROUP/VERSION",
    help="What the cluster serves: monitoring.coreos.com/v1 adds ServiceMonitors and alert rules.",
)
@click.option("--crds/--no-crds", default=True, help="Also the CustomResourceDefinitions. Default: yes.")
def install(
    *, namespace: str, files: tuple[Path, ...], settings: tuple[str, ...], served: tuple[str, ...], crds: bool
) -> None:
    """Print every object of an installation, as YAML: the same as the Helm chart."""
    values = read_values([*(_layer(file) for file in files), *(setting(text) for text in settings)])
    documents = [namespace_object(namespace), *(definitions() if crds else ())]
    print_yaml([*documents, *objects(values, namespace, version("spinney"), frozenset(served))])


def _layer(file: Path) -> Json:
    try:
        layer = read_yaml(file.read_bytes()) or {}
    except OSError as error:
        raise wrong_value("--values", f"{file}: {error.strerror}") from error
    except YamlError as error:
        raise wrong_value("--values", f"{file}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(layer, dict):
        raise wrong_value("--values", f"{file}: a map of values is expected, such as `replicas: 2`")
    return layer

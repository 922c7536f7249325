"""The `spinney` command: one group, one module per command."""

from __future__ import annotations

import click


@click.group()
@click.version_option(package_name="spinney")
def main() -> None:
    """Gang scheduling for Kubernetes: describe an AI workload once, get it placed together or not at all."""

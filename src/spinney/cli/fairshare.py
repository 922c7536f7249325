"""`spinney fairshare`: the fair shares of queues that do not exist yet."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from spinney.api.meta import convert
from spinney.cli.output import print_json
from spinney.scheduler.share.simulation import Question, simulate


@click.command(
    epilog="""\b
Examples:
  echo '{"totalResource": {"GPU": 8}, "queues": [{"uid": "a"}, {"uid": "b"}]}' > plan.json
  spinney fairshare plan.json
"""
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def fairshare(file: Path) -> None:
    """Fair shares for the queues in FILE: JSON as upstream's fair-share simulator takes it at /simulate."""
    try:
        question = convert(Question, msgspec.json.decode(file.read_bytes()))
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise click.BadParameter(f"{file}: {error}", param_hint="FILE") from error
    print_json(simulate(question))

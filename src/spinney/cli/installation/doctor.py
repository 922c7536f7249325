"""`spinney doctor`: what is wrong with an installation, and what to do."""

from __future__ import annotations

import asyncio
from collections import Counter

import click
import msgspec

from spinney.app.doctor.examination import examine
from spinney.app.doctor.findings import Finding, Target
from spinney.cli.options import Connection, connection_options
from spinney.cli.output import print_json
from spinney.kube.client.https import connect
from spinney.kube.clock import SystemClock

_SIGNS = {"ok": "✓", "note": "i", "warning": "!", "problem": "✗", "unknown": "?"}


@click.command(
    epilog="""Exit code 0 if nothing is wrong, 1 if something is; notes and warnings do not count.

\b
Examples:
  spinney doctor
  spinney doctor -n my-namespace --quiet
  spinney doctor -o json | jq '.findings[] | select(.status == "problem")'
"""
)
@connection_options
@click.option("--namespace", "-n", default="spinney-system", show_default=True, help="Where the components run.")
@click.option("--quiet", "-q", is_flag=True, help="Leave out what is well.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(*, connection: Connection, namespace: str, quiet: bool, output: str) -> int:
    """Examine a cluster: CRDs, webhooks, certificates, Leases, rights, nodes, queues; what is wrong, what to do."""
    findings = asyncio.run(_examined(connection, namespace))
    problems = sum(finding.status == "problem" for finding in findings)
    shown = [finding for finding in findings if not quiet or finding.status != "ok"]
    if output == "json":
        print_json({"healthy": not problems, "findings": msgspec.to_builtins(shown)})
    else:
        _print(shown, Counter(finding.status for finding in findings))
    return 1 if problems else 0


async def _examined(connection: Connection, namespace: str) -> list[Finding]:
    client = connect(connection.server())
    try:
        return await examine(Target(client, SystemClock(), namespace))
    finally:
        await client.close()


def _print(findings: list[Finding], counts: Counter[str]) -> None:
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        advice = f" → {finding.advice}" if finding.advice else ""
        click.echo(f"{_SIGNS[finding.status]} {finding.check.ljust(width)}  {finding.text}{advice}")
    words = ", ".join(f"{counts[status]} {status}" for status in _SIGNS if counts[status])
    click.echo(f"\n{words}")

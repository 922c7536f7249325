"""Run all checks in order; a check that may not read something reports that, and the others go on."""

from __future__ import annotations

from spinney.app.doctor.api_server import check_clock, check_version
from spinney.app.doctor.capacity import check_fractions, check_nodes, check_queues
from spinney.app.doctor.definitions import check_definitions
from spinney.app.doctor.findings import Check, Finding, Target
from spinney.app.doctor.neighbours import check_neighbours
from spinney.app.doctor.processes import check_config, check_deployments
from spinney.app.doctor.rights import check_own_rights, check_roles
from spinney.app.doctor.webhooks import check_webhooks
from spinney.kube.errors import ApiError, NotFound

_CHECKS: tuple[tuple[str, Check], ...] = (
    ("version", check_version),
    ("clock", check_clock),
    ("crds", check_definitions),
    ("deployments", check_deployments),
    ("config", check_config),
    ("webhooks", check_webhooks),
    ("rights", check_roles),
    ("rights", check_own_rights),
    ("nodes", check_nodes),
    ("fractions", check_fractions),
    ("queues", check_queues),
    ("neighbours", check_neighbours),
)


async def examine(target: Target) -> list[Finding]:
    """Everything that was found."""
    findings = []
    for name, check in _CHECKS:
        try:
            findings += await check(target)
        except NotFound:
            # A kind is not served: the check of CRDs says so.
            continue
        except ApiError as error:
            findings.append(Finding(check=name, status="unknown", text=str(error), advice="ask an administrator"))
    return findings

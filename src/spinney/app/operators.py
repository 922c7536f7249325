"""Stand-ins for the operators of other projects, with the kinds that they serve."""

from __future__ import annotations

from functools import partial

from spinney.app.installation import install_foreign_crds
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.operators.controller import OperatorController
from spinney.embedded.controllers.operators.registry import OPERATORS, definition
from spinney.kube.client.discovery import Discovery


async def start_operators(cluster: Cluster) -> None:
    """Define the kinds that are not there yet, and run a stand-in for each that is served in the version it knows."""
    client = cluster.client()
    await install_foreign_crds(client, [definition(operator) for operator in OPERATORS])
    discovery = Discovery(client)
    for operator in OPERATORS:
        resource = operator.resource
        if await discovery.resource(resource.api_version, resource.kind) is not None:
            await cluster.start_controller(partial(OperatorController, operator))

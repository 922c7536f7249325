"""The platform operator on the embedded and on the real API server: what it deploys is accepted, settles, and goes."""

from __future__ import annotations

import asyncio
from typing import Any

from spinney.api import labels
from spinney.api.apps import DaemonSet, Deployment
from spinney.api.core import ConfigMap, Service
from spinney.api.discovery import EndpointSlice
from spinney.api.kai import Config, SchedulingShard
from spinney.api.untyped import untyped
from spinney.app.components import load
from spinney.app.installation import install_crds
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.manifests import manifests
from spinney.services.platform.shard_config import NAMESPACE
from tests import worlds
from tests.e2e.installation import Installed

ENDPOINT_SLICES = untyped(EndpointSlice.resource)
SERVICES = {"pod-grouper", "binder", "queue-controller", "podgroup-controller", "node-scale-adjuster", "admission"}
CONFIG: dict[str, Any] = {
    "global": {"replicaCount": 2, "nodeSelector": {"role": "control"}, "tolerations": [{"operator": "Exists"}]},
    "admission": {"gpuSharing": True, "service": {"podDisruptionBudget": {"enabled": True}}},
}


async def test_everything_is_deployed_settles_and_goes(cluster: worlds.Cluster) -> None:
    """The operator deploys all services under its own account, then writes no more; without Config all of it goes."""
    client = cluster.client()
    held = Installed(client)
    await install_crds(client)
    await held.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for document in manifests(load("platform"), NAMESPACE):
        await held.apply(document)
    await client.create(Config, {"metadata": {"name": labels.KAI_CONFIG}, "spec": CONFIG})
    aligned = {"plugins": {"numa": {"enabled": True}}}
    await client.create(SchedulingShard, {"metadata": {"name": "default"}, "spec": aligned})
    operator = cluster.client(f"system:serviceaccount:{NAMESPACE}:spinney-platform")
    host = Host(operator, SystemClock(), [(load("platform"), None)], namespace=NAMESPACE)
    life = asyncio.create_task(host.run())
    try:
        await held.eventually(lambda: _deployed(held))
        await _at_rest(host)
        written = await _versions(held)
        assert set(written) == {*SERVICES, "kai-scheduler-default"}
        # Anything that changes makes it look again; what is as it should be stays untouched.
        await client.patch(Config, labels.KAI_CONFIG, {"metadata": {"annotations": {"look": "again"}}})
        await _at_rest(host)
        assert await _versions(held) == written
        await client.delete(SchedulingShard, "default")
        await client.delete(Config, labels.KAI_CONFIG)
        await held.eventually(lambda: _gone(held))
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def _at_rest(host: Host) -> None:
    """Wait until the operator has written nothing for a while."""
    writes, before = host.runtimes["platform"].client.writes, -1
    while writes.total() != before:
        before = writes.total()
        await asyncio.sleep(2)


async def _deployed(held: Installed) -> bool:
    exporters = (await held.client.list(DaemonSet, NAMESPACE)).items
    slices = (await held.client.list(ENDPOINT_SLICES, NAMESPACE)).items
    running = len((await held.client.list(Deployment, NAMESPACE)).items) == len(SERVICES) + 1
    return running and len(exporters) == 1 and "kai-scheduler-default-leader" in {item.name for item in slices}


async def _versions(held: Installed) -> dict[str, int]:
    """The generation of each Deployment: a controller's status does not count."""
    return {
        deployment.name: deployment.metadata.generation
        for deployment in (await held.client.list(Deployment, NAMESPACE)).items
    }


async def _gone(held: Installed) -> bool:
    for kind in (Deployment, DaemonSet, Service, ConfigMap):
        listing = await held.client.list(kind, NAMESPACE, labels=f"{labels.MANAGED_BY}={labels.KAI_OPERATOR}")
        if listing.items:
            return False
    return True

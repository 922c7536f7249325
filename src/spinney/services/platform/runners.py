"""How processes run: as Deployments and DaemonSets, or in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spinney.api.apps import DaemonSet, Deployment
from spinney.api.conditions import find
from spinney.api.kaiconfig import ConfigSpec
from spinney.api.meta import Json
from spinney.kube.caches.cache import Cache
from spinney.services.platform.deployments import plan_deployment
from spinney.services.platform.node_agents import plan_daemon_set
from spinney.services.platform.processes import Process


class Runner(Protocol):
    """Runs processes."""

    def objects(self, process: Process, config: ConfigSpec, image: str) -> list[Json]:
        """The objects of a process, apart from its account and webhooks."""

    async def keep(self, group: str, processes: Sequence[Process]) -> None:
        """Run exactly these processes of a group."""

    def waiting(self, process: Process, namespace: str) -> str:
        """Why a process does not serve yet; empty where it does."""


class Deployments:
    """Runs processes as Deployments and DaemonSets."""

    def __init__(self, deployments: Cache[Deployment], daemon_sets: Cache[DaemonSet]) -> None:
        self._deployments = deployments
        self._daemon_sets = daemon_sets

    def objects(self, process: Process, config: ConfigSpec, image: str) -> list[Json]:
        """The Deployment or DaemonSet, and its other objects."""
        plan = plan_daemon_set if process.on_every_node else plan_deployment
        return plan(process, config, image)

    async def keep(self, group: str, processes: Sequence[Process]) -> None:
        """Nothing to do: the objects suffice."""

    def waiting(self, process: Process, namespace: str) -> str:
        """Why the Deployment or DaemonSet is not available yet."""
        if process.on_every_node:
            return self._waiting_on_nodes(process, namespace)
        deployment = self._deployments.get((namespace, process.name))
        if deployment is None:
            return f"Deployment {process.name} does not exist yet"
        status = deployment.status
        if status.observed_generation < deployment.metadata.generation:
            return f"Deployment {process.name} has not been looked at yet"
        if status.updated_replicas >= process.replicas and status.available_replicas >= process.replicas:
            return ""
        why = find(status.conditions, "ReplicaFailure") or find(status.conditions, "Available")
        reason = f": {why.message}" if why is not None and why.message else ""
        ready = min(status.updated_replicas, status.available_replicas)
        return f"Deployment {process.name} has {ready} of {process.replicas} pods available{reason}"

    def _waiting_on_nodes(self, process: Process, namespace: str) -> str:
        daemon_set = self._daemon_sets.get((namespace, process.name))
        if daemon_set is None or daemon_set.status.observed_generation < daemon_set.metadata.generation:
            return f"DaemonSet {process.name} has not been looked at yet"
        ready, wanted = daemon_set.status.number_ready, daemon_set.status.desired_number_scheduled
        return f"DaemonSet {process.name} is ready on {ready} of {wanted} nodes" if ready < wanted else ""

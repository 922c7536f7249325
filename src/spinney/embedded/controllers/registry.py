"""The controllers that a cluster runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from spinney.embedded.controllers.autoscaling.hpa import Autoscalers
from spinney.embedded.controllers.devices.resource_claims import ClaimRelease, PodClaims
from spinney.embedded.controllers.devices.resource_slices import ResourceSlices
from spinney.embedded.controllers.jobs.cronjob import CronJobs
from spinney.embedded.controllers.jobs.job import Jobs
from spinney.embedded.controllers.network.service_endpoints import ServiceEndpoints
from spinney.embedded.controllers.pods.disruption_budgets import DisruptionBudgets
from spinney.embedded.controllers.pods.garbage import PodGC
from spinney.embedded.controllers.pods.node_taints import NodeTaints
from spinney.embedded.controllers.pods.taint_eviction import TaintEviction
from spinney.embedded.controllers.sets.daemonset import DaemonSets
from spinney.embedded.controllers.sets.deployment import Deployments
from spinney.embedded.controllers.sets.replicaset import ReplicaSets
from spinney.embedded.controllers.sets.statefulset import StatefulSets
from spinney.embedded.controllers.storage.ephemeral import EphemeralVolumes
from spinney.embedded.controllers.storage.protection import ClaimProtection, VolumeProtection
from spinney.embedded.controllers.storage.volumes import ClaimBinding, VolumeReclaim
from spinney.kube.controllers.controller import Controller
from spinney.kube.runtime import Runtime


class HasController(Protocol):
    """What has a controller to run."""

    controller: Controller


Factory = Callable[[Runtime], HasController]

CONTROLLERS: tuple[Factory, ...] = (
    Jobs,
    CronJobs,
    Deployments,
    ReplicaSets,
    StatefulSets,
    DaemonSets,
    NodeTaints,
    TaintEviction,
    PodGC,
    DisruptionBudgets,
    Autoscalers,
    PodClaims,
    ClaimRelease,
    ResourceSlices,
    ClaimBinding,
    EphemeralVolumes,
    VolumeReclaim,
    ClaimProtection,
    VolumeProtection,
    ServiceEndpoints,
)

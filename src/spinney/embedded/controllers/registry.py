"""The table of controllers that a cluster runs."""

from __future__ import annotations

from collections.abc import Callable

from spinney.embedded.controllers.autoscaling import hpa
from spinney.embedded.controllers.devices import resource_claims, resource_slices
from spinney.embedded.controllers.jobs import cronjob, job
from spinney.embedded.controllers.network import service_endpoints
from spinney.embedded.controllers.pods import disruption_budgets, garbage, node_taints, taint_eviction
from spinney.embedded.controllers.sets import daemonset, deployment, replicaset, statefulset
from spinney.embedded.controllers.storage import ephemeral, protection, volumes
from spinney.kube.controllers.controller import Controller
from spinney.kube.runtime import Runtime

Factory = Callable[[Runtime], Controller]

CONTROLLERS: tuple[Factory, ...] = (
    job.controller,
    cronjob.controller,
    deployment.controller,
    replicaset.controller,
    statefulset.controller,
    daemonset.controller,
    node_taints.controller,
    taint_eviction.controller,
    garbage.controller,
    disruption_budgets.controller,
    hpa.controller,
    resource_claims.pod_claims,
    resource_claims.used_claims,
    resource_slices.controller,
    volumes.claims,
    ephemeral.controller,
    volumes.volumes,
    protection.claims,
    protection.volumes,
    service_endpoints.controller,
)

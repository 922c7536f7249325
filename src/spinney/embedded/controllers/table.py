"""The table of controllers that a cluster runs."""

from __future__ import annotations

from collections.abc import Callable

from spinney.embedded.controllers import (
    budgets,
    claims,
    cronjob,
    daemonset,
    deployment,
    ephemeral,
    hpa,
    job,
    nodetaints,
    podgc,
    protection,
    replicaset,
    serviceendpoints,
    slices,
    statefulset,
    tainteviction,
    volumes,
)
from spinney.kube.controller import Controller
from spinney.kube.runtime import Runtime

Factory = Callable[[Runtime], Controller]

CONTROLLERS: tuple[Factory, ...] = (
    job.controller,
    cronjob.controller,
    deployment.controller,
    replicaset.controller,
    statefulset.controller,
    daemonset.controller,
    nodetaints.controller,
    tainteviction.controller,
    podgc.controller,
    budgets.controller,
    hpa.controller,
    claims.pod_claims,
    claims.used_claims,
    slices.controller,
    volumes.claims,
    ephemeral.controller,
    volumes.volumes,
    protection.claims,
    protection.volumes,
    serviceendpoints.controller,
)

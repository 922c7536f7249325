"""Nominate a node for each pod of a gang that only just fits.

kube-scheduler tries the nominated node first, and keeps its resources for the pod while it places others.
"""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.backends.gang_pods import gated
from spinney.backends.kube_scheduler.in_turn.release_plan import Verdict


def plan_nominations(pods: Iterable[Pod], verdict: Verdict) -> list[tuple[Pod, Json]]:
    """The status patches that bring nominations up to date; only kube-scheduler nominates pods without a gate."""
    gated_pods = [pod for pod in pods if gated(pod)]
    if not verdict.readiness.ready:
        # A nomination that outlives its verdict would keep resources from others.
        return [(pod, _patch(pod, None)) for pod in gated_pods if pod.status.nominated_node_name]
    wanted = [(pod, verdict.placement.get(pod.name)) for pod in gated_pods]
    return [(pod, _patch(pod, node)) for pod, node in wanted if node and node != pod.status.nominated_node_name]


def _patch(pod: Pod, node: str | None) -> Json:
    return {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}

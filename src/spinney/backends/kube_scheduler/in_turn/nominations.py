"""The node that each pod of a gang is nominated for, where kube-scheduler must not choose by itself.

kube-scheduler tries the nominated node first, and leaves the room there to the pod while others are placed.
"""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.meta import Json
from spinney.api.pod import Pod
from spinney.backends.gang_pods import gated
from spinney.backends.kube_scheduler.in_turn.release_plan import Verdict


def plan_nominations(pods: Iterable[Pod], verdict: Verdict) -> list[tuple[Pod, Json]]:
    """The status patches that bring nominations up to date; a pod whose gate is off is kube-scheduler's to nominate."""
    held = [pod for pod in pods if gated(pod)]
    if not verdict.readiness.ready:
        # A nomination that outlives its verdict would keep the room from others.
        return [(pod, _patch(pod, None)) for pod in held if pod.status.nominated_node_name]
    wanted = [(pod, verdict.places.get(pod.name)) for pod in held]
    return [(pod, _patch(pod, node)) for pod, node in wanted if node and node != pod.status.nominated_node_name]


def _patch(pod: Pod, node: str | None) -> Json:
    return {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}

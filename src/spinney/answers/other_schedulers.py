"""Gangs that another scheduler places: what it says about them, and where only it knows more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from spinney.answers.cluster import Cluster
from spinney.answers.model import Reason
from spinney.api import labels, reasons
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Key
from spinney.api.podgang import PodGang
from spinney.backends.blockers import Blocker, Seen, blocker
from spinney.backends.interface import Backend, Reserving
from spinney.backends.registry import Registry
from spinney.scheduler.why.texts import sentence_case

_OURS = "kai"


def blocked_elsewhere(cluster: Cluster, pods: Sequence[Pod]) -> Reason | None:
    """What blocks the first of the pods' gangs that waits for another scheduler."""
    for key in gangs_of(pods):
        gang = cluster.gang_of.get(key)
        if gang is None or gang.metadata.labels.get(labels.SCHEDULER_BACKEND, _OURS) == _OURS:
            continue
        blocking = _blocker(cluster, gang, [pod for pod in pods if _gang(pod) == key])
        if blocking is not None:
            steps = [sentence_case(step) for step in blocking.advice]
            return Reason(code=blocking.code, text=sentence_case(blocking.text), advice=steps)
    return None


def problems_of(cluster: Cluster, pods: Sequence[Pod]) -> Iterator[str]:
    """What is wrong with gangs that are placed: topology that was not kept, pods beyond the minimum that wait."""
    for key in gangs_of(pods):
        gang = cluster.gang_of.get(key)
        for kind in (reasons.TOPOLOGY_VIOLATED, reasons.SURPLUS_WAITING, reasons.DOWNGRADED):
            condition = find(gang.status.conditions, kind) if gang is not None else None
            if condition is not None and condition.status == "True":
                yield f"Gang {key[1]}: {kind}: {sentence_case(condition.message)}"


def gangs_of(pods: Sequence[Pod]) -> list[Key]:
    """The gangs of pods, each once."""
    return [key for key in dict.fromkeys(map(_gang, pods)) if key[1]]


def _gang(pod: Pod) -> Key:
    return pod.namespace, pod.metadata.labels.get(labels.PODGANG, "")


def _blocker(cluster: Cluster, gang: PodGang, pods: Sequence[Pod]) -> Blocker | None:
    backend = _backends().get(gang.metadata.labels[labels.SCHEDULER_BACKEND])
    events = [event for pod in pods for event in cluster.events_of.get((pod.namespace, pod.uid), ())]
    return blocker(backend, Seen(gang, pods, placeholders=_placeholders(cluster, backend, gang), events=events))


def _placeholders(cluster: Cluster, backend: Backend | None, gang: PodGang) -> list[Pod]:
    reserving: object = backend
    if not isinstance(reserving, Reserving):
        return []
    name = reserving.reservation(gang)
    return [pod for pod in cluster.pods if pod.namespace == gang.namespace and reserving.reserved_by(pod) == name]


@cache
def _backends() -> Registry:
    return Registry.load()

"""Which changes can matter to a set replica: the others, our own writes among them, wake nobody."""

from __future__ import annotations

from typing import Any

from spinney.api import reasons
from spinney.api.conditions import find
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup
from spinney.api.meta import Condition, Object
from spinney.api.podgang import PodGang
from spinney.grove import podstate
from spinney.kube.cache import Change


def matters(change: Change[Any]) -> bool:
    """Whether a replica has to look again: something came or went, or a fact that plans are made from has changed."""
    if change.old is None or change.new is None:
        return True
    return facts(change.old) != facts(change.new)


def facts(found: Object) -> tuple[object, ...]:
    """What plans read of an object."""
    metadata = found.metadata
    common = (metadata.generation, metadata.deletion_timestamp, metadata.labels, metadata.annotations)
    if isinstance(found, Pod):
        return (*common[1:], *pod_facts(found))
    if isinstance(found, PodGang):
        return (*common, _said(found.status.conditions, reasons.BACKEND_READY))
    if isinstance(found, PodClique):
        turned = (reasons.MIN_AVAILABLE_BREACHED, reasons.CLIQUE_SCHEDULED)
        return (*common, metadata.finalizers, *(_said(found.status.conditions, kind) for kind in turned))
    if isinstance(found, PodCliqueScalingGroup):
        turned = (reasons.MIN_AVAILABLE_BREACHED, reasons.GANG_TERMINATION_IN_PROGRESS)
        return (*common, metadata.finalizers, *(_said(found.status.conditions, kind) for kind in turned))
    if isinstance(found, Service):
        return (*common, found.spec.publish_not_ready_addresses)
    return (*common, metadata.resource_version)


def pod_facts(pod: Pod) -> tuple[object, ...]:
    """What a pod does, as the operator sees it."""
    return (
        pod.spec.scheduling_gates,
        podstate.is_scheduled(pod),
        podstate.is_ready(pod),
        pod.status.phase,
        podstate.has_failed(pod),
        podstate.is_stuck(pod),
        podstate.is_disrupted(pod),
        _refusal(pod),
    )


def _refusal(pod: Pod) -> str:
    said = find(pod.status.conditions, reasons.POD_SCHEDULED)
    return said.message if said is not None and said.status == "False" else ""


def _said(conditions: tuple[Condition, ...], kind: str) -> tuple[object, ...]:
    found = find(conditions, kind)
    return (found.status, found.reason, found.message, found.observed_generation) if found is not None else ()

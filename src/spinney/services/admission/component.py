"""`spinney run admission`."""

from __future__ import annotations

import asyncio

import msgspec

from spinney.api import labels
from spinney.api.core import Namespace, Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import PodGroup, Queue, Topology
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Rule, Runtime, Webhook, webhook_rule
from spinney.services.admission.gate_controller import GateController, claims_of_cluster
from spinney.services.admission.settings import AdmissionSettings
from spinney.services.admission.webhooks import pod_mutation, pod_validation, queue_review, topology_validation


async def run(runtime: Runtime, settings: AdmissionSettings | None = None) -> None:
    """Keep the caches of the reviews, which the webhook server calls, and release gated pods."""
    await runtime.caches.of(Queue).synced()
    await runtime.caches.of(Namespace).synced()
    if settings is not None and settings.gate_blocked_pods:
        keeper = GateController(runtime, settings, await claims_of_cluster(runtime))
        await run_controllers(runtime, keeper.controller)
        return
    runtime.ready()
    await asyncio.Event().wait()


_RULES = (
    Rule(("scheduling.run.ai",), ("queues",), ("get", "list", "watch")),
    # A namespace can name the queue of its pods.
    Rule(("",), ("namespaces",), ("get", "list", "watch")),
    Rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
    # Gates of pods whose queue is full, and the claims of those pods.
    Rule(("",), ("pods",), ("get", "list", "watch", "patch")),
    Rule(("resource.k8s.io",), ("resourceclaims", "resourceclaimtemplates"), ("get", "list", "watch")),
)


def component(settings: AdmissionSettings | None = None) -> Component:
    """The service as its settings make it: which scheduler's pods the API server asks about."""
    return Component(
        name="admission",
        summary="Checks pods for our scheduler and wires those that share a GPU.",
        run=run,
        settings=AdmissionSettings,
        rules=_RULES,
        webhooks=_webhooks(settings or AdmissionSettings()),
        configured=component,
    )


def _webhooks(settings: AdmissionSettings) -> tuple[Webhook, ...]:
    of_our_pods = {"scheduler": _our_pods(settings)}
    of_groups = Webhook(
        name="queues.admission.kai.scheduler",
        path="/validate-queues",
        mutating=False,
        review=queue_review,
        # A group may be moved to another queue past its pods.
        rules=tuple(webhook_rule((kind.resource,), "CREATE", "UPDATE") for kind in (PodGroup, PodCliqueSet)),
    )
    return (
        Webhook(
            name="mutate.pods.admission.kai.scheduler",
            path="/mutate--v1-pod",
            mutating=True,
            review=pod_mutation,
            rules=(webhook_rule((Pod.resource,), "CREATE"),),
            match_conditions=of_our_pods,
        ),
        Webhook(
            name="validate.pods.admission.kai.scheduler",
            path="/validate--v1-pod",
            mutating=False,
            review=pod_validation,
            rules=(webhook_rule((Pod.resource,), "CREATE", "UPDATE"),),
            match_conditions=of_our_pods,
        ),
        Webhook(
            name="topology.admission.kai.scheduler",
            path="/validate-kai-scheduler-v1alpha1-topology",
            mutating=False,
            review=topology_validation,
            rules=(webhook_rule((Topology.resource,), "CREATE", "UPDATE"),),
        ),
        *((of_groups,) if settings.check_queue_access else ()),
    )


def _our_pods(settings: AdmissionSettings) -> str:
    """A CEL expression that holds for pods of our scheduler, and for those that it adopts by their queue."""
    ours = f"object.spec.schedulerName == {_quoted(settings.scheduler_name)}"
    if not settings.adopt_queued_pods:
        return ours
    queued = f"{_quoted(settings.queue_label)} in object.metadata.labels"
    unspoken = f"object.spec.schedulerName == {_quoted(labels.DEFAULT_SCHEDULER)}"
    return f"{ours} || ({unspoken} && has(object.metadata.labels) && {queued})"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


COMPONENT = component()

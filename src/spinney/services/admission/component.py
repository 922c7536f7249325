"""`spinney run admission`."""

from __future__ import annotations

import asyncio

from spinney.api.core import Namespace, Pod
from spinney.api.kai import Queue, Topology
from spinney.kube.controllers.controller import run_controllers
from spinney.kube.runtime import Component, Rule, Runtime, Webhook, webhook_rule
from spinney.services.admission.gate_controller import GateController, claims_of_cluster
from spinney.services.admission.settings import AdmissionSettings
from spinney.services.admission.webhooks import pod_mutation, pod_validation, topology_validation


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


_NOT_SYSTEM = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kai-scheduler"]}
    ]
}

COMPONENT = Component(
    name="admission",
    summary="Checks pods for our scheduler and wires those that share a GPU.",
    run=run,
    settings=AdmissionSettings,
    rules=(
        Rule(("scheduling.run.ai",), ("queues",), ("get", "list", "watch")),
        # A namespace can name the queue of its pods.
        Rule(("",), ("namespaces",), ("get", "list", "watch")),
        Rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
        # Gates of pods whose queue is full, and the claims of those pods.
        Rule(("",), ("pods",), ("get", "list", "watch", "patch")),
        Rule(("resource.k8s.io",), ("resourceclaims", "resourceclaimtemplates"), ("get", "list", "watch")),
    ),
    webhooks=(
        Webhook(
            name="mutate.pods.admission.kai.scheduler",
            path="/mutate--v1-pod",
            mutating=True,
            review=pod_mutation,
            rules=(webhook_rule((Pod.resource,), "CREATE"),),
            namespace_selector=_NOT_SYSTEM,
        ),
        Webhook(
            name="validate.pods.admission.kai.scheduler",
            path="/validate--v1-pod",
            mutating=False,
            review=pod_validation,
            rules=(webhook_rule((Pod.resource,), "CREATE", "UPDATE"),),
            namespace_selector=_NOT_SYSTEM,
        ),
        Webhook(
            name="topology.admission.kai.scheduler",
            path="/validate-kai-scheduler-v1alpha1-topology",
            mutating=False,
            review=topology_validation,
            rules=(webhook_rule((Topology.resource,), "CREATE", "UPDATE"),),
        ),
    ),
)

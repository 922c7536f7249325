"""Uninstall: nothing of ours stays, and no pod that runs is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from spinney.api import grove, kai, labels, podgang
from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.apps import DaemonSet, Deployment
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.coordination import Lease
from spinney.api.core import ConfigMap, Namespace, Pod, Secret, Service, ServiceAccount
from spinney.api.crd import OURS, crds
from spinney.api.meta import Object, Resource
from spinney.api.nvidia import ComputeDomain
from spinney.api.policy import PodDisruptionBudget
from spinney.api.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from spinney.api.scheduling import PriorityClass
from spinney.api.untyped import untyped
from spinney.kube.client.client import Client
from spinney.kube.deletion import until_gone
from spinney.kube.errors import NotFound
from spinney.kube.manifests import webhook_resource
from spinney.kube.writer import Writer

_OURS = f"{labels.PART_OF}=spinney"
# Pods of services have no such name: they run until Config is deleted.
_OPERATORS = f"{_OURS},app.kubernetes.io/name"
_SERVICES = f"{labels.MANAGED_BY}={labels.KAI_OPERATOR}"
_OF_SETS = f"{labels.MANAGED_BY}={labels.GROVE_OPERATOR}"
_FINALIZERS = frozenset(
    {
        labels.SET_FINALIZER,
        labels.CLIQUE_FINALIZER,
        labels.SCALING_GROUP_FINALIZER,
        labels.COMPUTE_DOMAIN_FINALIZER,
    }
)
_GATES = frozenset(
    {
        labels.DEFAULT_GATE,
        labels.KAI_GATE,
        labels.KOORDINATOR_GATE,
        labels.VOLCANO_GATE,
        labels.YUNIKORN_GATE,
        labels.PENDING_CREATION_GATE,
    }
)
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
# Owners before what they own, so that no deletion takes pods along.
_KINDS: tuple[type[Object], ...] = (
    grove.PodCliqueSet,
    grove.PodCliqueScalingGroup,
    grove.PodClique,
    podgang.PodGang,
    *(kind for kind in OURS if kind.resource.group not in ("grove.io", "scheduler.grove.io")),
    grove.ClusterTopologyBinding,
)
# What a set has beside pods. Services stay: pods that run find each other by them.
_BESIDE_PODS: tuple[type[Object], ...] = (HorizontalPodAutoscaler, RoleBinding, Role, Secret, ServiceAccount)
_EXTRA_NAMESPACES = (labels.RESERVATION_NAMESPACE, labels.SCALE_ADJUST_NAMESPACE)
# Where Helm writes which release an object belongs to.
_RELEASE = "meta.helm.sh/release-name"
_STOP_SECONDS = 60.0
_INSTALLED: tuple[Resource, ...] = (
    *(kind.resource for kind in (ConfigMap, Service, PodDisruptionBudget, RoleBinding, Role, ServiceAccount)),
    Resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Resource("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors"),
    Resource("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules"),
    Resource("cert-manager.io/v1", "Certificate", "certificates"),
    Resource("cert-manager.io/v1", "Issuer", "issuers"),
    *(kind.resource for kind in (PriorityClass, ClusterRoleBinding, ClusterRole)),
)

T = TypeVar("T", bound=Object)


@dataclass(frozen=True)
class Uninstallation:
    """One run; `report` gets a sentence for every step."""

    client: Client
    namespace: str
    report: Callable[[str], None]

    async def run(self, *, keep_crds: bool) -> None:
        """Remove everything; with `keep_crds`, sets, queues and their CRDs stay for the next installation."""
        await self._stop()
        await self._remove_finalizers()
        if not keep_crds:
            await self._remove_workload_objects()
        await self._remove_installation()
        if not keep_crds:
            await self._remove_definitions()

    async def _stop(self) -> None:
        """Stop all components, the platform before its services: it would start them again."""
        for kind in _WEBHOOKS:
            for selector in (_OURS, _SERVICES):
                await self._delete_all(untyped(webhook_resource(kind)), selector)
        await self._delete_all(Deployment, _OURS, self.namespace)
        await self._gone(Pod, _OPERATORS, self.namespace)
        for of in (kai.SchedulingShard, kai.Config):
            await self._delete_all(of)
        for workload in (Deployment, DaemonSet):
            await self._delete_all(workload, _SERVICES, self.namespace)
        self.report("stopped all components, and deleted their webhooks")

    async def _remove_finalizers(self) -> None:
        """Remove our finalizers: without an operator they would block every deletion."""
        kinds = (grove.PodCliqueSet, grove.PodCliqueScalingGroup, grove.PodClique, ComputeDomain)
        for kind in kinds:
            for live in await self._list(kind):
                for finalizer in _FINALIZERS & set(live.metadata.finalizers):
                    await Writer(self.client).release(live, finalizer)
        self.report("removed our finalizers from PodCliqueSets and what they own")

    async def _remove_workload_objects(self) -> None:
        for pod in await self._list(Pod, _OF_SETS):
            if {gate.name for gate in pod.spec.scheduling_gates} & _GATES:
                await self._delete(Pod, pod.key)
        for kind in _KINDS:
            for live in await self._list(kind):
                await self._delete(kind, live.key, orphan=True)
            await self._gone(kind)
        for beside in _BESIDE_PODS:
            await self._delete_all(beside, _OF_SETS)
        self.report("deleted sets, gangs, groups and queues; pods that run go on without them")

    async def _remove_installation(self) -> None:
        await self._forget_release()
        for resource in _INSTALLED:
            for selector in (_OURS, _SERVICES):
                await self._delete_all(untyped(resource), selector, self.namespace if resource.namespaced else "")
        await self._delete_all(Lease, namespace=self.namespace)
        await self._delete_namespaces()
        self.report("deleted accounts, roles and settings")

    async def _forget_release(self) -> None:
        """Delete Helm's record of the release: Helm would still list it, and refuse to install under its name."""
        accounts = await self._list(ServiceAccount, _OURS, self.namespace)
        releases = {account.metadata.annotations.get(_RELEASE, "") for account in accounts}
        for release in releases - {""}:
            await self._delete_all(Secret, f"owner=helm,name={release}", self.namespace)

    async def _delete_namespaces(self) -> None:
        """Our namespace if the installation made it, and those of reservation and scaling pods once they are empty."""
        for name in (self.namespace, *_EXTRA_NAMESPACES):
            live = await self.client.find(Namespace.resource, name)
            made_by_us = name in _EXTRA_NAMESPACES or _is_ours((live or {}).get("metadata", {}).get("labels") or {})
            if live is None:
                continue
            if not made_by_us:
                await self._delete(Secret, (name, "spinney-grove-webhook"))
                self.report(f"kept namespace {name}, which is not from us: kubectl delete namespace {name}")
                continue
            if name in _EXTRA_NAMESPACES and await self._list(Pod, namespace=name):
                self.report(f"kept namespace {name}: its pods hold GPUs for pods that run")
                continue
            await self._delete(Namespace, ("", name))
            await self._gone(Namespace, name=name)

    async def _remove_definitions(self) -> None:
        """Wait until all are gone: an installation meanwhile would lose those that are still being deleted."""
        names = [definition["metadata"]["name"] for definition in crds()]
        for name in names:
            await self._delete(CustomResourceDefinition, ("", name))
        for name in names:
            await self._gone(CustomResourceDefinition, name=name)
        self.report("deleted the CustomResourceDefinitions")

    async def _delete_all(self, kind: type[Object], selector: str = "", namespace: str = "") -> None:
        for live in await self._list(kind, selector, namespace):
            await self._delete(kind, live.key)

    async def _delete(self, kind: type[Object], key: tuple[str, str], *, orphan: bool = False) -> None:
        with suppress(NotFound):
            await self.client.delete(kind, key, propagation="Orphan" if orphan else "Background")

    async def _list(self, kind: type[T], selector: str = "", namespace: str = "") -> Sequence[T]:
        """The objects of a kind; none where it is not served."""
        try:
            return (await self.client.list(kind, namespace, labels=selector)).items
        except NotFound:
            return ()

    async def _gone(self, kind: type[Object], selector: str = "", namespace: str = "", name: str = "") -> None:
        fields = f"metadata.name={name}" if name else ""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await until_gone(self.client, kind, namespace, labels=selector, fields=fields)
        except TimeoutError:
            what = f"{kind.resource.kind} {name} is" if name else f"some {kind.resource.plural} are"
            self.report(f"{what} still there after {_STOP_SECONDS:g} s; going on")


def _is_ours(marks: dict[str, str]) -> bool:
    return marks.get(labels.PART_OF) == "spinney"

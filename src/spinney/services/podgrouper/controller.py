"""The pod grouper's controller: creates PodGroups and assigns pods to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from spinney.api import labels, reasons
from spinney.api.core import ConfigMap, Namespace, Pod
from spinney.api.kai import PodGroup
from spinney.api.meta import Json, Key
from spinney.api.pod_state import is_finished
from spinney.api.scheduling import PriorityClass
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.client.client import Patch
from spinney.kube.controllers.controller import Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.runtime import Runtime
from spinney.kube.writer import Writer
from spinney.services.podgrouper.context import Context, Settings
from spinney.services.podgrouper.defaults import read_defaults
from spinney.services.podgrouper.grouping import Grouping, GroupingError
from spinney.services.podgrouper.ignored_settings import ignored_settings
from spinney.services.podgrouper.owners import Owners
from spinney.services.podgrouper.plan import plan_group, plan_pod
from spinney.services.podgrouper.rules import group, pod_as_owner
from spinney.services.pods.membership import BY_GROUP, group_of

# Mostly a group goes because its workload does, and the pods a moment later.
_GROUP_GONE_SECONDS = 5.0

_GATHER_SECONDS = 0.1


@dataclass(frozen=True)
class _Lookup:
    """The lookups of rules, from caches where possible."""

    owners: Owners
    all_pods: Cache[Pod]
    groups: Cache[PodGroup]
    priority_classes: Cache[PriorityClass]
    # The pod that is being grouped.
    pod: Key = ("", "")

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        """One object as plain data, or None; the pod is reconciled again when it changes."""
        owner = await self.owners.get(api_version, kind, namespace, name)
        if owner is not None:
            self.owners.depends(self.pod, owner["metadata"]["uid"])
        return owner

    async def all(self, api_version: str, kind: str, labels: dict[str, str]) -> list[Json]:
        """All objects of a kind with these labels; none where the kind is not served."""
        return await self.owners.all(api_version, kind, labels)

    def priority_class_exists(self, name: str) -> bool:
        """Whether a PriorityClass of that name is known."""
        return self.priority_classes.get(name) is not None

    def pods(self, namespace: str, labels: dict[str, str]) -> list[Pod]:
        """The pods of a namespace with all of these labels."""
        return [
            pod for pod in self.all_pods if pod.namespace == namespace and labels.items() <= pod.metadata.labels.items()
        ]

    def has_group(self, namespace: str, name: str) -> bool:
        """Whether a PodGroup of that name exists."""
        return self.groups.get((namespace, name)) is not None

    def group_has_subgroups(self, namespace: str, name: str) -> bool | None:
        """Whether the PodGroup of that name has subgroups; None where there is no such group."""
        group = self.groups.get((namespace, name))
        return None if group is None else bool(group.spec.sub_groups)


class PodGrouper:
    """Reconciles pods; a group is written before its pods refer to it."""

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self._client = runtime.client
        self._writer = Writer(runtime.client)
        self._settings = settings
        self._pods = runtime.caches.of(Pod)
        self._groups = runtime.caches.of(PodGroup)
        self._owners = Owners(runtime.client, runtime.caches, lambda key: self.controller.enqueue(*key))
        self._lookup = _Lookup(self._owners, self._pods, self._groups, runtime.caches.of(PriorityClass))
        # The last message of each pod that cannot be grouped.
        self._reported: dict[Key, str] = {}
        self._events = Recorder(runtime.client, runtime.clock, "pod-grouper")
        workers = settings.workers
        self.controller = Controller("pod-grouper", runtime, self.reconcile, workers, gather=_GATHER_SECONDS)
        self.controller.watch(self._pods, when=self._concerns_us)
        self.controller.wait_for(self._groups, self._lookup.priority_classes)
        self._pods.index(BY_GROUP, group_of)
        self._groups.on_change(self._group_changed)
        self._namespaces = runtime.caches.of(Namespace) if settings.namespace_labels else None
        if self._namespaces is not None:
            self.controller.watch(self._namespaces, self._pods_of)
        if settings.defaults_name:
            # One map, not all of the cluster's.
            maps = runtime.caches.of(
                ConfigMap, namespace=settings.defaults_namespace, fields=f"metadata.name={settings.defaults_name}"
            )
            maps.on_change(self._defaults_changed)
            self.controller.wait_for(maps)

    def _concerns_us(self, change: Change[Pod]) -> bool:
        pod = change.object
        if pod.spec.scheduler_name != self._settings.scheduler_name or _is_skipped(pod):
            return False
        return self._settings.pod_labels.items() <= pod.metadata.labels.items()

    def _group_changed(self, change: Change[PodGroup]) -> None:
        """Create a deleted group again while its pods exist."""
        if change.new is not None:
            return
        for pod in self._pods.by(BY_GROUP, f"{change.object.namespace}/{change.object.name}"):
            if self._concerns_us(Change(None, pod)):
                self.controller.enqueue(pod.namespace, pod.name, after=_GROUP_GONE_SECONDS)

    def _pods_of(self, change: Change[Namespace]) -> Iterable[Key]:
        name = change.object.name
        return [
            (name, pod.name) for pod in self._pods if pod.namespace == name and self._concerns_us(Change(None, pod))
        ]

    def _in_selected_namespace(self, namespace: str) -> bool:
        if self._namespaces is None:
            return True
        selected = self._namespaces.get(namespace)
        return selected is not None and self._settings.namespace_labels.items() <= selected.metadata.labels.items()

    def _defaults_changed(self, change: Change[ConfigMap]) -> None:
        """Apply new defaults, and reconcile all pods."""
        defaults = read_defaults(change.new.data.get("types", "")) if change.new is not None else {}
        self._settings = msgspec.structs.replace(self._settings, kind_defaults=defaults)
        for pod in self._pods:
            if self._concerns_us(Change(None, pod)):
                self.controller.enqueue(*pod.key)

    async def reconcile(self, key: Key) -> None:
        """Write one pod's group, and the pod's reference to it."""
        namespace, name = key
        pod = self._pods.get((namespace, name))
        if pod is None:
            self._owners.forget(key)
            self._reported.pop(key, None)
            return
        if _is_skipped(pod) or is_finished(pod):
            return
        if not self._in_selected_namespace(namespace):
            return
        try:
            grouping = await self._grouping(pod)
        except GroupingError as error:
            if pod.metadata.deletion_timestamp is not None:
                return
            self._report(pod, str(error))
            raise
        self._reported.pop(key, None)
        if grouping is None:
            return
        if await self._write_group(grouping):
            await self._tell_ignored(pod)
        if patch := plan_pod(pod, grouping):
            # For built-in kinds a strategic merge patch costs an API server the least.
            await self._client.patch(Pod, (namespace, name), patch, kind=Patch.STRATEGIC)

    def _report(self, pod: Pod, message: str) -> None:
        """Send an event about why a pod cannot be grouped, once per message."""
        key = pod.key
        if self._reported.get(key) != message:
            self._reported[key] = message
            self._events.event(pod, "Warning", reasons.POD_GROUPER_WARNING, message)

    async def _grouping(self, pod: Pod) -> Grouping | None:
        chain = await self._owners.chain(pod)
        if any(_skips(owner) for owner in chain):
            return None
        top = chain[-1] if chain else pod_as_owner(pod)
        lookup = replace(self._lookup, pod=pod.key)
        return await group(Context(pod, top, chain, lookup, self._settings))

    async def _tell_ignored(self, pod: Pod) -> None:
        """Send an event about settings that are ignored; once, as the group is new."""
        sources = (pod_as_owner(pod), *await self._owners.chain(pod))
        for message in ignored_settings(sources, self._lookup.priority_class_exists):
            self._events.event(pod, "Warning", reasons.POD_GROUPER_WARNING, message)

    async def _write_group(self, grouping: Grouping) -> bool:
        """Write the group; whether it is new."""
        live = self._groups.get((grouping.namespace, grouping.name))
        step = plan_group(live, grouping, self._settings)
        # A group that is being deleted is created again when it is gone.
        if step is not None and step.act != "wait":
            await self._writer.apply(step)
        return step is not None and step.act == "create"


def _is_skipped(pod: Pod) -> bool:
    """Whether a pod opts out, or has no owner and a group already."""
    if pod.metadata.annotations.get(labels.SKIP_PODGROUPER) == "true":
        return True
    return not pod.metadata.owner_references and labels.POD_GROUP in pod.metadata.annotations


def _skips(owner: Json) -> bool:
    return (owner["metadata"].get("annotations") or {}).get(labels.SKIP_PODGROUPER) == "true"

"""The PodGroup controller: requested and allocated resources, and whether the gang is scheduled."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from spinney.api import labels, reasons
from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup, PodGroupSpec, SubGroup
from spinney.api.meta import Json, Key, Struct
from spinney.api.pod_state import is_active, is_finished
from spinney.api.resource import ResourceClaim
from spinney.api.scheduling import PriorityClass
from spinney.api.times import rfc3339
from spinney.kube.caches.cache import Cache, Change
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import Controller, run_controllers
from spinney.kube.controllers.events import Recorder
from spinney.kube.difference import exact_merge_patch
from spinney.kube.errors import NotFound
from spinney.kube.runtime import Component, Rule, Runtime
from spinney.services.podgroups.podgroup_checks import WEBHOOK
from spinney.services.pods.claims import claim_name, claimed_gpus
from spinney.services.pods.membership import BY_GROUP, group_of
from spinney.services.pods.usage import add, allocated, gpu_memory, quantities, requested, shares_gpu

# Changes of one group within this time are written once; longer while its pods wait for a node.
_GATHER_SECONDS = 1.0
_GATHER_WAITING_SECONDS = 5.0
# Writes of many groups go out together.
_TOGETHER_SECONDS = 0.5
# The names of indexes of pods.
_BY_CLAIM = "podgroups/claim"
_BY_SHARED_NODE = "podgroups/shared-node"
_NON_PREEMPTIBLE_FROM = 100
_DEFAULT_PRIORITY = 50


def priority_of(group: PodGroup, classes: Iterable[PriorityClass]) -> int:
    """The group's priority: its class, else the cluster's default class, else 50."""
    default = _DEFAULT_PRIORITY
    for priority_class in classes:
        if priority_class.name == group.spec.priority_class_name:
            return priority_class.value
        if priority_class.global_default:
            default = priority_class.value
    return default


def is_preemptible(group: PodGroup, classes: Iterable[PriorityClass]) -> bool:
    """Whether its pods may be preempted: by its own field, else by priority."""
    if group.spec.preemptibility:
        return group.spec.preemptibility == "preemptible"
    return priority_of(group, classes) < _NON_PREEMPTIBLE_FROM


def plan_status(
    group: PodGroup,
    pods: list[Pod],
    node_of: dict[str, Node],
    preemptible: bool,
    clock: Clock,
    *,
    claims: Iterable[ResourceClaim] = (),
) -> Json | None:
    """The status patch of a group; None where nothing changes."""
    total_requested, total_allocated = claimed_gpus(claims)
    for pod in pods:
        add(total_requested, requested(pod))
        add(total_allocated, allocated(pod, node_of.get(pod.spec.node_name)))
    wanted = {
        "requested": quantities(total_requested),
        "allocated": quantities(total_allocated),
        "allocatedNonPreemptible": {} if preemptible else quantities(total_allocated),
    }
    current = group.status.resources_status
    existing = {
        "requested": current.requested,
        "allocated": current.allocated,
        "allocatedNonPreemptible": current.allocated_non_preemptible,
    }
    resources = {key: patch for key, value in wanted.items() if (patch := exact_merge_patch(existing[key], value))}
    status: Json = {"resourcesStatus": resources} if resources else {}
    if conditions := _conditions(group, pods, clock):
        status["conditions"] = conditions
    if (phase := phase_of(group.spec, pods)) != group.status.phase:
        status["phase"] = phase
    return {"status": status} if status else None


def phase_of(spec: PodGroupSpec, pods: list[Pod]) -> str:
    """Pending until the gang's minimum has nodes, Scheduling until it runs, and how it ended once all pods have."""
    if pods and all(map(is_finished, pods)):
        return reasons.FAILED if any(pod.status.phase == reasons.FAILED for pod in pods) else reasons.SUCCEEDED
    if not pods or missing_members(spec, _subgroups(filter(_is_placed, pods))):
        return reasons.PENDING
    running = (pod for pod in pods if pod.status.phase in (reasons.RUNNING, reasons.SUCCEEDED))
    return reasons.SCHEDULING if missing_members(spec, _subgroups(running)) else reasons.RUNNING


def _is_placed(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded" or bool(pod.spec.node_name and not is_finished(pod))


def _subgroups(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.labels.get(labels.SUBGROUP, "") for pod in pods]


def _conditions(group: PodGroup, pods: list[Pod], clock: Clock) -> list[Json] | None:
    """The conditions with a new `Scheduled` (whether the minimum is placed); None where it is the same."""
    missing = missing_members(group.spec, _subgroups(filter(_is_placed, pods)))
    status, reason = ("False", "WaitingForMembers") if missing else ("True", "MinMembersPlaced")
    # No number: each pod above the minimum would cost a write.
    message = missing or "enough pods have a node"
    old = next((condition for condition in group.status.conditions if condition.type == reasons.SCHEDULED), None)
    if old is not None and old.status == status and (status == "True" or old.message == message):
        return None
    if old is not None and old.status == status:
        entry = {**msgspec.to_builtins(old), "message": message}
    else:
        entry = {
            "type": reasons.SCHEDULED,
            "status": status,
            "reason": reason,
            "message": message,
            "transitionID": str(int(old.transition_id or 0) + 1 if old else 1),
            "lastTransitionTime": rfc3339(clock.now()),
        }
    others = [msgspec.to_builtins(other) for other in group.status.conditions if other.type != reasons.SCHEDULED]
    return [*others, entry]


def missing_members(spec: PodGroupSpec, placed: list[str]) -> str:
    """What a gang lacks, given the subgroups of its placed pods; empty where nothing."""
    if spec.min_member is not None and len(placed) < spec.min_member:
        return f"{len(placed)} of at least {spec.min_member} pods have a node"
    if not spec.sub_groups:
        return "" if placed or spec.min_member == 0 else "no pod has a node"
    children: dict[str, list[SubGroup]] = {}
    for subgroup in spec.sub_groups:
        children.setdefault(subgroup.parent, []).append(subgroup)

    def lacks(name: str, least_members: int | None, least_groups: int | None) -> str:
        below = children.get(name, [])
        if not below:
            count, least = placed.count(name), least_members if least_members is not None else 1
            return f"{count} of at least {least} pods of {name} have a node" if count < least else ""
        messages = [lacks(each.name, each.min_member, each.min_sub_group) for each in below]
        least = len(below) if least_groups is None else least_groups
        short = list(filter(None, messages))
        return "; ".join(short) if len(below) - len(short) < least else ""

    return lacks("", None, spec.min_sub_group)


def _claim_keys(pod: Pod) -> Iterable[str]:
    names = (claim_name(pod, reference.name) for reference in pod.spec.resource_claims)
    return [f"{pod.namespace}/{name}" for name in names if name is not None]


def _shared_node(pod: Pod) -> Iterable[str]:
    """The node on which a pod shares GPUs: what it holds may be told relative to the size of the node's GPUs."""
    return (pod.spec.node_name,) if pod.spec.node_name and shares_gpu(pod) else ()


def _gpu_memory(node: Node | None) -> int:
    return gpu_memory(node) if node is not None else 0


class PodGroupSettings(Struct, frozen=True):
    """How the controller runs."""

    workers: int = 32


class PodGroups:
    """The controller of PodGroup status."""

    def __init__(self, runtime: Runtime, settings: PodGroupSettings, claims: Cache[ResourceClaim] | None) -> None:
        self._client = runtime.client
        # None where the cluster does not serve device claims.
        self._claims = claims
        self._clock = runtime.clock
        # False where upstream's definition, which drops the phase, is installed: no write is made for it alone.
        self._phase_is_kept = True
        self._groups = runtime.caches.of(PodGroup)
        self._pods = runtime.caches.of(Pod)
        self._nodes = runtime.caches.of(Node)
        self._classes = runtime.caches.of(PriorityClass)
        self._events = Recorder(runtime.client, runtime.clock, "podgroup-controller")
        self._pods.index(BY_GROUP, group_of)
        self._pods.index(_BY_CLAIM, _claim_keys)
        self._pods.index(_BY_SHARED_NODE, _shared_node)
        workers = settings.workers
        self.controller = Controller("podgroup-controller", runtime, self.reconcile, workers, gather=_TOGETHER_SECONDS)
        self.controller.wait_for(self._groups, self._pods, self._nodes, self._classes)
        if claims is not None:
            self.controller.wait_for(claims)
            claims.on_change(self._claim_changed)
        self._groups.on_change(self._group_changed)
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(self._node_changed)
        self._classes.on_change(self._class_changed)

    def _group_changed(self, change: Change[PodGroup]) -> None:
        if change.new is None or (change.old is not None and change.old.spec == change.new.spec):
            return
        self.controller.enqueue(change.new.namespace, change.new.name, after=_GATHER_WAITING_SECONDS)

    def _pod_changed(self, change: Change[Pod]) -> None:
        names = {key for pod in (change.old, change.new) if pod is not None for key in group_of(pod)}
        waits = change.new is not None and not change.new.spec.node_name
        for key in names:
            namespace, _, name = key.partition("/")
            self.controller.enqueue(namespace, name, after=_GATHER_WAITING_SECONDS if waits else _GATHER_SECONDS)

    def _claim_changed(self, change: Change[ResourceClaim]) -> None:
        before, after = change.old, change.new
        if before is None or after is None or before.status.allocation != after.status.allocation:
            self._enqueue_groups(self._pods.by(_BY_CLAIM, f"{change.object.namespace}/{change.object.name}"))

    def _node_changed(self, change: Change[Node]) -> None:
        if _gpu_memory(change.old) != _gpu_memory(change.new):
            self._enqueue_groups(self._pods.by(_BY_SHARED_NODE, change.object.name))

    def _class_changed(self, change: Change[PriorityClass]) -> None:
        # The default class counts for groups that name none, or one that does not exist.
        is_default = any(each is not None and each.global_default for each in (change.old, change.new))
        for group in self._groups:
            if is_default or group.spec.priority_class_name == change.object.name:
                self.controller.enqueue(group.namespace, group.name, after=_GATHER_WAITING_SECONDS)

    def _enqueue_groups(self, pods: Iterable[Pod]) -> None:
        for key in {key for pod in pods for key in group_of(pod)}:
            namespace, _, name = key.partition("/")
            self.controller.enqueue(namespace, name, after=_GATHER_SECONDS)

    async def reconcile(self, key: Key) -> None:
        """Update one group's status."""
        namespace, name = key
        group = self._groups.get((namespace, name))
        pods = self._pods.by(BY_GROUP, f"{namespace}/{name}")
        if group is None:
            self._report_missing(name, pods)
            return
        if group.metadata.deletion_timestamp is not None:
            return
        node_of = {
            pod.spec.node_name: node
            for pod in pods
            if pod.spec.node_name and (node := self._nodes.get(pod.spec.node_name)) is not None
        }
        claims = [claim for pod in pods if not is_finished(pod) for claim in self._claims_of(pod)]
        patch = plan_status(group, pods, node_of, is_preemptible(group, self._classes), self._clock, claims=claims)
        if patch is None or (not self._phase_is_kept and patch["status"].keys() == {"phase"}):
            return
        with suppress(NotFound):
            written = await self._client.patch(PodGroup, (namespace, name), patch, subresource="status")
            self._phase_is_kept = "phase" not in patch["status"] or written.status.phase != ""

    def _report_missing(self, name: str, pods: Iterable[Pod]) -> None:
        """Send an event to waiting pods whose group does not exist: the scheduler does not report them."""
        for pod in pods:
            if not pod.spec.node_name and is_active(pod):
                message = (
                    f"PodGroup {name}, which annotation {labels.POD_GROUP} names, does not exist; the pod waits for it"
                )
                self._events.event(pod, "Warning", reasons.POD_GROUP_NOT_FOUND, message)

    def _claims_of(self, pod: Pod) -> Iterable[ResourceClaim]:
        if self._claims is None:
            return
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference.name)
            if name is not None and (claim := self._claims.get((pod.namespace, name))) is not None:
                yield claim


async def run(runtime: Runtime, settings: PodGroupSettings | None = None) -> None:
    """Update the status of PodGroups until cancelled."""
    served = await Discovery(runtime.client).serves(ResourceClaim.resource.api_version)
    claims = runtime.caches.of(ResourceClaim) if served else None
    await run_controllers(runtime, PodGroups(runtime, settings or PodGroupSettings(), claims).controller)


COMPONENT = Component(
    name="podgroup-controller",
    summary="Reports what each PodGroup asks for and holds.",
    run=run,
    settings=PodGroupSettings,
    rules=(
        Rule(("",), ("pods", "nodes"), ("get", "list", "watch")),
        Rule(("scheduling.k8s.io",), ("priorityclasses",), ("get", "list", "watch")),
        Rule(("resource.k8s.io",), ("resourceclaims",), ("get", "list", "watch")),
        Rule(("scheduling.run.ai",), ("podgroups",), ("get", "list", "watch")),
        Rule(("scheduling.run.ai",), ("podgroups/status",), ("patch",)),
        Rule(("",), ("events",), ("create", "patch")),
    ),
    webhooks=(WEBHOOK,),
)

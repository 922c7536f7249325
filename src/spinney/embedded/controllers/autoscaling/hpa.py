"""HorizontalPodAutoscalers: set the scale of a target by what its pods use."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import msgspec

from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Json, Key, Object, Resource, Struct
from spinney.api.pod_state import is_active
from spinney.api.quantity import ResourceList, exact
from spinney.api.selector import matches, parse
from spinney.api.times import rfc3339
from spinney.embedded.controllers.autoscaling.hpa_plan import Event, NoMetric, Proposal, limited, propose, stabilized
from spinney.embedded.controllers.writes import ConditionRow, changed_fields, condition, patch_status
from spinney.kube.client.discovery import Discovery
from spinney.kube.clock import Clock
from spinney.kube.controllers.controller import After, Controller
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError, NotFound
from spinney.kube.runtime import Runtime

SYNC_SECONDS = 15.0
_KEPT_SECONDS = 3600.0


class ContainerUsage(Struct, frozen=True):
    """What one container uses."""

    name: str = ""
    usage: ResourceList = msgspec.field(default_factory=dict)


class PodMetrics(Object, frozen=True):
    """What a pod uses."""

    resource: ClassVar[Resource] = Resource("metrics.k8s.io/v1beta1", "PodMetrics", "pods")

    containers: tuple[ContainerUsage, ...] = ()


class Autoscalers:
    """The autoscaling controller: looks at every autoscaler every 15 seconds."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock: Clock = runtime.clock
        self._autoscalers = runtime.caches.of(HorizontalPodAutoscaler)
        self._pods = runtime.caches.of(Pod)
        self._pods.index("namespace", lambda pod: (pod.namespace,))
        self._discovery = Discovery(runtime.client)
        self._recommendations: dict[Key, list[Event]] = {}
        self._scale_events: dict[Key, list[Event]] = {}
        self._due: dict[Key, float] = {}
        self._recorder = Recorder(runtime.client, runtime.clock, "horizontal-pod-autoscaler")
        self.controller = Controller("hpa", runtime, self._reconcile).watch(self._autoscalers)

    async def _reconcile(self, key: Key) -> After | None:
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None:
            for memory in (self._recommendations, self._scale_events, self._due):
                memory.pop(key, None)
            return None
        now = self._clock.now().timestamp()
        left = self._due.get(key, 0.0) - now
        if left > 0.001 and autoscaler.status.observed_generation == autoscaler.metadata.generation:
            # Woken by our own write: the next look is due later.
            return After(left)
        self._due[key] = now + SYNC_SECONDS
        await self._scale(key, autoscaler, now)
        return After(SYNC_SECONDS)

    async def _scale(self, key: Key, autoscaler: HorizontalPodAutoscaler, now: float) -> None:
        target = autoscaler.spec.scale_target_ref
        resource = await self._discovery.resource(target.api_version, target.kind)
        try:
            if resource is None:
                raise NoMetric("FailedGetScale", f"no matches for kind {target.kind!r} in {target.api_version!r}")
            scale = await self._client.get(resource, (autoscaler.namespace, target.name), subresource="scale")
        except (NotFound, NoMetric) as error:
            self._recorder.event(autoscaler, "Warning", "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            await self._report(autoscaler, 0, 0, [], [("AbleToScale", "False", "FailedGetScale", message)])
            return
        current = int(scale["spec"].get("replicas") or 0)
        if current == 0:
            await self._report(autoscaler, 0, 0, [], [_ABLE, _DISABLED])
            return
        try:
            proposals = await self._proposals(autoscaler, scale["status"].get("selector", ""), current)
        except NoMetric as error:
            inactive = ("ScalingActive", "False", error.reason, str(error))
            await self._report(autoscaler, current, current, [], [_ABLE, inactive])
            return
        desired, conditions = self._decide(key, autoscaler, proposals, current, now)
        if desired != current:
            await self._client.patch(
                resource, (autoscaler.namespace, target.name), {"spec": {"replicas": desired}}, subresource="scale"
            )
            self._scale_events.setdefault(key, []).append(Event(now, desired - current))
            reason = "above" if desired > current else "below"
            message = f"New size: {desired}; reason: resource utilization {reason} target"
            self._recorder.event(autoscaler, "Normal", "SuccessfulRescale", message)
        await self._report(autoscaler, current, desired, [proposal.current for proposal in proposals], conditions)

    def _decide(
        self, key: Key, autoscaler: HorizontalPodAutoscaler, proposals: list[Proposal], current: int, now: float
    ) -> tuple[int, list[ConditionRow]]:
        behavior = autoscaler.spec.behavior or {}
        wanted = max(proposal.replicas for proposal in proposals)
        # The current size is the first recommendation, so that a new autoscaler does not scale down at once.
        recent = self._recommendations.get(key) or [Event(now, current)]
        recommendations = [event for event in recent if event.at > now - _KEPT_SECONDS]
        steady = stabilized(wanted, current, recommendations, behavior, now)
        self._recommendations[key] = [*recommendations, Event(now, wanted)]
        self._scale_events[key] = [event for event in self._scale_events.get(key, []) if event.at > now - _KEPT_SECONDS]
        lowest, highest = autoscaler.spec.min_replicas or 1, autoscaler.spec.max_replicas
        desired = min(max(steady, lowest), highest)
        limit = ("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range")
        if steady > highest:
            message = "the desired replica count is more than the maximum replica count"
            limit = ("ScalingLimited", "True", "TooManyReplicas", message)
        elif steady < lowest:
            message = "the desired replica count is less than the minimum replica count"
            limit = ("ScalingLimited", "True", "TooFewReplicas", message)
        # Policies do not delay the way back into the bounds.
        if lowest <= current <= highest:
            desired = limited(desired, current, self._scale_events[key], behavior, now)
        return desired, [_ABLE, _ACTIVE, limit]

    async def _proposals(self, autoscaler: HorizontalPodAutoscaler, selector: str, current: int) -> list[Proposal]:
        if not selector:
            raise NoMetric("InvalidSelector", "the HPA target's scale is missing a selector")
        wanted = parse(selector)
        pods = [
            pod
            for pod in self._pods.by("namespace", autoscaler.namespace)
            if is_active(pod) and matches(wanted, pod.metadata.labels)
        ]
        try:
            metrics = (await self._client.list(PodMetrics, autoscaler.namespace, labels=selector)).items
        except ApiError as error:
            raise NoMetric("FailedGetResourceMetric", f"unable to get metrics: {error}") from error
        default = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        result = []
        for metric in autoscaler.spec.metrics or ({"type": "Resource", "resource": default},):
            source = metric.get("resource") or metric.get("containerResource") or {}
            used = {pod_metrics.name: _of_resource(pod_metrics, source.get("name", "")) for pod_metrics in metrics}
            result.append(propose(metric, pods, used, current))
        return result

    async def _report(
        self,
        autoscaler: HorizontalPodAutoscaler,
        current: int,
        desired: int,
        metrics: list[Json],
        conditions: list[ConditionRow],
    ) -> None:
        now = self._clock.now()
        status = changed_fields(
            autoscaler.status,
            observed_generation=autoscaler.metadata.generation,
            current_replicas=current,
            desired_replicas=desired,
        )
        if desired != current:
            status["lastScaleTime"] = rfc3339(now)
        if metrics and list(autoscaler.status.current_metrics) != metrics:
            status["currentMetrics"] = metrics
        existing = {(entry.type, entry.status, entry.reason) for entry in autoscaler.status.conditions}
        if any(row[:3] not in existing for row in conditions):
            status["conditions"] = [_since(autoscaler, condition(*row, now)) for row in conditions]
        await patch_status(self._client, autoscaler, status)


_ABLE = ("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
_DISABLED = (
    "ScalingActive",
    "False",
    "ScalingDisabled",
    "scaling is disabled since the replica count of the target is zero",
)
_ACTIVE = (
    "ScalingActive",
    "True",
    "ValidMetricFound",
    "the HPA was able to successfully calculate a replica count from resource metrics",
)


def _since(autoscaler: HorizontalPodAutoscaler, row: Json) -> Json:
    """A condition with the time since when its status holds."""
    old = find(autoscaler.status.conditions, row["type"])
    if old is None or old.status != row["status"] or old.last_transition_time is None:
        return row
    return {**row, "lastTransitionTime": rfc3339(old.last_transition_time)}


def _of_resource(metrics: PodMetrics, resource: str) -> dict[str, Fraction]:
    return {container.name: exact(container.usage.get(resource, "0")) for container in metrics.containers}

"""Horizontal autoscalers: the scale of anything scalable, turned by what its pods use."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import msgspec

from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.conditions import find
from spinney.api.core import Pod
from spinney.api.meta import Json, Key, Object, Resource, Struct
from spinney.api.quantity import ResourceList, exact
from spinney.api.selector import matches, parse
from spinney.api.times import rfc3339
from spinney.embedded.controllers.autoscaling.hpa_plan import Event, NoMetric, Proposal, limited, propose, stabilized
from spinney.embedded.controllers.pods.state import is_active
from spinney.kube.client.client import Patch
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
    """Looks at every autoscaler each quarter of a minute."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self._clock: Clock = runtime.clock
        self._autoscalers = runtime.caches.of(HorizontalPodAutoscaler)
        self._pods = runtime.caches.of(Pod)
        self._pods.index("namespace", lambda pod: (pod.namespace,))
        self._discovery = Discovery(runtime.client)
        self._wishes: dict[Key, list[Event]] = {}
        self._steps: dict[Key, list[Event]] = {}
        self._due: dict[Key, float] = {}
        self._recorder = Recorder(runtime.client, runtime.clock, "horizontal-pod-autoscaler")
        self.controller = Controller("hpa", runtime, self._reconcile).watch(self._autoscalers)

    async def _reconcile(self, key: Key) -> After | None:
        found = self._autoscalers.get(key)
        if found is None:
            for memory in (self._wishes, self._steps, self._due):
                memory.pop(key, None)
            return None
        now = self._clock.now().timestamp()
        left = self._due.get(key, 0.0) - now
        if left > 0.001 and found.status.observed_generation == found.metadata.generation:
            # Woken by our own write; the next look is already on its way.
            return After(left)
        self._due[key] = now + SYNC_SECONDS
        await self._look(key, found, now)
        return After(SYNC_SECONDS)

    async def _look(self, key: Key, found: HorizontalPodAutoscaler, now: float) -> None:
        target = found.spec.scale_target_ref
        resource = await self._discovery.resource(target.api_version, target.kind)
        try:
            if resource is None:
                raise NoMetric("FailedGetScale", f"no matches for kind {target.kind!r} in {target.api_version!r}")
            scale = await self._client.get(resource, (found.namespace, target.name), subresource="scale")
        except (NotFound, NoMetric) as error:
            self._recorder.event(found, "Warning", "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            await self._tell(found, 0, 0, [], [("AbleToScale", "False", "FailedGetScale", message)])
            return
        current = int(scale["spec"].get("replicas") or 0)
        if current == 0:
            why = (
                "ScalingActive",
                "False",
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
            await self._tell(found, 0, 0, [], [_ABLE, why])
            return
        try:
            proposals = await self._proposals(found, scale["status"].get("selector", ""), current)
        except NoMetric as error:
            why = ("ScalingActive", "False", error.reason, str(error))
            await self._tell(found, current, current, [], [_ABLE, why])
            return
        desired, conditions = self._decide(key, found, proposals, current, now)
        if desired != current:
            await self._client.patch(
                resource, (found.namespace, target.name), {"spec": {"replicas": desired}}, subresource="scale"
            )
            self._steps.setdefault(key, []).append(Event(now, desired - current))
            reason = "above" if desired > current else "below"
            message = f"New size: {desired}; reason: resource utilization {reason} target"
            self._recorder.event(found, "Normal", "SuccessfulRescale", message)
        await self._tell(found, current, desired, [each.current for each in proposals], conditions)

    def _decide(
        self, key: Key, found: HorizontalPodAutoscaler, proposals: list[Proposal], current: int, now: float
    ) -> tuple[int, list[tuple[str, str, str, str]]]:
        behavior = found.spec.behavior or {}
        wanted = max(each.replicas for each in proposals)
        # The size that was found counts as the first wish, so that a new autoscaler shrinks nothing at once.
        known = self._wishes.get(key) or [Event(now, current)]
        wishes = [each for each in known if each.at > now - _KEPT_SECONDS]
        steady = stabilized(wanted, current, wishes, behavior, now)
        self._wishes[key] = [*wishes, Event(now, wanted)]
        self._steps[key] = [each for each in self._steps.get(key, []) if each.at > now - _KEPT_SECONDS]
        lowest, highest = found.spec.min_replicas or 1, found.spec.max_replicas
        desired = min(max(steady, lowest), highest)
        limit = ("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range")
        if steady > highest:
            message = "the desired replica count is more than the maximum replica count"
            limit = ("ScalingLimited", "True", "TooManyReplicas", message)
        elif steady < lowest:
            message = "the desired replica count is less than the minimum replica count"
            limit = ("ScalingLimited", "True", "TooFewReplicas", message)
        # Coming back into the bounds is not held up.
        allowed = (
            desired if not lowest <= current <= highest else limited(desired, current, self._steps[key], behavior, now)
        )
        return allowed, [_ABLE, _ACTIVE, limit]

    async def _proposals(self, found: HorizontalPodAutoscaler, selector: str, current: int) -> list[Proposal]:
        if not selector:
            raise NoMetric("InvalidSelector", "the HPA target's scale is missing a selector")
        wanted = parse(selector)
        pods = [
            pod
            for pod in self._pods.by("namespace", found.namespace)
            if is_active(pod) and matches(wanted, pod.metadata.labels)
        ]
        try:
            metrics = (await self._client.list(PodMetrics, found.namespace, labels=selector)).items
        except ApiError as error:
            raise NoMetric("FailedGetResourceMetric", f"unable to get metrics: {error}") from error
        default = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        result = []
        for metric in found.spec.metrics or ({"type": "Resource", "resource": default},):
            source = metric.get("resource") or metric.get("containerResource") or {}
            used = {each.name: _of_resource(each, source.get("name", "")) for each in metrics}
            result.append(propose(metric, pods, used, current))
        return result

    async def _tell(
        self,
        found: HorizontalPodAutoscaler,
        current: int,
        desired: int,
        metrics: list[Json],
        conditions: list[tuple[str, str, str, str]],
    ) -> None:
        moment = rfc3339(self._clock.now())
        status: Json = {}
        wanted = {
            "observedGeneration": (found.status.observed_generation, found.metadata.generation),
            "currentReplicas": (found.status.current_replicas, current),
            "desiredReplicas": (found.status.desired_replicas, desired),
        }
        status |= {name: value for name, (old, value) in wanted.items() if old != value}
        if desired != current:
            status["lastScaleTime"] = moment
        if metrics and list(found.status.current_metrics) != metrics:
            status["currentMetrics"] = metrics
        changed = any(
            not (old := find(found.status.conditions, type_)) or (old.status, old.reason) != (is_it, reason)
            for type_, is_it, reason, _ in conditions
        )
        if changed:
            status["conditions"] = [
                {
                    "type": t,
                    "status": s,
                    "reason": r,
                    "message": m,
                    "lastTransitionTime": self._since(found, t, s, moment),
                }
                for t, s, r, m in conditions
            ]
        if status:
            patch = {"metadata": {"uid": found.uid}, "status": status}
            await self._client.patch(HorizontalPodAutoscaler, found.key, patch, kind=Patch.MERGE, subresource="status")

    def _since(self, found: HorizontalPodAutoscaler, type_: str, status: str, moment: str) -> str:
        old = find(found.status.conditions, type_)
        if old is None or old.status != status or old.last_transition_time is None:
            return moment
        return rfc3339(old.last_transition_time)


_ABLE = ("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
_ACTIVE = (
    "ScalingActive",
    "True",
    "ValidMetricFound",
    "the HPA was able to successfully calculate a replica count from resource metrics",
)


def _of_resource(metrics: PodMetrics, resource: str) -> dict[str, Fraction]:
    return {each.name: exact(each.usage.get(resource, "0")) for each in metrics.containers}

"""autoscaling: horizontal autoscalers and the scale subresource."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from spinney.api.meta import Condition, Json, Object, Resource, Struct


class ScaleTarget(Struct, frozen=True):
    """What an autoscaler scales."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(Struct, frozen=True):
    """What is scaled, within which bounds, by which metrics."""

    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[Json, ...] = ()
    behavior: Json | None = None


class HorizontalPodAutoscalerStatus(Struct, frozen=True):
    """The last observation and decision of an autoscaler."""

    observed_generation: int = 0
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[Json, ...] = ()
    last_scale_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class HorizontalPodAutoscaler(Object, frozen=True):
    """Scales a workload by metrics."""

    resource: ClassVar[Resource] = Resource("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


class ScaleSpec(Struct, frozen=True):
    """The wanted number of replicas."""

    replicas: int = 0


class ScaleStatus(Struct, frozen=True):
    """The current number of replicas, and their selector."""

    replicas: int = 0
    selector: str = ""


class Scale(Object, frozen=True):
    """The scale subresource of anything scalable; it has no path of its own."""

    resource: ClassVar[Resource] = Resource("autoscaling/v1", "Scale", "scales")

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()

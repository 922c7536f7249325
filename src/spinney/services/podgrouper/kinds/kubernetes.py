"""Pods, Deployments, Jobs and CronJobs."""

from __future__ import annotations

from dataclasses import replace

from spinney.api import labels
from spinney.services.podgrouper.context import Context, annotations_of
from spinney.services.podgrouper.defaults import (
    INFERENCE_PRIORITY,
    group_name,
    group_per_pod,
    group_under,
)
from spinney.services.podgrouper.grouping import Grouping, GroupingError, member_count


async def pod(context: Context) -> Grouping:
    """A bare pod is its own group; the pods of one Spark application share one."""
    grouping = group_under(context, context.top)
    pod_labels = context.pod.metadata.labels
    if labels.SPARK_APP_NAME in pod_labels and labels.SPARK_APP_SELECTOR in pod_labels:
        return replace(grouping, name=pod_labels[labels.SPARK_APP_SELECTOR])
    return grouping


async def deployment(context: Context) -> Grouping:
    """One group per pod: the pods of a Deployment are independent."""
    return group_per_pod(context, INFERENCE_PRIORITY)


async def job(context: Context) -> Grouping:
    """One group per Job; per-pod groups of older releases stay."""
    legacy = group_name(context.pod.name, context.top["metadata"]["uid"])
    if context.lookup.has_group(context.pod.namespace, legacy):
        return replace(group_under(context, context.top), name=legacy)
    return with_min_member_annotation(group_under(context, context.top), annotations_of(context.top))


async def cron_job(context: Context) -> Grouping:
    """One group per Job of a CronJob."""
    run = context.chain[0]
    return with_min_member_annotation(group_under(context, run), annotations_of(run))


def with_min_member_annotation(grouping: Grouping, annotations: dict[str, str]) -> Grouping:
    """The grouping with the minimum of `kai.scheduler/batch-min-member`."""
    minimum = min_member_annotation(annotations, least=0)
    return grouping if minimum is None else replace(grouping, min_member=minimum)


def min_member_annotation(annotations: dict[str, str], least: int = 1) -> int | None:
    """The number in `kai.scheduler/batch-min-member`, or None where it is absent."""
    text = annotations.get(labels.BATCH_MIN_MEMBER)
    if text is None:
        return None
    minimum = member_count(text)
    if minimum is None or minimum < least:
        raise GroupingError(
            f"annotation {labels.BATCH_MIN_MEMBER} is {text!r}; it must be a whole number of at least {least}"
        )
    return minimum

"""Knative services, spot requests, Azure ML and Run:ai jobs."""

from __future__ import annotations

from dataclasses import replace

from spinney.api import labels
from spinney.api.meta import Json
from spinney.services.podgrouper.context import Context, annotations_of, dig
from spinney.services.podgrouper.defaults import (
    INFERENCE_PRIORITY,
    group_name,
    group_per_pod,
    group_under,
)
from spinney.services.podgrouper.grouping import Grouping, GroupingError, member_count


async def knative_service(context: Context) -> Grouping:
    """One group per Revision with its minimal scale; per pod where gangs are, or were, disabled."""
    name = context.pod.metadata.labels.get(labels.KNATIVE_REVISION)
    if not name:
        raise GroupingError(f"pod {context.pod.name} of a Knative service has no label {labels.KNATIVE_REVISION}")
    revision = await context.lookup.get("serving.knative.dev/v1", "Revision", context.pod.namespace, name)
    if revision is None:
        raise GroupingError(f"Knative Revision {name} is not there")
    if not context.settings.knative_gangs or _grouped_per_pod(context, revision):
        return group_per_pod(replace(context, top=revision), INFERENCE_PRIORITY)
    scale = annotations_of(revision).get(labels.KNATIVE_MIN_SCALE, "1")
    minimum = member_count(scale)
    return replace(group_under(context, revision, INFERENCE_PRIORITY), min_member=1 if minimum is None else minimum)


def _grouped_per_pod(context: Context, revision: Json) -> bool:
    siblings = context.lookup.pods(context.pod.namespace, {labels.KNATIVE_REVISION: revision["metadata"]["name"]})
    groups = {pod.metadata.annotations.get(labels.POD_GROUP, "") for pod in siblings} - {""}
    return bool(groups) and group_name(revision["metadata"]["name"], revision["metadata"]["uid"]) not in groups


async def spot_request(context: Context) -> Grouping:
    """One group, with inference priority."""
    return group_under(context, context.top, INFERENCE_PRIORITY)


async def aml_job(context: Context) -> Grouping:
    """One group with the job's node count as its minimum."""
    count = str(dig(context.top, "spec", "job", "options", "envs", "AZUREML_NODE_COUNT") or "")
    minimum = member_count(count)
    if minimum is None:
        raise GroupingError(
            f"AmlJob {context.top['metadata']['name']}: AZUREML_NODE_COUNT in spec.job.options.envs is {count!r}, "
            "not a number"
        )
    return replace(group_under(context, context.top), min_member=minimum)


async def runai_job(context: Context) -> Grouping:
    """One group per index, named after the pod without its suffix; groups of older releases stay."""
    meta = context.top["metadata"]
    side_by_side = int(dig(context.top, "spec", "parallelism") or 1) > 1
    name = group_name(context.pod.name if side_by_side else meta["name"], meta["uid"])
    if not context.lookup.has_group(context.pod.namespace, name):
        name = group_name(context.pod.name.rpartition("-")[0] or context.pod.name, meta["uid"])
    return replace(group_under(context, context.top), name=name)

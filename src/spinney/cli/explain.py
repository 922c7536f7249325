"""`spinney explain`: why something waits, in sentences, with numbers and the smallest fix."""

from __future__ import annotations

from typing import Any

import click

from spinney.api import labels
from spinney.api.core import Pod
from spinney.cli.output import print_json
from spinney.cli.picture_options import picture_options
from spinney.cli.queues import reports_of
from spinney.scheduler.intake import cluster_objects
from spinney.scheduler.service.snapshot_view import Picture
from spinney.scheduler.why.explanation import Explanation, explain_job
from spinney.scheduler.why.queue_reports import QueueReport
from spinney.scheduler.why.texts import number

_KINDS = ("pod", "gang", "set", "queue")
# What kubectl calls them.
_ALSO = {
    "pods": "pod",
    "podgang": "gang",
    "podgroup": "gang",
    "pcs": "set",
    "podcliqueset": "set",
    "queues": "queue",
}


@click.command(
    epilog="""\b
Examples:
  spinney explain inference            # a pod, a gang, a PodCliqueSet or a queue of that name
  spinney explain pod/train-0 -n team-a
  spinney explain queue/team-a -o json
  spinney explain gang/inference-0 --snapshot now.zip
"""
)
@click.argument("what", metavar="[KIND/]NAME")
@click.option("--namespace", "-n", default="default", show_default=True)
@picture_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(*, what: str, namespace: str, picture: Picture, output: str) -> None:
    """Why a pod, a gang, a set or a queue waits: what blocks it, by how much, and the smallest change that helps."""
    kind, _, name = what.rpartition("/")
    kind = _ALSO.get(kind.partition(".")[0], kind.partition(".")[0])
    if kind and kind not in _KINDS:
        raise click.BadParameter(f"{kind!r} is none of {', '.join(_KINDS)}", param_hint="[KIND/]NAME")
    explanations: list[dict[str, Any]] = []
    text: list[str] = []
    for story in stories(picture, kind, name, namespace):
        explanations.append(story.data())
        text += story.sentences()
    for report in reports_of(picture) if kind in ("", "queue") else ():
        if report.name == name:
            explanations.append({"queue": name, "sentences": _queue_sentences(report, picture)})
            text += _queue_sentences(report, picture)
    if not explanations:
        raise click.ClickException(_nothing_to_say(picture, kind, name, namespace))
    if output == "json":
        print_json(explanations)
    else:
        click.echo("\n".join(text))


def _nothing_to_say(picture: Picture, kind: str, name: str, namespace: str) -> str:
    """Why there is no story: a pod that waits for another scheduler or for its PodGroup, or nothing of that name."""
    pod = picture.caches.of(Pod).get((namespace, name)) if kind in ("", "pod") else None
    if pod is None:
        return f"no {kind or 'pod, gang, set or queue'} {name!r} in namespace {namespace}"
    ours = picture.shard.scheduler_name
    if pod.spec.scheduler_name != ours:
        return (
            f"pod {name} is placed by {pod.spec.scheduler_name}, not by {ours}: kubectl describe pod shows its events"
        )
    return f"pod {name} has no PodGroup yet: does `spinney run podgrouper` run?"


def stories(picture: Picture, kind: str, name: str, namespace: str) -> list[Explanation]:
    """The explanation of each gang behind a name; of any kind if none is given."""
    return [explain_job(picture.state, picture.plan, job) for job in _jobs(picture, kind, name, namespace)]


def _jobs(picture: Picture, kind: str, name: str, namespace: str) -> list[str]:
    """The scheduler's gangs behind a name."""
    keys: dict[str, None] = {}
    own = cluster_objects.job_key(namespace, name)
    if kind in ("", "gang") and own in picture.state.jobs:
        keys[own] = None
    for pod in picture.caches.of(Pod):
        if pod.namespace != namespace:
            continue
        names = {
            "pod": pod.name,
            "gang": pod.metadata.labels.get(labels.PODGANG, ""),
            "set": pod.metadata.labels.get(labels.PART_OF, ""),
        }
        if name in ([names[kind]] if kind in names else names.values() if not kind else ()):
            group = pod.metadata.annotations.get(labels.POD_GROUP, "")
            key = cluster_objects.job_key(namespace, group)
            if key in picture.state.jobs:
                keys[key] = None
    return list(keys)


def _queue_sentences(report: QueueReport, picture: Picture) -> list[str]:
    quota, limit = report.quota[2], report.limit[2]
    lines = [
        f"queue {report.name} holds {number(report.allocated[2])} GPUs; its fair share is "
        f"{number(report.fair_share[2])}, its quota {number(quota) if quota >= 0 else 'unlimited'}, "
        f"its limit {number(limit) if limit >= 0 else 'unlimited'}.",
        f"{number(report.pending[2])} GPUs wait in it; {number(report.borrowed[2])} of those it holds are borrowed "
        "and may be reclaimed.",
    ]
    waiting = [job for job in picture.state.jobs.values() if job.spec.queue == report.name and job.pending]
    for job in waiting:
        lines += [f"  {line}" for line in explain_job(picture.state, picture.plan, job.key).sentences()]
    return lines

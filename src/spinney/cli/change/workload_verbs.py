"""`spinney suspend|resume|restart|undo`: change a workload of any kind, and say what was done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from spinney.api.meta import Json, Resource
from spinney.cli.ask.cluster_options import Source, cluster_options, namespace_option, require

if TYPE_CHECKING:
    from spinney.answers.workloads import Parts
    from spinney.kube.client.client import Client

_dry_run = click.option("--dry-run", is_flag=True, help="Let the API server check it, and change nothing.")
# Kinds whose controllers replace pods by themselves when the template changes.
_ROLLED = ("Deployment", "StatefulSet")


_what = click.argument("what", metavar="[KIND/]NAME")


@click.command(
    epilog="""\b
Examples:
  spinney suspend job/train
"""
)
@_what
@namespace_option
@_dry_run
@cluster_options
def suspend(*, what: str, namespace: str, dry_run: bool, source: Source) -> None:
    """Stop a workload without deleting it: its pods end and its place is free."""
    _suspend(what, namespace, source, suspended=True, dry_run=dry_run)


@click.command(
    epilog="""\b
Examples:
  spinney resume job/train --dry-run
"""
)
@_what
@namespace_option
@_dry_run
@cluster_options
def resume(*, what: str, namespace: str, dry_run: bool, source: Source) -> None:
    """Let a suspended workload run again."""
    _suspend(what, namespace, source, suspended=False, dry_run=dry_run)


def _suspend(what: str, namespace: str, source: Source, *, suspended: bool, dry_run: bool) -> None:
    from spinney.api.workloads import REPLICAS_BEFORE, suspension  # noqa: PLC0415  # slow to import
    from spinney.cli.change.undoing import change  # noqa: PLC0415  # as above

    parts = _workload_named(what, namespace, source)
    ref = parts.owner.ref
    if not suspension(ref.kind, suspended):
        raise click.ClickException(f"{ref} cannot be suspended: {ref.kind} has no field for it; delete it instead")

    async def work(client: Client) -> bool:
        resource = await _resource(client, ref.api_version, ref.kind)
        document = await client.get(resource, (ref.namespace, ref.name))
        notes = document["metadata"].get("annotations") or {}
        before = int((document.get("spec") or {}).get("replicas") or 0)
        patch = suspension(ref.kind, suspended, int(notes.get(REPLICAS_BEFORE, "1")))
        if "replicas" in patch["spec"] and suspended and before:
            await client.patch(
                resource,
                (ref.namespace, ref.name),
                {"metadata": {"annotations": {REPLICAS_BEFORE: str(before)}}},
                dry_run=dry_run,
            )
        return await change(client, resource, (ref.namespace, ref.name), patch, dry_run=dry_run)

    changed = source.connected(work)
    word = ("suspend" if suspended else "resume") if dry_run else ("suspended" if suspended else "resumed")
    pods = f" ({_pods(parts)} {'ends' if len(parts.alive) == 1 else 'end'})" if suspended else ""
    click.echo(f"{'would ' if dry_run else ''}{word} {ref}{pods}" if changed else f"{ref} is so already")


@click.command(
    epilog="""\b
Examples:
  spinney restart pcs/inference
"""
)
@_what
@namespace_option
@_dry_run
@cluster_options
def restart(*, what: str, namespace: str, dry_run: bool, source: Source) -> None:
    """Replace all pods of a workload: rolling where its kind can, else all at once."""
    parts = _workload_named(what, namespace, source)
    ref = parts.owner.ref
    if ref.kind == "Pod":
        raise click.ClickException(f"{ref} has no controller that would make it anew; delete it and apply it again")

    async def work(client: Client) -> str:
        from spinney.api.core import Pod  # noqa: PLC0415  # slow to import
        from spinney.api.times import rfc3339  # noqa: PLC0415  # as above
        from spinney.cli.change.undoing import forget  # noqa: PLC0415  # as above
        from spinney.kube.clock import SystemClock  # noqa: PLC0415  # as above

        resource = await _resource(client, ref.api_version, ref.kind)
        if not dry_run:
            await forget(client, resource, (ref.namespace, ref.name))
        if ref.kind in _ROLLED:
            stamp = {"kubectl.kubernetes.io/restartedAt": rfc3339(SystemClock().now())}
            patch: Json = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
            await client.patch(resource, (ref.namespace, ref.name), patch, dry_run=dry_run)
            return "rolling"
        for pod in parts.alive:
            if not dry_run:
                await client.delete(Pod, pod.key)
        return f"{_pods(parts)} at once"

    how = source.connected(work)
    click.echo(f"{'would restart' if dry_run else 'restarted'} {ref}: {how}")


@click.command(
    epilog="""\b
Examples:
  spinney undo job/train
  spinney undo queue/team-a
"""
)
@_what
@namespace_option
@_dry_run
@cluster_options
def undo(*, what: str, namespace: str, dry_run: bool, source: Source) -> None:
    """Take back the last change that a verb of `spinney` made to a workload or a queue."""
    from spinney.answers.finding import split  # noqa: PLC0415  # slow to import
    from spinney.api.kai import Queue  # noqa: PLC0415  # as above
    from spinney.cli.change.undoing import undo as take_back  # noqa: PLC0415  # as above

    kind, name = split(what)
    ref = None if kind == "queue" else _workload_named(what, namespace, source).owner.ref

    async def work(client: Client) -> Json | None:
        if ref is None:
            return await take_back(client, Queue.resource, ("", name), dry_run=dry_run)
        resource = await _resource(client, ref.api_version, ref.kind)
        return await take_back(client, resource, (ref.namespace, ref.name), dry_run=dry_run)

    patch = source.connected(work)
    if patch is None:
        raise click.ClickException(f"{what}: there is nothing to undo (a restart cannot be taken back)")
    click.echo(f"{'would set' if dry_run else 'set'} {ref or f'queue {name}'} back: {json.dumps(patch)}")


def _pods(parts: Parts) -> str:
    return f"{len(parts.alive)} pod{'' if len(parts.alive) == 1 else 's'}"


def _workload_named(what: str, namespace: str, source: Source) -> Parts:
    """The one workload of a name; an error where there is none, or several."""
    from spinney.answers.finding import find, split  # noqa: PLC0415  # slow to import

    place = source.namespace(namespace)
    if source.snapshot is not None:
        raise click.UsageError("a snapshot cannot be changed: leave --snapshot out")
    kind, name = split(what)
    cluster = source.read(place)
    require(cluster, "Pod")
    matches = [each.parts for each in find(cluster, kind, name, place)]
    if not matches:
        raise click.ClickException(f"no {kind or 'workload'} {name!r} in namespace {place}")
    if len(matches) > 1:
        raise click.ClickException(f"{name!r} is several: {', '.join(str(parts.owner.ref) for parts in matches)}")
    return matches[0]


async def _resource(client: Client, api_version: str, kind: str) -> Resource:
    from spinney.kube.client.discovery import Discovery  # noqa: PLC0415  # slow to import

    resource = await Discovery(client).resource(api_version, kind)
    if resource is None:
        raise click.ClickException(f"{kind} of {api_version} is not served any more")
    return resource

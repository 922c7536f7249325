"""`spinney render`: everything that would be created for a set, offline."""

from __future__ import annotations

from collections.abc import Iterable

import click

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json
from spinney.app.offline_checks import admission_problems, read_documents, typed, unknown_fields
from spinney.app.rendering import Rendered, defaulted, levels, render
from spinney.backends.interface import Backend
from spinney.backends.kube_scheduler.releases import GANG_APIS, LATEST, served_by
from spinney.backends.registry import Choice, NoChoice, Registry, requested_scheduler
from spinney.cli.output import print_yaml
from spinney.grove.admission.sets import pods_of

MOST_PODS = 10_000


@click.command(name="render")
@click.option(
    "-f", "--filename", required=True, metavar="FILE", help="The set, and any ClusterTopologyBindings; - is stdin."
)
@click.option("--backend", "name", default="", metavar="NAME", help="Instead of the one that the set itself chooses.")
@click.option("--all", "every", is_flag=True, help="Every backend side by side, and what each loses.")
@click.option("--kubernetes", type=click.Choice(list(GANG_APIS)), default=LATEST, show_default=True)
def render_set(*, filename: str, name: str, every: bool, kubernetes: str) -> None:
    """Print what Spinney would create for a PodCliqueSet: gangs, the scheduler's objects, pods.

    \b
    Examples:
      spinney render -f set.yaml
      spinney render -f set.yaml --backend default --kubernetes 1.35
      spinney render -f set.yaml --all
    """
    documents = read_documents(filename)
    sets = [document for document in documents if document.get("kind") == PodCliqueSet.resource.kind]
    if not sets:
        raise click.UsageError(f"{filename} holds no PodCliqueSet")
    registry = Registry.load()
    served = served_by(kubernetes, registry)
    _warn_of_unknown_fields(documents)
    for document in map(defaulted, sets):
        pcs = typed(PodCliqueSet, document)
        domains, invented = levels(pcs, documents)
        problems = admission_problems(document, domains)
        if problems:
            raise click.ClickException(f"PodCliqueSet {pcs.name}: {'; '.join(problems)}")
        if (pods := pods_of(document)) > MOST_PODS:
            raise click.ClickException(f"PodCliqueSet {pcs.name}: {pods} pods are too many to print; lower replicas")
        try:
            choices = [_forced(each, pcs) for each in registry] if every else [_chosen(registry, pcs, name)]
        except NoChoice as error:
            raise click.ClickException(f"PodCliqueSet {pcs.name}: {error}") from error
        if invented:
            assumed = ", ".join(f"{domain} = {key}" for domain, key in domains.keys)
            click.echo(f"# no ClusterTopologyBinding was given; assuming {assumed}")
        rendered = [render(pcs, choice, served, domains) for choice in choices]
        if every:
            _print_side_by_side(rendered)
        else:
            _print_one(choices[0], rendered[0])


def _warn_of_unknown_fields(documents: Iterable[Json]) -> None:
    for document in documents:
        for kind in (PodCliqueSet, ClusterTopologyBinding):
            if document.get("kind") == kind.resource.kind:
                metadata = document.get("metadata")
                name = metadata.get("name") if isinstance(metadata, dict) else "(without a name)"
                for path in unknown_fields(kind, document):
                    click.echo(f'warning: {kind.resource.kind} {name}: unknown field "{path}"', err=True)


def _print_one(choice: Choice, only: Rendered) -> None:
    for warning in (*choice.warnings, *only.review.warnings):
        click.echo(f"warning: {warning}", err=True)
    print_yaml([*only.gangs, *only.resources, *only.pods])
    if only.review.problems:
        raise click.ClickException(
            "admission would refuse it: " + "; ".join(f"{p.field}: {p.message}" for p in only.review.problems)
        )


def _chosen(registry: Registry, pcs: PodCliqueSet, name: str) -> Choice:
    if not name:
        return registry.choose(pcs)
    backend = registry.get(name)
    if backend is None:
        raise click.BadParameter(
            f"no backend {name!r} is registered, only {', '.join(registry.names)}", param_hint="--backend"
        )
    return _forced(backend, pcs)


def _forced(backend: Backend, pcs: PodCliqueSet) -> Choice:
    return Choice(backend, backend.scheduler_name(requested_scheduler(pcs)), "the command line names it")


def _print_side_by_side(rendered: Iterable[Rendered]) -> None:
    rendered = list(rendered)
    for result in rendered:
        kinds = [f"{item['kind']}/{item['metadata']['name']}" for item in result.resources]
        click.echo(f"# {result.backend.name}: schedulerName {result.scheduler_name}, gate {result.backend.gate}")
        click.echo(f"#   writes {', '.join(kinds) if kinds else 'nothing but pod metadata'}")
        lost = [f"{loss.feature.value} ({loss.asked})" for loss in result.losses]
        click.echo(f"#   loses {', '.join(lost) if lost else 'nothing'}")
        for problem in result.review.problems:
            click.echo(
                f"#   refused unless the set opts in: {problem.field}"
                if problem.waivable
                else f"#   refused: {problem.message}"
            )
    for result in rendered:
        click.echo(f"\n# ---- {result.backend.name}")
        print_yaml([*result.resources, *result.pods[:1]])

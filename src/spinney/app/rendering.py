"""What the operator and a backend would create for a set, worked out without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.app.offline_checks import binding_named
from spinney.backends.admission import Review, review_set
from spinney.backends.capabilities import Loss
from spinney.backends.interface import Backend, Cluster
from spinney.backends.plan import without_none
from spinney.backends.registry import Choice
from spinney.backends.served import Served
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.model import pod_manifest as pods
from spinney.grove.model import topology
from spinney.grove.model.cliques import clique as clique_body
from spinney.grove.model.gangs import gang_body
from spinney.grove.model.layout import Gang, Layout, lay_out
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.view import View

# Stands where the API server would put an identity of its own.
_UID = "00000000-0000-0000-0000-{:012d}"
_INIT_IMAGE = "spinney:latest"


@dataclass(frozen=True)
class Rendered:
    """Everything that one backend's cluster would hold for a set, in the order of creation."""

    backend: Backend
    scheduler_name: str
    gangs: tuple[Json, ...]
    resources: tuple[Json, ...]
    pods: tuple[Json, ...]
    losses: tuple[Loss, ...]
    review: Review


def defaulted(document: Json) -> Json:
    """A set as admission would leave it."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    namespace = metadata.get("namespace") or "default"
    made = with_defaults(document, namespace)
    return {**made, "metadata": {**made["metadata"], "namespace": namespace, "uid": _UID.format(0)}}


def levels(pcs: PodCliqueSet, documents: Sequence[Json]) -> tuple[topology.Levels, bool]:
    """The node label keys of the set's domains; made up, and said so, where no binding was given."""
    name = topology.topology_name(pcs)
    binding = binding_named(name, documents)
    if binding is not None:
        return topology.levels_of(binding), False
    constraints = topology.constraints(pcs)
    domains = dict.fromkeys(domain for found in constraints for domain in (found.required, found.preferred) if domain)
    keys = tuple((domain, f"topology.kubernetes.io/{domain}") for domain in domains)
    return topology.Levels(name or "any", keys) if keys else topology.NO_LEVELS, bool(keys)


def size(pcs: PodCliqueSet) -> int:
    """How many pods a set makes."""
    template = pcs.spec.template
    times = {name: group.replicas for group in template.pod_clique_scaling_groups for name in group.clique_names}
    each = sum(clique.spec.replicas * times.get(clique.name, 1) for clique in template.cliques)
    return max(pcs.spec.replicas, 0) * each


def render(pcs: PodCliqueSet, choice: Choice, served: Served, found: topology.Levels) -> Rendered:
    """All replicas of a set, for one backend."""
    backend = choice.backend
    stored: list[tuple[Layout, Gang, Json]] = []
    for index in range(pcs.spec.replicas):
        layout = lay_out(pcs, index, {})
        stored += [(layout, gang, _gang(layout, gang, choice, found, len(stored) + n)) for n, gang in _count(layout)]
    translations = [backend.translate(convert(PodGang, body), Cluster(served)) for _, _, body in stored]
    return Rendered(
        backend,
        choice.scheduler_name,
        tuple(body for _, _, body in stored),
        tuple(
            {"apiVersion": w.resource.api_version, "kind": w.resource.kind, **without_none(w.body)}
            for translation in translations
            for w in translation.objects
        ),
        tuple(
            pod for layout, gang, body in stored for pod in _pods(layout, gang, convert(PodGang, body), choice, served)
        ),
        tuple(dict.fromkeys(loss for translation in translations for loss in translation.losses)),
        review_set(backend, pcs, served),
    )


def _count(layout: Layout) -> Iterator[tuple[int, Gang]]:
    return enumerate(layout.gangs, start=1)


def _gang(layout: Layout, gang: Gang, choice: Choice, found: topology.Levels, number: int) -> Json:
    ordinals: Counter[str] = Counter()

    def pod_name(clique: str) -> str:
        ordinals[clique] += 1
        return f"{clique}-{ordinals[clique] - 1}"

    body = gang_body(View(layout, found), gang, choice, PodNames(pod_name))
    return {
        "apiVersion": PodGang.resource.api_version,
        "kind": PodGang.resource.kind,
        "metadata": {**body["metadata"], "uid": _UID.format(number), "generation": 1},
        "spec": body["spec"],
    }


def _pods(layout: Layout, gang: Gang, stored: PodGang, choice: Choice, served: Served) -> Iterator[Json]:
    making = pods.Making(choice.backend, choice.scheduler_name, served, _INIT_IMAGE)
    for clique in gang.cliques:
        body = clique_body(layout, clique, layout.pcs)
        owner = convert(PodClique, {**body, "metadata": {**body["metadata"], "uid": _UID.format(0)}})
        for index, name in enumerate(_names(clique.name, clique.template.spec.replicas)):
            yield pods.build(layout, pods.Place(clique, owner, stored, name, index), making)


def _names(clique: str, replicas: int) -> list[str]:
    return [f"{clique}-{index}" for index in range(replicas)]

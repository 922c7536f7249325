"""What the operator and a backend would create for a set, worked out without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.image import default_image
from spinney.api.meta import Json, Object, convert
from spinney.api.podgang import PodGang
from spinney.app.offline_checks import binding_named
from spinney.backends.admission import Review, review_set
from spinney.backends.capabilities import Loss
from spinney.backends.interface import Backend, Cluster
from spinney.backends.registry import Choice
from spinney.backends.served import Served
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.model import topology
from spinney.grove.model.changes import Create
from spinney.grove.model.layout import lay_out
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.view import View
from spinney.grove.replica.facts import Facts
from spinney.grove.replica.plan import plan_replica
from spinney.kube.difference import without_none

# Stands where the API server would put an identity of its own.
_UID = "00000000-0000-0000-0000-{:012d}"
# Nothing that a plan creates depends on the time.
_NO_TIME = datetime.fromtimestamp(0, UTC)


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
    domains = dict.fromkeys(domain for each in constraints for domain in (each.required, each.preferred) if domain)
    keys = tuple((domain, f"topology.kubernetes.io/{domain}") for domain in domains)
    return topology.Levels(name or "any", keys) if keys else topology.NO_LEVELS, bool(keys)


def render(pcs: PodCliqueSet, choice: Choice, served: Served, levels: topology.Levels) -> Rendered:
    """All replicas of a set, for one backend: what the operator's plan of replicas that do not exist creates."""
    facts = Facts(choice, served, default_image(), frozenset(), PodNames(_names_by_ordinal()), _NO_TIME)
    uids = count(1)
    gangs: list[Json] = []
    pods: list[Json] = []
    for index in range(pcs.spec.replicas):
        for kind, body in _created(View(lay_out(pcs, index, {}), levels), facts, uids):
            if kind is PodGang:
                gangs.append(body)
            elif kind is Pod:
                pods.append(body)
    translations = [choice.backend.translate(convert(PodGang, body), Cluster(served)) for body in gangs]
    return Rendered(
        choice.backend,
        choice.scheduler_name,
        tuple(gangs),
        tuple(
            {"apiVersion": w.resource.api_version, "kind": w.resource.kind, **without_none(w.body)}
            for translation in translations
            for w in translation.objects
        ),
        tuple(pods),
        tuple(dict.fromkeys(loss for translation in translations for loss in translation.losses)),
        review_set(choice.backend, pcs, served),
    )


def _created(view: View, facts: Facts, uids: Iterator[int]) -> Iterator[tuple[type[Object], Json]]:
    """Everything that a replica's plan creates, as if the API server had stored each step."""
    for step in plan_replica(view, facts):
        for change in step.changes:
            if not isinstance(change, Create):
                continue
            if change.kind is Pod:
                yield change.kind, change.body
                continue
            stored = _as_stored(change, next(uids) if change.kind is PodGang else 0)
            view.put(convert(change.kind, stored))
            yield change.kind, stored


def _as_stored(create: Create, uid: int) -> Json:
    resource, body = create.kind.resource, create.body
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        **body,
        "metadata": {**body["metadata"], "uid": _UID.format(uid), "generation": 1},
    }


def _names_by_ordinal() -> Callable[[str], str]:
    """Pod names by ordinal, where the operator appends random suffixes."""
    ordinals: Counter[str] = Counter()

    def name(clique: str) -> str:
        ordinals[clique] += 1
        return f"{clique}-{ordinals[clique] - 1}"

    return name

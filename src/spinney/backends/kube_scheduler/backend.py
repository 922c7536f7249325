"""kube-scheduler, through the gang API of the cluster's Kubernetes release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang
from spinney.backends.building import edited_pod, may_write
from spinney.backends.capabilities import Capabilities
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.kube_scheduler import v1_35, v1_36, v1_37, v1_37_composite
from spinney.backends.readiness import all_exist, condition_message
from spinney.backends.required_features import gang_losses
from spinney.backends.served import Served
from spinney.kube.desired import Wanted
from spinney.kube.runtime import Rule

SCHEDULER = "default-scheduler"
_READ = ("get", "list", "watch")
# On Kubernetes 1.35 gangs are released in turn: what the search for a placement looks at, and what it nominates.
_IN_TURN_RULES = (
    Rule(("",), ("nodes", "persistentvolumeclaims", "persistentvolumes"), _READ),
    Rule(("storage.k8s.io",), ("storageclasses",), _READ),
    Rule(("resource.k8s.io",), ("resourceclaims",), _READ),
    Rule(("",), ("pods",), ("delete",)),
    Rule(("",), ("pods/status",), ("patch",)),
)


class Shape(Protocol):
    """The objects that stand for a gang in one release of Kubernetes."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """What must be served for it."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can express."""

    def objects(self, gang: PodGang) -> tuple[Wanted, ...]:
        """The gang's objects, in order of creation."""

    def link(self, pod: Json, gang: PodGang) -> Json:
        """The fields of the pod's spec that make it a member; empty for pods outside the gang."""


# The most expressive first.
SHAPES: tuple[Shape, ...] = (v1_37_composite.SHAPE, v1_37.SHAPE, v1_36.SHAPE, v1_35.SHAPE)


class Default:
    """The backend for the scheduler that every cluster has."""

    name = "default"
    gate = labels.DEFAULT_GATE
    lease = "kube-scheduler"
    resources: tuple[Resource, ...] = tuple(dict.fromkeys(r for shape in SHAPES for r in shape.resources))
    rules = (*may_write(*resources), *_IN_TURN_RULES)
    # Built-in kinds.
    crds: tuple[Json, ...] = ()

    def claims(self, scheduler_name: str) -> bool:
        """kube-scheduler's default profile."""
        return scheduler_name in ("", SCHEDULER)

    def scheduler_name(self, requested: str) -> str:
        """kube-scheduler's default profile."""
        return SCHEDULER

    def capabilities(self, served: Served) -> Capabilities:
        """Those of the cluster's release; none if it serves no gang API."""
        shape = shape_for(served)
        return shape.capabilities if shape else Capabilities("", frozenset())

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """One priority class for the whole set: from 1.37 on, kube-scheduler fails a gang with two."""
        named = {
            str(clique.spec.pod_spec.get("priorityClassName") or pcs.spec.template.priority_class_name)
            for clique in pcs.spec.template.cliques
        }
        shape = shape_for(served)
        if len(named) < 2 or shape is None or not shape.capabilities.api.endswith(("v1beta1", "v1alpha3")):
            return ()
        classes = ", ".join(sorted(repr(name) for name in named))
        message = f"kube-scheduler places no gang whose pods differ in priority, found {classes}; name one class"
        return (Problem("spec.template.cliques[].spec.podSpec.priorityClassName", message),)

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """None: the gang's spec is enough."""
        return {}

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod linked to its group; the link can only be made at creation."""
        shape = shape_for(served)
        return edited_pod(pod, spec={"schedulerName": SCHEDULER, **(shape.link(pod, gang) if shape else {})})

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """Workload and groups in the release's own shape."""
        shape = shape_for(cluster.served)
        if shape is None:
            return Translation((), gang_losses(gang, Capabilities("", frozenset())))
        return Translation(shape.objects(gang), gang_losses(gang, shape.capabilities))

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Ready when the objects exist; from 1.36 on their conditions say why a gang waits."""
        return all_exist(objects, condition_message(objects))


BACKEND = Default()


def shape_for(served: Served) -> Shape | None:
    """The most expressive shape whose every resource the cluster serves."""
    return next((shape for shape in SHAPES if all(map(served.has, shape.resources))), None)

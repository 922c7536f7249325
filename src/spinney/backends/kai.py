"""KAI: one `scheduling.run.ai` PodGroup per gang, with a subgroup per role and a parent per group of roles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from spinney.api import labels
from spinney.api.crd import definition
from spinney.api.gpu_shares import share_problems
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.kai import PodGroup, Topology
from spinney.api.meta import Json, Resource
from spinney.api.owners import controller_reference
from spinney.api.podgang import PodGang, TopologyConstraint
from spinney.backends import preemption_settings
from spinney.backends.building import edited_pod, may_write, owned_metadata
from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist, condition_message
from spinney.backends.required_features import packed
from spinney.backends.served import Served
from spinney.kube.desired import Drift, Wanted

_QUEUE_KEYS = QueueKeys(labels.QUEUE)
_EVERYTHING = frozenset(Feature)


class Kai:
    """The backend for KAI, and for Spinney's own scheduler, which speaks KAI's API."""

    name = "kai"
    gate = labels.KAI_GATE
    lease = labels.KAI_SCHEDULER
    resources: tuple[Resource, ...] = (PodGroup.resource, Topology.resource)
    rules = may_write(*resources)
    topology_resource = Topology.resource
    topology_scheduler = labels.KAI_SCHEDULER

    @property
    def crds(self) -> tuple[Json, ...]:
        """PodGroup and Topology."""
        return definition(PodGroup), definition(Topology)

    def claims(self, scheduler_name: str) -> bool:
        """KAI's own name, and the one in Grove's documents."""
        return scheduler_name in (labels.KAI_SCHEDULER, "grove-scheduler")

    def scheduler_name(self, requested: str) -> str:
        """Always KAI's name: it schedules no others."""
        return labels.KAI_SCHEDULER

    def capabilities(self, served: Served) -> Capabilities:
        """Everything: PodGang and KAI's PodGroup have the same shape."""
        api = PodGroup.resource.api_version if served.has(PodGroup.resource) else ""
        return Capabilities(api, _EVERYTHING, status="PodGroup status, pods")

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """One queue for the whole set, settings that can be read, and parts of GPUs that exist."""
        return (*_QUEUE_KEYS.conflicts(pcs), *preemption_settings.problems(pcs.metadata), *_share_problems(pcs))

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """The queue, which may be named on cliques only."""
        return _QUEUE_KEYS.annotations(pcs)

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod as a member of its subgroup; the pod grouper skips it."""
        return edited_pod(
            pod,
            labels={labels.SUBGROUP: pod["metadata"]["labels"][labels.PODCLIQUE]},
            annotations={labels.POD_GROUP: group_name(gang), labels.SKIP_PODGROUPER: "true"},
            spec={"schedulerName": labels.KAI_SCHEDULER},
        )

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """The PodGroup; nothing is lost."""
        spec = gang.spec
        annotations = {labels.TOP_OWNER: _top_owner(gang), labels.REUSE_RESERVATION: _reused(gang)}
        body: Json = {
            "metadata": owned_metadata(gang, group_name(gang), annotations),
            "spec": {
                "minMember": sum(group.min_replicas for group in spec.podgroups),
                "queue": _QUEUE_KEYS.of(gang) or labels.DEFAULT_QUEUE,
                "priorityClassName": spec.priority_class_name or None,
                **preemption_settings.settings(gang.metadata),
                "topologyConstraint": _constraint(gang, spec.topology_constraint),
                "subGroups": _subgroups(gang),
            },
        }
        return Translation((Wanted(PodGroup.resource, body),))

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Ready when the PodGroup exists; the message is the scheduler's."""
        return all_exist(objects, condition_message(objects, "schedulingConditions"))

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """A KAI Topology of the binding's name, with its levels in the same order."""
        body: Json = {
            "metadata": {"name": binding.name, "ownerReferences": [controller_reference(binding)]},
            "spec": {"levels": _levels(binding)},
        }
        # KAI refuses a change of levels.
        return Wanted(Topology.resource, body, drift=Drift.RECREATE)

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, topologies: Sequence[Json]) -> str:
        """Whether the Topology of that name has the binding's levels."""
        for topology in topologies:
            if topology["metadata"]["name"] != reference:
                continue
            levels = [level.get("nodeLabel") for level in topology.get("spec", {}).get("levels") or ()]
            wanted = [level["nodeLabel"] for level in _levels(binding)]
            return "" if levels == wanted else f"Topology {reference} has the levels {levels}, the binding {wanted}"
        return f"Topology {reference} does not exist"


BACKEND = Kai()


def group_name(gang: PodGang) -> str:
    """The name that KAI's pod grouper would give the group."""
    return f"pg-{gang.name}-{gang.uid}"


def _share_problems(pcs: PodCliqueSet) -> list[Problem]:
    return [
        Problem(f"spec.template.cliques[{position}].annotations", f"its pods would be refused: {problem}")
        for position, clique in enumerate(pcs.spec.template.cliques)
        for problem in share_problems({"metadata": {"annotations": clique.annotations}, "spec": clique.spec.pod_spec})
    ]


def _subgroups(gang: PodGang) -> list[Json]:
    configs = gang.spec.topology_constraint_group_configs
    parents = {name: config.name for config in configs for name in config.pod_group_names}
    groups = [
        {
            "name": config.name,
            "minSubGroup": len(config.pod_group_names),
            "topologyConstraint": _constraint(gang, config.topology_constraint),
        }
        for config in configs
    ]
    groups += [
        {
            "name": group.name,
            "minMember": group.min_replicas,
            "parent": parents.get(group.name),
            "topologyConstraint": _constraint(gang, group.topology_constraint),
        }
        for group in gang.spec.podgroups
    ]
    # Lists are replaced whole: a None in them would remove nothing.
    return [{key: value for key, value in group.items() if value is not None} for group in groups]


def _constraint(gang: PodGang, constraint: TopologyConstraint | None) -> Json | None:
    required, preferred = packed(constraint)
    if not required and not preferred:
        return None
    annotations = gang.metadata.annotations
    levels = {
        "topology": annotations.get(labels.TOPOLOGY_NAME) or annotations.get(labels.TOPOLOGY),
        "requiredTopologyLevel": required,
        "preferredTopologyLevel": preferred,
    }
    return {key: value for key, value in levels.items() if value}


def _levels(binding: ClusterTopologyBinding) -> list[Json]:
    return [{"nodeLabel": level.key} for level in binding.spec.levels]


def _top_owner(gang: PodGang) -> str:
    """The owner in YAML; quoted, so that a name that looks like a number stays a string."""
    resource = PodGang.resource
    owner = (
        ("name", gang.name),
        ("uid", gang.uid),
        ("group", resource.group),
        ("version", resource.version),
        ("kind", resource.kind),
    )
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in owner)


def _reused(gang: PodGang) -> str | None:
    reference = gang.spec.reuse_reservation_ref
    return f"{reference.namespace}/{reference.name}" if reference else None

"""Volcano: one PodGroup per gang, with a subgroup policy per role. Needs Volcano 1.14.4 or later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api import labels
from spinney.api.crd import definition
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang, PodGroup
from spinney.api.volcano import HyperNode, Queue
from spinney.api.volcano import PodGroup as VolcanoGroup
from spinney.backends.building import edited_pod, may_read, may_write, owned_metadata
from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist, condition_message
from spinney.backends.required_features import Constraint, gang_losses, packed
from spinney.backends.served import Served
from spinney.kube.desired import Wanted

SCHEDULER = "volcano"
_QUEUE_KEYS = QueueKeys(labels.VOLCANO_QUEUE, labels.VOLCANO_NAMESPACE_QUEUE)


class Volcano:
    """The backend for Volcano."""

    name = "volcano"
    gate = labels.VOLCANO_GATE
    lease = "volcano"
    resources: tuple[Resource, ...] = (VolcanoGroup.resource, HyperNode.resource)
    rules = (*may_write(VolcanoGroup.resource), *may_read(HyperNode.resource))
    topology_resource = HyperNode.resource
    topology_scheduler = SCHEDULER

    @property
    def crds(self) -> tuple[Json, ...]:
        """PodGroup, Queue and HyperNode, as Volcano's own chart installs them."""
        return definition(VolcanoGroup), definition(Queue), definition(HyperNode)

    def claims(self, scheduler_name: str) -> bool:
        """Volcano's own name."""
        return scheduler_name == SCHEDULER

    def scheduler_name(self, requested: str) -> str:
        """Volcano's own name."""
        return SCHEDULER

    def capabilities(self, served: Served) -> Capabilities:
        """Everything but topology for a group of roles."""
        api = VolcanoGroup.resource.api_version if served.has(VolcanoGroup.resource) else ""
        missing = {Feature.CONFIG_REQUIRED, Feature.CONFIG_PREFERRED, Feature.REUSE}
        return Capabilities(
            api,
            frozenset(Feature) - missing,
            status="PodGroup phase and conditions, pods",
            remarks=(
                "Volcano 1.14.4 or later (subGroupPolicy)",
                "topology by HyperNodes whose tier names are node label keys; required packs as tightly as it can, so "
                "a preferred level beside it needs no words",
            ),
        )

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """One queue for the whole set."""
        return _QUEUE_KEYS.conflicts(pcs)

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """The queue, which may be named on cliques only."""
        return _QUEUE_KEYS.annotations(pcs)

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod as a member of the group; subgroup policies select it by the label of its role."""
        role = pod["metadata"]["labels"][labels.PODCLIQUE]
        return edited_pod(
            pod,
            annotations={
                labels.VOLCANO_GROUP: gang.name,
                labels.VOLCANO_GROUP_WRITTEN: gang.name,
                labels.VOLCANO_TASK: role,
            },
            spec={"schedulerName": SCHEDULER},
        )

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """The PodGroup. Without a queue of the gang the field is left alone: Volcano's webhook may have set it."""
        queue = gang.metadata.annotations.get(labels.VOLCANO_QUEUE)
        body: Json = {
            "metadata": owned_metadata(gang, gang.name),
            "spec": {
                "minMember": sum(group.min_replicas for group in gang.spec.podgroups),
                **({"queue": queue} if queue else {}),
                "priorityClassName": gang.spec.priority_class_name or None,
                "networkTopology": _network(gang.spec.topology_constraint),
                # The size of a policy is at least 1: roles without a minimum have none and join the default subgroup.
                "subGroupPolicy": [_policy(group) for group in gang.spec.podgroups if group.min_replicas > 0] or None,
            },
        }
        losses = gang_losses(gang, self.capabilities(cluster.served))
        return Translation((Wanted(VolcanoGroup.resource, body),), losses)

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Ready when the PodGroup exists; the message is from Volcano's conditions."""
        return all_exist(objects, condition_message(objects))

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """None: Volcano discovers HyperNodes, or an administrator creates them."""
        return None

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, topologies: Sequence[Json]) -> str:
        """Whether there are HyperNodes for every level, narrower levels on lower tiers."""
        tiers = {
            str(spec["tierName"]): int(spec.get("tier") or 0)
            for spec in (node.get("spec") or {} for node in topologies)
            if spec.get("tierName")
        }
        keys = [level.key for level in binding.spec.levels]
        missing = [key for key in keys if key not in tiers]
        if missing:
            return f"no HyperNode has the tier name {', '.join(missing)} (found: {', '.join(sorted(tiers)) or 'none'})"
        order = [tiers[key] for key in keys]
        if order != sorted(order, reverse=True):
            return f"the HyperNode tiers of {', '.join(keys)} are {order}; broader levels must have higher tiers"
        return ""


BACKEND = Volcano()


def _policy(group: PodGroup) -> Json:
    policy: Json = {
        "name": group.name,
        "labelSelector": {"matchLabels": {labels.PODCLIQUE: group.name}},
        # Without this key Volcano matches no pod at all.
        "matchLabelKeys": [labels.PODCLIQUE],
        "subGroupSize": group.min_replicas,
        "minSubGroups": 1,
    }
    network = _network(group.topology_constraint)
    return {**policy, "networkTopology": network} if network else policy


def _network(constraint: Constraint | None) -> Json | None:
    required, preferred = packed(constraint)
    if required:
        return {"mode": "hard", "highestTierName": required}
    return {"mode": "soft", "highestTierName": preferred} if preferred else None

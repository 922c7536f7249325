"""The backend for Volcano."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api import labels
from spinney.api.crd import definition
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang, PodGroup
from spinney.api.volcano import HyperNode, Queue
from spinney.api.volcano import PodGroup as VolcanoGroup
from spinney.backends.building import edited_pod, may_read, may_read_settings, may_write, owned_metadata
from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist, condition_message
from spinney.backends.required_features import gang_losses
from spinney.backends.served import Served
from spinney.backends.volcano import hyper_nodes
from spinney.kube.desired import Wanted

SCHEDULER = "volcano"
_QUEUE_KEYS = QueueKeys(labels.VOLCANO_QUEUE, labels.VOLCANO_NAMESPACE_QUEUE)


class Volcano:
    """The backend for Volcano."""

    name = "volcano"
    gate = labels.VOLCANO_GATE
    lease = "volcano"
    resources: tuple[Resource, ...] = (VolcanoGroup.resource, HyperNode.resource, Queue.resource)
    rules = (
        *may_write(VolcanoGroup.resource),
        *may_read(HyperNode.resource, Queue.resource),
        *may_read_settings(*hyper_nodes.SETTINGS),
    )
    settings = hyper_nodes.SETTINGS
    topology_resource = HyperNode.resource
    topology_scheduler = SCHEDULER
    queue_resource = Queue.resource

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
                f"topology needs the plugin {hyper_nodes.PLUGIN} and HyperNodes whose tier names are node label keys",
                "required packs as tightly as it can, so a preferred level beside it needs no words",
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
                "networkTopology": hyper_nodes.network(gang.spec.topology_constraint),
                # The size of a policy is at least 1: roles without a minimum have none and join the default subgroup.
                "subGroupPolicy": [_policy(group) for group in gang.spec.podgroups if group.min_replicas > 0] or None,
            },
        }
        capabilities = self.capabilities(cluster.served)
        losses = (*gang_losses(gang, capabilities), *hyper_nodes.lacking(gang, cluster, capabilities))
        return Translation((Wanted(VolcanoGroup.resource, body),), losses)

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Ready when the PodGroup exists; the message is from Volcano's conditions."""
        return all_exist(objects, condition_message(objects))

    def missing_queue(self, gang: PodGang, cluster: Cluster) -> str:
        """Volcano leaves a gang of an unknown or closed queue waiting and says so in its log only."""
        queue = _QUEUE_KEYS.of(gang)
        states = {item["metadata"]["name"]: (item.get("status") or {}).get("state") for item in cluster.queues or ()}
        if states.get(queue) in ("Closed", "Closing"):
            return f"Queue {queue!r} is {states[queue]} and takes no new gangs: open it, or name another one on the set"
        return _QUEUE_KEYS.not_among(gang, cluster.queues, "Queue")

    def setup_problems(self, cluster: Cluster) -> tuple[str, ...]:
        """What keeps topology from working."""
        return hyper_nodes.problems(cluster)

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """None: Volcano discovers HyperNodes, or an administrator creates them."""
        return None

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, topologies: Sequence[Json]) -> str:
        """Whether there are HyperNodes for every level, narrower levels on lower tiers."""
        return hyper_nodes.binding_drift(binding, topologies)


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
    network = hyper_nodes.network(group.topology_constraint)
    return {**policy, "networkTopology": network} if network else policy

"""The backend for Koordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api import labels
from spinney.api.crd import definition
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.koordinator import CLUSTER_NETWORK_TOPOLOGY, ELASTIC_QUOTA
from spinney.api.koordinator import PodGroup as KoordinatorGroup
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang
from spinney.api.reasons import SYNCED
from spinney.backends.building import edited_pod, fitted_name, may_read, may_read_settings, may_write
from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.koordinator import setup
from spinney.backends.koordinator.groups import BY_ROLE, HELD, group_name, groups, is_member
from spinney.backends.koordinator.topology import binding_drift, gathering
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist
from spinney.backends.required_features import gang_losses, packed_whole
from spinney.backends.served import Served
from spinney.kube.desired import Wanted

SCHEDULER = "koord-scheduler"
_QUOTA_KEYS = QueueKeys(labels.KOORDINATOR_QUOTA)


class Koordinator:
    """The backend for Koordinator."""

    name = "koordinator"
    gate = labels.KOORDINATOR_GATE
    lease = SCHEDULER
    resources: tuple[Resource, ...] = (KoordinatorGroup.resource, CLUSTER_NETWORK_TOPOLOGY, ELASTIC_QUOTA)
    rules = (
        *may_write(KoordinatorGroup.resource),
        *may_read(CLUSTER_NETWORK_TOPOLOGY, ELASTIC_QUOTA),
        *may_read_settings(*setup.SETTINGS),
    )
    settings = setup.SETTINGS
    topology_resource = CLUSTER_NETWORK_TOPOLOGY
    topology_scheduler = SCHEDULER
    queue_resource = ELASTIC_QUOTA

    @property
    def crds(self) -> tuple[Json, ...]:
        """PodGroup; Koordinator brings ClusterNetworkTopology itself."""
        return (definition(KoordinatorGroup),)

    def claims(self, scheduler_name: str) -> bool:
        """Any name that contains `koord`: there may be several profiles."""
        return "koord" in scheduler_name

    def scheduler_name(self, requested: str) -> str:
        """The requested profile, if it is one of Koordinator's."""
        return requested if self.claims(requested) else SCHEDULER

    def capabilities(self, served: Served) -> Capabilities:
        """One topology for the whole gang, none for its parts."""
        api = KoordinatorGroup.resource.api_version if served.has(KoordinatorGroup.resource) else ""
        return Capabilities(
            api,
            frozenset(
                {
                    Feature.TOGETHER,
                    Feature.GROUP_MINIMUM,
                    Feature.ZERO_MINIMUM,
                    Feature.MUTABLE_MINIMUM,
                    Feature.GANG_REQUIRED,
                    Feature.GANG_PREFERRED,
                    Feature.PRIORITY,
                    Feature.QUEUE,
                }
            ),
            surplus_held=True,
            surplus_outside=True,
            counts_gated=True,
            status="PodGroup phase, pods",
            remarks=(
                "topology needs the flag --enable-network-topology-manager, the plugin argument awareNetworkTopology "
                "and a ClusterNetworkTopology named default",
                "pods beyond the minimum stand outside the gang; they and replacements get its required domain as a "
                "node selector",
                "priority by pods only",
            ),
        )

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """One quota for the whole set."""
        return _QUOTA_KEYS.conflicts(pcs)

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """The quota, which may be named on cliques only."""
        return _QUOTA_KEYS.annotations(pcs)

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod as a member of its role's group, if it is one; the others are placed by themselves."""
        own = pod["metadata"]["labels"]
        member = is_member(gang, own)
        index = own.get(labels.POD_INDEX)
        return edited_pod(
            pod,
            labels={
                **({labels.KOORDINATOR_POD_GROUP: group_name(gang, own[labels.PODCLIQUE])} if member else {}),
                **_QUOTA_KEYS.labels(gang),
            },
            annotations={labels.KOORDINATOR_TOPOLOGY_INDEX: index} if index and any(packed_whole(gang)) else {},
            spec={"schedulerName": self.scheduler_name(str(pod["spec"].get("schedulerName") or ""))},
        )

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """A PodGroup per role with a minimum, and what is lost of the gang's topology."""
        strategy, lacking = gathering(gang, cluster.topology, setup.topology_switched_off(cluster.settings))
        wanted = [Wanted(KoordinatorGroup.resource, body) for body in groups(gang, cluster.pods, strategy)]
        return Translation(tuple(wanted), (*gang_losses(gang, self.capabilities(cluster.served)), *lacking))

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Ready when the PodGroups exist; the message shows their phases."""
        if any((item.get("spec") or {}).get("minMember") == HELD for item in objects):
            message = "PodGroups written; their minimums follow when the gates of all pods are off"
            return Readiness(True, SYNCED, message)
        phases = [f"{item['metadata']['name']} {phase}" for item in objects if (phase := _phase(item))]
        return all_exist(objects, f"PodGroups: {', '.join(phases)}" if phases else "")

    def remembered(self, gang: PodGang, objects: Sequence[Json]) -> dict[str, str]:
        """Names without a UID, which the pods of older gangs carry."""
        earlier = {fitted_name(group.name) for group in gang.spec.podgroups}
        written = {item["metadata"]["name"] for item in objects if item.get("kind") == KoordinatorGroup.resource.kind}
        return {labels.KOORDINATOR_NAMES: BY_ROLE} if earlier & written else {}

    def missing_queue(self, gang: PodGang, cluster: Cluster) -> str:
        """Koordinator would put pods with an unknown quota into its default quota, without a word."""
        return _QUOTA_KEYS.not_among(gang, cluster.queues, "ElasticQuota")

    def setup_problems(self, cluster: Cluster) -> tuple[str, ...]:
        """What keeps topology from working."""
        return setup.problems(cluster)

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """None: the administrator writes the ClusterNetworkTopology."""
        return None

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, topologies: Sequence[Json]) -> str:
        """Whether the layers of the ClusterNetworkTopology name every level's key, in the same order."""
        return binding_drift(binding, topologies)


BACKEND = Koordinator()


def _phase(item: Json) -> str:
    return str((item.get("status") or {}).get("phase") or "")

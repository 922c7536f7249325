"""Koordinator: one PodGroup per role; an annotation on all of them makes them one gang group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from spinney.api import labels
from spinney.api.crd import definition
from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.koordinator import CLUSTER_NETWORK_TOPOLOGY
from spinney.api.koordinator import PodGroup as KoordinatorGroup
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang, PodGroup
from spinney.backends.building import edited_pod, fitted_name, may_read, may_write, owned_metadata
from spinney.backends.capabilities import Capabilities, Feature, Loss
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist
from spinney.backends.required_features import gang_losses, packed_whole
from spinney.backends.served import Served
from spinney.kube.desired import Wanted

SCHEDULER = "koord-scheduler"
# Koordinator's own default; kube-scheduler's framework cuts anything above 15 minutes.
_TIMEOUT_SECONDS = 600
_NODE_LAYER = "NodeTopologyLayer"
_QUOTA_KEYS = QueueKeys(labels.KOORDINATOR_QUOTA)


class Koordinator:
    """The backend for Koordinator."""

    name = "koordinator"
    gate = labels.KOORDINATOR_GATE
    lease = SCHEDULER
    resources: tuple[Resource, ...] = (KoordinatorGroup.resource, CLUSTER_NETWORK_TOPOLOGY)
    rules = (*may_write(KoordinatorGroup.resource), *may_read(CLUSTER_NETWORK_TOPOLOGY))
    topology_resource = CLUSTER_NETWORK_TOPOLOGY
    topology_scheduler = SCHEDULER

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
            status="PodGroup phase, pods",
            remarks=(
                "topology needs the plugin argument awareNetworkTopology and a ClusterNetworkTopology named default",
                "topology holds for the first placement of gangs without surplus",
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
        """The pod as a member of its role's group; a role without a minimum has no group."""
        own = pod["metadata"]["labels"]
        role = own[labels.PODCLIQUE]
        member = any(group.name == role and group.min_replicas > 0 for group in gang.spec.podgroups)
        index = own.get(labels.POD_INDEX)
        return edited_pod(
            pod,
            labels={
                **({labels.KOORDINATOR_POD_GROUP: fitted_name(role)} if member else {}),
                **_QUOTA_KEYS.labels(gang),
            },
            annotations={labels.KOORDINATOR_TOPOLOGY_INDEX: index} if index and any(packed_whole(gang)) else {},
            spec={"schedulerName": self.scheduler_name(str(pod["spec"].get("schedulerName") or ""))},
        )

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """A PodGroup per role with a minimum; each names all of them."""
        members = [group for group in gang.spec.podgroups if group.min_replicas > 0]
        losses = gang_losses(gang, self.capabilities(cluster.served))
        strategy, unknown = _gathering(gang, cluster.topology)
        objects = tuple(
            Wanted(KoordinatorGroup.resource, _group(gang, member, members, strategy)) for member in members
        )
        return Translation(objects, (*losses, *unknown))

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Ready when the PodGroups exist; the message shows their phases."""
        phases = [f"{item['metadata']['name']} {phase}" for item in objects if (phase := _phase(item))]
        return all_exist(objects, f"PodGroups: {', '.join(phases)}" if phases else "")

    def topology(self, binding: ClusterTopologyBinding) -> Wanted | None:
        """None: the administrator writes the ClusterNetworkTopology."""
        return None

    def topology_drift(self, binding: ClusterTopologyBinding, reference: str, topologies: Sequence[Json]) -> str:
        """Whether the layers of the ClusterNetworkTopology name every level's key, in the same order."""
        layers = layers_of(topologies)
        if not layers:
            return "there is no ClusterNetworkTopology named default, or it has no layers"
        keys = [level.key for level in binding.spec.levels if level.key != labels.HOSTNAME]
        missing = [key for key in keys if key not in layers]
        if missing:
            return f"no layer of ClusterNetworkTopology default has the label key {', '.join(missing)}"
        order = [key for key in layers if key in keys]
        return "" if order == keys else f"ClusterNetworkTopology default orders the levels {order}, the binding {keys}"


BACKEND = Koordinator()


def layers_of(topologies: Sequence[Json]) -> dict[str, str]:
    """Label key → layer of the ClusterNetworkTopology `default`, broadest first."""
    spec = next((each.get("spec") or {} for each in topologies if each["metadata"]["name"] == "default"), {})
    entries: list[Json] = list(spec.get("networkTopologySpec") or ())
    parents = {str(entry["topologyLayer"]): str(entry.get("parentTopologyLayer") or "") for entry in entries}

    def depth(layer: str) -> int:
        seen: set[str] = set()
        while layer in parents and layer not in seen:
            seen.add(layer)
            layer = parents[layer]
        return len(seen)

    entries.sort(key=lambda entry: depth(str(entry["topologyLayer"])))
    return {str(key): str(entry["topologyLayer"]) for entry in entries for key in entry.get("labelKey") or ()}


def _gathering(gang: PodGang, topologies: Sequence[Json]) -> tuple[list[Json], tuple[Loss, ...]]:
    """The gather strategy of the whole gang, and what of it the cluster's topology lacks."""
    required, preferred = packed_whole(gang)
    strategies = [(required, "MustGather", Feature.GANG_REQUIRED), (preferred, "PreferGather", Feature.GANG_PREFERRED)]
    layers = layers_of(topologies)
    strategy: list[Json] = []
    unknown: list[Loss] = []
    for key, word, feature in strategies:
        if not key:
            continue
        layer = _NODE_LAYER if key == labels.HOSTNAME else layers.get(key, "" if layers else _layer_name(key))
        if layer:
            strategy.append({"layer": layer, "strategy": word})
        else:
            unknown.append(Loss(feature, "spec.topologyConstraint.packConstraint", key))
    return strategy, tuple(unknown)


def _layer_name(key: str) -> str:
    """The conventional name of a layer if there is no topology object: `example.com/block` → `BlockLayer`."""
    return f"{key.rpartition('/')[2].title().replace('-', '')}Layer"


def _group(gang: PodGang, group: PodGroup, members: Sequence[PodGroup], strategy: list[Json]) -> Json:
    names = [f"{gang.namespace}/{fitted_name(member.name)}" for member in members]
    annotations = {
        labels.KOORDINATOR_GROUPS: _compact(names),
        labels.KOORDINATOR_MODE: "Strict",
        # Once a role has started, later pods of it need no gang, as surplus should.
        labels.KOORDINATOR_MATCH_POLICY: "once-satisfied",
        labels.KOORDINATOR_TOTAL: str(max(len(group.pod_references), group.min_replicas)),
        labels.KOORDINATOR_TOPOLOGY: _compact({"gatherStrategy": strategy}) if strategy else None,
    }
    return {
        "metadata": owned_metadata(gang, fitted_name(group.name), annotations),
        "spec": {"minMember": group.min_replicas, "scheduleTimeoutSeconds": _TIMEOUT_SECONDS},
    }


def _compact(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _phase(item: Json) -> str:
    return str((item.get("status") or {}).get("phase") or "")

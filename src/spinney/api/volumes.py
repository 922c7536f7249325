"""Which claims a pod has, which volumes could serve them, and the nodes its volumes and config maps let it run on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from spinney.api import labels
from spinney.api.affinity import NodeSelector, NodeSelectorTerm, selects_node
from spinney.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from spinney.api.meta import Key
from spinney.api.missing import Lack, Missing
from spinney.api.quantity import milli
from spinney.api.selector import Requirement
from spinney.api.storage import StorageClass, VolumeAttachment

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
T_co = TypeVar("T_co", covariant=True)


class Lookup(Protocol[T_co]):
    """The part of a cache that is read here."""

    def get(self, key: Key | str) -> T_co | None:
        """The object of that namespace and name; for cluster-scoped kinds the name is enough."""

    def __iter__(self) -> Iterator[T_co]: ...


@dataclass(frozen=True)
class Storage:
    """Read access to the objects about storage, and a test whether a config map exists."""

    claims: Lookup[PersistentVolumeClaim]
    volumes: Lookup[PersistentVolume]
    classes: Lookup[StorageClass]
    nodes: Lookup[Node]
    # By namespace and name.
    has_config_map: Callable[[str, str], bool] = lambda namespace, name: True


@dataclass(frozen=True)
class Reach:
    """The nodes a pod's storage allows; None is every node. `impossible` is what the pod lacks on every node."""

    nodes: frozenset[str] | None = None
    impossible: Missing | None = None

    def narrowed(self, other: Reach) -> Reach:
        """The nodes that both allow."""
        if self.impossible or other.impossible:
            return self if self.impossible else other
        if self.nodes is None or other.nodes is None:
            return other if self.nodes is None else self
        return Reach(self.nodes & other.nodes)

    def allows(self, node: Node) -> bool:
        """Whether the pod's storage lets it run on a node."""
        return not self.impossible and (self.nodes is None or node.name in self.nodes)


def claim_names(pod: Pod) -> Iterator[str]:
    """The claims of a pod's volumes; an ephemeral volume's claim is named after pod and volume."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.name}-{volume.name}"


def serves(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a free volume could serve a claim."""
    wanted = claim.spec.resources.requests.get("storage", "0")
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == "Available"
        and volume.spec.storage_class_name == (claim.spec.storage_class_name or "")
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and milli(volume.spec.capacity.get("storage", "0")) >= milli(wanted)
    )


def needs_storage(pod: Pod) -> bool:
    """Whether a pod's place depends on claims or config maps at all."""
    return any(claim_names(pod)) or any(required_config_maps(pod))


def reach_of(pod: Pod, storage: Storage) -> Reach:
    """Where a pod's storage lets it run."""
    for name in required_config_maps(pod):
        if not storage.has_config_map(pod.namespace, name):
            return Reach(impossible=Missing(Lack.CONFIG_MAP, name))
    allowed: frozenset[str] | None = None
    for name in claim_names(pod):
        claim = storage.claims.get((pod.namespace, name))
        if claim is None:
            return Reach(impossible=Missing(Lack.VOLUME_CLAIM, name))
        if claim.metadata.deletion_timestamp is not None:
            return Reach(impossible=Missing(Lack.VOLUME_CLAIM_DELETED, name))
        reach = _reach_of_claim(claim, storage)
        if reach.impossible:
            return reach
        if reach.nodes is not None:
            allowed = reach.nodes if allowed is None else allowed & reach.nodes
    return Reach(allowed)


def attached_by(pod: Pod, storage: Storage) -> tuple[tuple[str, str], ...]:
    """The volumes of a pod that its node has to attach: the driver, and the volume or the claim that will get one."""
    attached: set[tuple[str, str]] = set()
    for name in claim_names(pod):
        claim = storage.claims.get((pod.namespace, name))
        if claim is None:
            continue
        volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None:
                attached.add((volume.spec.csi.driver, volume.spec.csi.volume_handle or volume.name))
            continue
        storage_class = storage.classes.get(claim.spec.storage_class_name or "")
        if storage_class is not None and storage_class.provisioner != _NO_PROVISIONER:
            attached.add((storage_class.provisioner, f"{claim.namespace}/{claim.name}"))
    return tuple(sorted(attached))


def attached_to(attachments: Iterable[VolumeAttachment], storage: Storage) -> frozenset[tuple[str, str]]:
    """The volumes, with their drivers, that attachments hold on a node, whether or not a pod still uses them."""
    volumes = (storage.volumes.get(attachment.spec.source.persistent_volume_name) for attachment in attachments)
    return frozenset(
        (volume.spec.csi.driver, volume.spec.csi.volume_handle or volume.name)
        for volume in volumes
        if volume is not None and volume.spec.csi is not None
    )


def required_config_maps(pod: Pod) -> Iterator[str]:
    """Config maps a pod cannot start without, but for those that the binder will make for it."""
    made_later = pod.metadata.annotations.get(labels.SHARED_GPU_CONFIGMAP)
    for name in _referenced_config_maps(pod):
        if not (made_later and name.startswith(made_later)):
            yield name


def _referenced_config_maps(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.config_map is not None and not volume.config_map.optional:
            yield volume.config_map.name
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for variable in container.env:
            reference = variable.value_from.config_map_key_ref if variable.value_from is not None else None
            if reference is not None and not reference.optional:
                yield reference.name
        for source in container.env_from:
            if source.config_map_ref is not None and not source.config_map_ref.optional:
                yield source.config_map_ref.name


def _reach_of_claim(claim: PersistentVolumeClaim, storage: Storage) -> Reach:
    if claim.spec.volume_name:
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return Reach(impossible=Missing(Lack.VOLUME, claim.spec.volume_name))
        return _reach_of_volume(volume, storage)
    storage_class = storage.classes.get(claim.spec.storage_class_name or "")
    if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
        return Reach(impossible=Missing(Lack.VOLUME_CLAIM_UNBOUND))
    fitting = [volume for volume in storage.volumes if serves(volume, claim)]
    nodes = _union([_nodes_of(volume, storage) for volume in fitting])
    if storage_class.provisioner == _NO_PROVISIONER:
        return Reach(nodes)
    selector = _allowed_topologies(storage_class)
    if selector is None:
        return Reach()
    return Reach(nodes | selected_nodes(selector, storage.nodes))


def _reach_of_volume(volume: PersistentVolume, storage: Storage) -> Reach:
    affinity = volume.spec.node_affinity
    return Reach(None if affinity is None or affinity.required is None else _nodes_of(volume, storage))


def _nodes_of(volume: PersistentVolume, storage: Storage) -> frozenset[str]:
    affinity = volume.spec.node_affinity
    return selected_nodes(affinity.required if affinity is not None else None, storage.nodes)


def selected_nodes(selector: NodeSelector | None, nodes: Iterable[Node]) -> frozenset[str]:
    """The names of the nodes that a selector matches; without a selector all of them."""
    return frozenset(node.name for node in nodes if selects_node(selector, node.name, node.metadata.labels))


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _allowed_topologies(storage_class: StorageClass) -> NodeSelector | None:
    terms = tuple(
        NodeSelectorTerm(
            match_expressions=tuple(
                Requirement(key=label.key, operator="In", values=label.values) for label in term.match_label_expressions
            )
        )
        for term in storage_class.allowed_topologies
    )
    return NodeSelector(node_selector_terms=terms) if terms else None

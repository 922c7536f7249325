"""Which workload a pod belongs to: the object that a user created, found by owner references and labels."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.answers.cluster import Cluster, Owner
from spinney.answers.model import WorkloadRef
from spinney.api import labels
from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Object, ObjectMeta, OwnerReference
from spinney.api.workloads import creates_workloads

# Pods that our own services make: they stand for others.
_OWN_NAMESPACES = (labels.RESERVATION_NAMESPACE, labels.SCALE_ADJUST_NAMESPACE)


def is_stand_in(pod: Pod) -> bool:
    """Whether a pod only holds something for others: a shared GPU, or a place for the autoscaler."""
    return pod.namespace in _OWN_NAMESPACES


def owner_of(cluster: Cluster, pod: Pod) -> Owner:
    """The workload of a pod; the pod itself if it has no owner."""
    set_name = pod.metadata.labels.get(labels.PART_OF, "")
    if set_name and pod.metadata.labels.get(labels.MANAGED_BY) == labels.GROVE_OPERATOR:
        return _set_owner(cluster, pod.namespace, set_name)
    above = _above(pod.metadata)
    if above is None or creates_workloads(above.kind):
        return Owner(ref_of(pod), pod.uid, pod)
    # Found once for all pods of one owner.
    key = (pod.namespace, above.uid)
    if key not in cluster.owner_above:
        cluster.owner_above[key] = _top(cluster, pod)
    return cluster.owner_above[key]


def _top(cluster: Cluster, pod: Pod) -> Owner:
    top = Owner(ref_of(pod), pod.uid, pod)
    for owner in chain(cluster, pod):
        if creates_workloads(owner.ref.kind):
            break
        top = owner
    return top


def chain(cluster: Cluster, item: Object) -> Iterator[Owner]:
    """The owners of an object from the nearest up; ends where one may not be read."""
    seen: set[str] = set()
    reference = _above(item.metadata)
    while reference is not None and reference.uid not in seen:
        seen.add(reference.uid)
        above = cluster.by_uid.get(reference.uid)
        if above is not None and above.namespace not in ("", item.namespace):
            # Whoever creates an object may name any UID: nothing is owned from another namespace.
            above = None
        ref = WorkloadRef(
            kind=reference.kind,
            api_version=reference.api_version,
            namespace=item.namespace,
            name=reference.name,
        )
        # A kind may be served in several versions: the object that was read says which one counts.
        yield Owner(ref_of(above) if above is not None else ref, reference.uid, above)
        reference = _above(above.metadata) if above is not None else None


def is_top(item: Object) -> bool:
    """Whether an object is a workload of its own, rather than a part of one."""
    above = _above(item.metadata)
    return above is None or creates_workloads(above.kind)


def ref_of(item: Object) -> WorkloadRef:
    """The reference to an object."""
    resource = item.resource
    return WorkloadRef(kind=resource.kind, api_version=resource.api_version, namespace=item.namespace, name=item.name)


def _set_owner(cluster: Cluster, namespace: str, name: str) -> Owner:
    pcs = cluster.set_of.get((namespace, name))
    resource = PodCliqueSet.resource
    ref = WorkloadRef(kind=resource.kind, api_version=resource.api_version, namespace=namespace, name=name)
    return Owner(ref, pcs.uid if pcs is not None else f"{namespace}/{name}", pcs)


def _above(metadata: ObjectMeta) -> OwnerReference | None:
    # The pods that a kubelet runs by itself name their node.
    references = [owner for owner in metadata.owner_references if owner.kind != "Node"]
    return next((owner for owner in references if owner.controller), references[0] if references else None)

"""Pods as they are created: position in the gang, host name, variables, claims and scheduling gate."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.grove import PodClique
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.api.podgang import PodGang
from spinney.backends.registry import Choice
from spinney.backends.served import Served
from spinney.grove.model import environment, names, resource_sharing, startup_order
from spinney.grove.model.layout import Clique, Layout


@dataclass(frozen=True)
class Place:
    """One pod's position: its clique and gang as they are stored, its name and its ordinal."""

    clique: Clique
    stored: PodClique
    gang: PodGang
    name: str
    index: int


def build(layout: Layout, place: Place, choice: Choice, served: Served, init_image: str) -> Json:
    """One pod of a clique, ready to be created; the backend prepares it last, for its scheduler."""
    backend = choice.backend
    pcs, clique, stored, index = layout.pcs, place.clique, place.stored, place.index
    spec = environment.with_variables(stored.spec.pod_spec, environment.pod_variables(layout, clique))
    claims = resource_sharing.pod_claims(layout, clique, index)
    if claims:
        added = [{"name": names.short(claim), "resourceClaimName": claim} for claim in claims]
        spec = resource_sharing.with_claims(spec, added)
    spec = {
        **spec,
        "hostname": names.hostname(clique.name, index),
        "subdomain": names.replica(pcs.name, layout.index),
        "schedulerName": choice.scheduler_name,
        "schedulingGates": [*(spec.get("schedulingGates") or ()), {"name": backend.gate}],
    }
    priority = pcs.spec.template.priority_class_name
    if priority and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority
    parents = startup_order.parents(layout, clique)
    if parents:
        spec = _with_start_order(spec, pcs.name, parents, init_image)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": place.name,
            "generateName": f"{clique.name}-",
            "namespace": pcs.namespace,
            "labels": {**_labels(layout, place), labels.SCHEDULER_BACKEND: backend.name},
            "annotations": {k: v for k, v in stored.metadata.annotations.items() if k != labels.TOPOLOGY_NAME},
            "ownerReferences": [controller_reference(stored)],
        },
        "spec": spec,
    }
    return backend.prepare(pod, place.gang, served)


def _labels(layout: Layout, place: Place) -> dict[str, str]:
    return {
        **place.stored.metadata.labels,
        labels.MANAGED_BY: labels.GROVE_OPERATOR,
        labels.PART_OF: layout.pcs.name,
        labels.NAME: place.name,
        labels.PODCLIQUE: place.clique.name,
        labels.PODGANG: place.clique.gang,
        labels.SET_REPLICA_INDEX: str(layout.index),
        labels.POD_INDEX: str(place.index),
    }


def _with_start_order(spec: Json, pcs: str, parents: tuple[Clique, ...], image: str) -> Json:
    """The init container that ends when enough pods of every parent are ready."""
    container = {
        "name": labels.INIT_CONTAINER,
        "image": image,
        "command": ["spinney", "initc"],
        "args": [f"--podcliques={parent.name}:{parent.min_available}" for parent in parents],
        "volumeMounts": [
            {"name": labels.TOKEN_VOLUME, "mountPath": labels.TOKEN_MOUNT, "readOnly": True},
            {"name": labels.POD_INFO_VOLUME, "mountPath": labels.POD_INFO_MOUNT, "readOnly": True},
        ],
    }
    info = [("namespace", "metadata.namespace"), ("podgangname", f"metadata.labels['{labels.PODGANG}']")]
    volumes = [
        {"name": labels.TOKEN_VOLUME, "secret": {"secretName": names.token_secret(pcs), "defaultMode": 0o444}},
        {
            "name": labels.POD_INFO_VOLUME,
            "downwardAPI": {"items": [{"path": path, "fieldRef": {"fieldPath": field}} for path, field in info]},
        },
    ]
    return {
        **spec,
        "initContainers": [*(spec.get("initContainers") or ()), container],
        "volumes": [*(spec.get("volumes") or ()), *volumes],
    }

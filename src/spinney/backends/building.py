"""What backends build pods and objects with: names that fit, metadata of a gang's objects, changed pods, rights."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from spinney.api.meta import Json, Resource
from spinney.api.owners import controller_reference
from spinney.api.podgang import PodGang
from spinney.backends.interface import Setting
from spinney.kube.runtime import Rule

LABEL_LIMIT = 63


def fitted_name(name: str, limit: int = LABEL_LIMIT) -> str:
    """The name itself, or a shortened one with a hash: stable, and different for different names."""
    flat = name.replace(".", "-")
    if flat == name and len(name) <= limit:
        return name
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{flat[: limit - 9].rstrip('-')}-{digest}"


def owned_metadata(gang: PodGang, name: str, annotations: Mapping[str, str | None] | None = None) -> Json:
    """Metadata of an object that belongs to a gang and is deleted with it."""
    metadata: Json = {
        "name": name,
        "namespace": gang.namespace,
        "labels": dict(gang.metadata.labels),
        "ownerReferences": [controller_reference(gang)],
    }
    return {**metadata, "annotations": dict(annotations)} if annotations else metadata


def edited_pod(
    pod: Json,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, object] | None = None,
) -> Json:
    """A copy of the pod with more labels, annotations and fields of its spec."""
    metadata = dict(pod["metadata"])
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], **(spec or {})}}


def may_write(*resources: Resource) -> tuple[Rule, ...]:
    """The rights to keep objects of these resources as a gang wants them."""
    return _rules(resources, ("get", "list", "watch", "create", "patch", "delete"))


def may_read(*resources: Resource) -> tuple[Rule, ...]:
    """The rights to watch objects of these resources."""
    return _rules(resources, ("get", "list", "watch"))


def may_read_settings(*settings: Setting) -> tuple[Rule, ...]:
    """The rights to read these objects of a scheduler's configuration, in any namespace, and no others."""
    # A list that selects one name is authorized like a get.
    return tuple(
        Rule((setting.resource.group,), (setting.resource.plural,), ("get", "list"), names=(setting.name,))
        for setting in settings
    )


def _rules(resources: tuple[Resource, ...], verbs: tuple[str, ...]) -> tuple[Rule, ...]:
    plurals: dict[str, dict[str, None]] = {}
    for resource in resources:
        plurals.setdefault(resource.group, {})[resource.plural] = None
    return tuple(Rule((group,), tuple(names), verbs) for group, names in plurals.items())

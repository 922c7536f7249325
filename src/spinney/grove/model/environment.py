"""Environment variables that tell a pod its position and its peers."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.meta import Json
from spinney.grove.model import names
from spinney.grove.model.layout import Clique, Layout


def pod_variables(layout: Layout, clique: Clique) -> list[Json]:
    """The variables of every container of every pod."""
    pcs = layout.pcs
    return [
        {"name": labels.ENV_SET_NAME, "value": pcs.name},
        {"name": labels.ENV_SET_INDEX, "value": str(layout.index)},
        {"name": labels.ENV_CLIQUE_NAME, "value": clique.name},
        {"name": labels.ENV_HEADLESS_SERVICE, "value": names.headless_address(pcs.name, layout.index, pcs.namespace)},
        _from_label(labels.ENV_POD_INDEX, labels.POD_INDEX),
    ]


def group_variables(layout: Layout, clique: Clique) -> list[Json]:
    """The additional variables of a scaling group's members; none for standalone cliques."""
    group = next((group for group in layout.groups if group.name == clique.group), None)
    if group is None:
        return []
    by_name = {template.name: template for template in layout.pcs.spec.template.cliques}
    pods = sum(by_name[name].spec.replicas for name in group.config.clique_names if name in by_name)
    return [
        _from_label(labels.ENV_SCALING_GROUP_NAME, labels.SCALING_GROUP),
        _from_label(labels.ENV_SCALING_GROUP_INDEX, labels.SCALING_GROUP_REPLICA_INDEX),
        {"name": labels.ENV_SCALING_GROUP_PODS, "value": str(pods)},
    ]


def with_variables(pod_spec: Json, variables: list[Json]) -> Json:
    """The pod spec with these variables ahead of the user's in every container, in place of those of the same name."""
    if not variables:
        return pod_spec
    ours = {variable["name"] for variable in variables}
    changed = dict(pod_spec)
    for kind in ("initContainers", "containers"):
        if pod_spec.get(kind):
            changed[kind] = [
                {**container, "env": variables + [v for v in container.get("env") or () if v.get("name") not in ours]}
                for container in pod_spec[kind]
            ]
    return changed


def _from_label(name: str, label: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}

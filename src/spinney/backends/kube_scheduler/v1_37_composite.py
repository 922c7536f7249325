"""Kubernetes 1.37 with CompositePodGroup: a tree in which every role keeps its own minimum and topology.

One gated pod holds the whole tree, so no pod of it is held back as surplus.
"""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.meta import Json, Resource
from spinney.api.podgang import PodGang, PodGroup, TopologyConstraint
from spinney.api.scheduling import CompositePodGroup
from spinney.backends.building import fitted_name, owned_metadata
from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.kube_scheduler.v1_35 import GROUP, policy
from spinney.backends.kube_scheduler.v1_37 import GATES, Flat, gated, group_spec, pod_group, template_of, workload
from spinney.backends.required_features import packed
from spinney.kube.desired import Drift, Wanted

# Each list of templates in a Workload holds at most this many; the groups of a longer list share one template.
TEMPLATE_LIMIT = 8


class Tree:
    """`scheduling.k8s.io/v1beta1` with the composite groups of `v1alpha3`: only preferred topology is lost."""

    resources: tuple[Resource, ...] = (*Flat.resources, CompositePodGroup.resource)
    capabilities = Capabilities(
        CompositePodGroup.resource.api_version,
        Flat.capabilities.features | {Feature.CONFIG_REQUIRED, Feature.GROUP_REQUIRED},
        status="PodGroup condition PodGroupInitiallyScheduled, pods",
        remarks=(f"{GATES}, CompositePodGroup and TopologyAwareWorkloadScheduling",),
    )

    def objects(self, gang: PodGang) -> tuple[Wanted, ...]:
        """The Workload, then groups from the root down."""
        branches = _branches(gang)
        root = _root(gang)
        root_spec = _composite_spec(gang, root, root.counted + sum(branch.counted > 0 for branch in branches))
        templates = list({branch.template: _template(gang, branch) for branch in branches}.values())
        template = {"name": GROUP, **root_spec, **_role_templates(gang, root)}
        if templates:
            template["compositePodGroupTemplates"] = templates
        wanted = [
            workload(gang, {"compositePodGroupTemplates": [template]}),
            _composite(gang, gang.name, {**template_of(gang, GROUP), **root_spec}),
            *_members(gang, root),
        ]
        for branch in branches:
            link = {"parentCompositePodGroupName": gang.name, **template_of(gang, branch.template)}
            wanted.append(_composite(gang, branch.name, {**link, **_composite_spec(gang, branch, branch.counted)}))
            wanted += _members(gang, branch)
        return tuple(wanted)

    def link(self, pod: Json, gang: PodGang) -> Json:
        """Every pod is a member of its role's group."""
        return {"schedulingGroup": {"podGroupName": pod["metadata"]["labels"][labels.PODCLIQUE]}}


SHAPE = Tree()


@dataclass(frozen=True)
class _Branch:
    """A composite group and the roles right below it."""

    name: str
    template: str
    constraint: TopologyConstraint | None
    roles: tuple[PodGroup, ...]
    # The one template that all its roles follow, where they share one.
    shared: str

    @property
    def counted(self) -> int:
        """How many roles must be ready; one without a minimum never is before it has a placed pod."""
        return sum(role.min_replicas > 0 for role in self.roles)


def _root(gang: PodGang) -> _Branch:
    inside = {name for config in gang.spec.topology_constraint_group_configs for name in config.pod_group_names}
    roles = tuple(group for group in gang.spec.podgroups if group.name not in inside)
    shared = "pods" if len(roles) > TEMPLATE_LIMIT else ""
    return _Branch(gang.name, GROUP, gang.spec.topology_constraint, roles, shared)


def _branches(gang: PodGang) -> list[_Branch]:
    configs = gang.spec.topology_constraint_group_configs
    crowded = len(configs) > TEMPLATE_LIMIT
    branches = []
    for config in configs:
        roles = tuple(group for group in gang.spec.podgroups if group.name in config.pod_group_names)
        template = "roles" if crowded else fitted_name(config.name)
        shared = fitted_name(f"{template}-pods") if crowded or len(roles) > TEMPLATE_LIMIT else ""
        # The config's own name could be that of another gang's root.
        name = f"{gang.name}.{config.name}"
        branches.append(_Branch(name, template, config.topology_constraint, roles, shared))
    return branches


def _composite_spec(gang: PodGang, branch: _Branch, counted: int) -> Json:
    scheduling_policy: Json = {"gang": {"minGroupCount": counted}} if counted else {"basic": {}}
    return group_spec(gang, scheduling_policy, packed(branch.constraint)[0])


def _template(gang: PodGang, branch: _Branch) -> Json:
    spec = _composite_spec(gang, branch, branch.counted)
    return {"name": branch.template, **spec, **_role_templates(gang, branch)}


def _role_templates(gang: PodGang, branch: _Branch) -> Json:
    templates = {_template_name(branch, role): _role_spec(gang, role) for role in branch.roles}
    listed = [{"name": name, **spec} for name, spec in templates.items()]
    return {"podGroupTemplates": listed} if listed else {}


def _template_name(branch: _Branch, role: PodGroup) -> str:
    return branch.shared or fitted_name(role.name)


def _role_spec(gang: PodGang, role: PodGroup) -> Json:
    return group_spec(gang, policy(role.min_replicas), packed(role.topology_constraint)[0])


def _members(gang: PodGang, branch: _Branch) -> list[Wanted]:
    return [
        pod_group(
            gang,
            role.name,
            {
                "parentCompositePodGroupName": branch.name,
                **template_of(gang, _template_name(branch, role)),
                **_role_spec(gang, role),
            },
        )
        for role in branch.roles
    ]


def _composite(gang: PodGang, name: str, spec: Json) -> Wanted:
    body = {"metadata": owned_metadata(gang, name), "spec": spec}
    return Wanted(CompositePodGroup.resource, body, Drift.REPORT, gated(gang, spec))

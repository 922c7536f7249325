"""RBAC: roles and their bindings."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from spinney.api.meta import Object, Resource, Struct
from spinney.api.selector import LabelSelector


class PolicyRule(Struct, frozen=True):
    """Verbs on resources."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")


class RoleRef(Struct, frozen=True):
    """The role that a binding grants."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class Subject(Struct, frozen=True):
    """The user, group or service account of a binding."""

    kind: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class AggregationRule(Struct, frozen=True):
    """The roles that a cluster role aggregates."""

    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class Role(Object, frozen=True):
    """Rights in a namespace."""

    resource: ClassVar[Resource] = Resource("rbac.authorization.k8s.io/v1", "Role", "roles")

    rules: tuple[PolicyRule, ...] = ()


class RoleBinding(Object, frozen=True):
    """Grants rights in a namespace."""

    resource: ClassVar[Resource] = Resource("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")

    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = RoleRef()


class ClusterRole(Object, frozen=True):
    """Rights in the whole cluster."""

    resource: ClassVar[Resource] = Resource(
        "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False
    )

    rules: tuple[PolicyRule, ...] = ()
    aggregation_rule: AggregationRule | None = None


class ClusterRoleBinding(Object, frozen=True):
    """Grants rights in the whole cluster."""

    resource: ClassVar[Resource] = Resource(
        "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
    )

    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = RoleRef()

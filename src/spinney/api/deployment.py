"""Deployment settings that Config repeats for each service: image, resources, security, autoscaling."""

from __future__ import annotations

from typing import Annotated

import msgspec

from spinney.api.meta import Conditions, Json, Struct
from spinney.api.quantity import ResourceList
from spinney.api.schema import ATOMIC, REQUIRED, Column, Int32, Int64, enum, list_map

READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status', "string")


class Image(Struct, frozen=True):
    """A container image in parts."""

    repository: str = ""
    name: str = ""
    tag: str = ""
    pull_policy: str = ""


class ClientConfig(Struct, frozen=True):
    """Limits on a service's requests to the API server."""

    qps: int | None = None
    burst: int | None = None


class DisruptionBudget(Struct, frozen=True):
    """Whether a service gets a PodDisruptionBudget."""

    enabled: bool | None = None
    max_unavailable: Int32 | None = None


class ClaimUse(Struct, frozen=True):
    """A device claim that a container uses."""

    name: Annotated[str, REQUIRED] = ""
    request: str = ""


class ResourceNeeds(Struct, frozen=True):
    """The resources of a service's container."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: Annotated[tuple[ClaimUse, ...], list_map("name")] = ()


class ServiceConfig(Struct, frozen=True):
    """How one service is deployed."""

    enabled: bool | None = None
    image: Image | None = None
    resources: ResourceNeeds | None = None
    k8s_client_config: ClientConfig | None = msgspec.field(default=None, name="k8sClientConfig")
    affinity: Json | None = None
    pod_disruption_budget: DisruptionBudget | None = None


class ContainerPolicy(Struct, frozen=True):
    """Bounds of what a vertical autoscaler may set for a container."""

    container_name: str = ""
    mode: Annotated[str, enum("Auto", "Off")] = ""
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] = ()
    controlled_values: Annotated[str, enum("RequestsAndLimits", "RequestsOnly")] = ""


class VpaResourcePolicy(Struct, frozen=True):
    """Bounds of what a vertical autoscaler may set."""

    container_policies: tuple[ContainerPolicy, ...] = ()


class EvictionRequirement(Struct, frozen=True):
    """When a vertical autoscaler may evict."""

    resources: Annotated[tuple[str, ...], REQUIRED] = ()
    change_requirement: Annotated[str, enum("TargetHigherThanRequests", "TargetLowerThanRequests"), REQUIRED] = ""


class VpaUpdatePolicy(Struct, frozen=True):
    """How a vertical autoscaler applies its recommendation."""

    update_mode: Annotated[str, enum("Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto")] = ""
    min_replicas: Int32 | None = None
    eviction_requirements: tuple[EvictionRequirement, ...] = ()


class Vpa(Struct, frozen=True):
    """Whether a service gets a vertical autoscaler."""

    enabled: bool | None = None
    update_policy: VpaUpdatePolicy | None = None
    resource_policy: VpaResourcePolicy | None = None


class Profile(Struct, frozen=True):
    """An AppArmor or seccomp profile."""

    type: Annotated[str, REQUIRED] = ""
    localhost_profile: str = ""


class Capabilities(Struct, frozen=True):
    """Linux capabilities to add and drop."""

    add: Annotated[tuple[str, ...], ATOMIC] = ()
    drop: Annotated[tuple[str, ...], ATOMIC] = ()


class SeLinuxOptions(Struct, frozen=True):
    """The SELinux context."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsOptions(Struct, frozen=True):
    """The Windows part of a security context."""

    gmsa_credential_spec: str = ""
    gmsa_credential_spec_name: str = ""
    host_process: bool | None = None
    run_as_user_name: str = ""


class SecurityContext(Struct, frozen=True):
    """The security context of a container."""

    allow_privilege_escalation: bool | None = None
    app_armor_profile: Profile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str = ""
    read_only_root_filesystem: bool | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: Profile | None = None
    windows_options: WindowsOptions | None = None


class Sysctl(Struct, frozen=True):
    """A kernel parameter of a pod."""

    name: Annotated[str, REQUIRED] = ""
    value: Annotated[str, REQUIRED] = ""


class PodSecurityContext(Struct, frozen=True):
    """The security context of a pod."""

    app_armor_profile: Profile | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: str = ""
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    run_as_user: Int64 | None = None
    se_linux_change_policy: str = ""
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: Profile | None = None
    supplemental_groups: Annotated[tuple[Int64, ...], ATOMIC] = ()
    supplemental_groups_policy: str = ""
    sysctls: Annotated[tuple[Sysctl, ...], ATOMIC] = ()
    windows_options: WindowsOptions | None = None


class ServiceToleration(Struct, frozen=True):
    """A taint that the services tolerate."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class Plugin(Struct, frozen=True):
    """A plugin: enabled or not, its priority, its arguments."""

    enabled: bool | None = None
    priority: int | None = None
    arguments: dict[str, str] = {}


class DeploymentStatus(Struct, frozen=True):
    """The conditions of an installation."""

    conditions: Conditions = ()

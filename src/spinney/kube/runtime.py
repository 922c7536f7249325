"""Components and their runtime: client, shared caches, clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.api.meta import Json, Resource
from spinney.kube.caches.cache import Caches
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock
from spinney.kube.process_settings import ProcessOptions


@dataclass(frozen=True)
class Runtime:
    """What one component gets to run with. All components of a process share the caches."""

    client: Client
    caches: Caches
    clock: Clock
    # Called once the component's caches have synced and it acts; `spinney up` waits for it.
    ready: Callable[[], None] = lambda: None
    # Where the component keeps objects of its own: leases, certificates.
    namespace: str = "default"
    # The component's own, as its `run` gets it: for reviews, which are made before it runs.
    settings: Any = None


@dataclass(frozen=True)
class Rule:
    """One RBAC rule, declared beside the code that needs it."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Webhook:
    """One admission webhook: the objects it reviews, and its reviewer (AdmissionReview request → response)."""

    name: str
    path: str
    mutating: bool
    review: Callable[[Runtime], Callable[[Json], Awaitable[Json]]]
    rules: tuple[Json, ...]
    failure_policy: str = "Fail"
    object_selector: Json = field(default_factory=dict)
    namespace_selector: Json = field(default_factory=dict)
    # CEL expressions by name; the API server asks only about objects for which all hold.
    match_conditions: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: int = 10


def webhook_rule(resources: Sequence[Resource], *operations: str) -> Json:
    """The rule of a webhook for operations on kinds of one API version."""
    return {
        "apiGroups": [resources[0].group],
        "apiVersions": [resources[0].version],
        "resources": [resource.plural for resource in resources],
        "operations": list(operations),
    }


@dataclass(frozen=True)
class Component:
    """Something that `spinney run NAME` runs; registered under the entry point group `spinney.components`."""

    name: str
    summary: str
    run: Callable[[Runtime, Any], Awaitable[None]]
    rules: tuple[Rule, ...] = ()
    # Rules that hold in one namespace only (leases, config maps of our own).
    namespace_rules: tuple[Rule, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    # The wire type of a configuration file; `run` gets one of these, or None where the component has none.
    settings: type[Any] | None = None
    # The Lease that one of several replicas holds, by its configuration: `name`, or `namespace/name` where it is not
    # kept beside the component's other objects. Without this word there is one per component.
    lease: Callable[[Any], str] | None = None
    # What its configuration says about the process it runs in.
    process: Callable[[Any], ProcessOptions] | None = None
    # The CustomResourceDefinitions of kinds that it writes and that somebody else may install.
    crds: Callable[[], tuple[Json, ...]] = tuple
    # The product that it is part of: its account is named `<part_of>-<name>`.
    part_of: str = "spinney"
    # The component as its configuration makes it, where that changes its webhooks or rights. A ValueError names what
    # is wrong with the configuration.
    configured: Callable[[Any], Component] | None = None

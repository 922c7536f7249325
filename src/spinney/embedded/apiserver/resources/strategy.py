"""What is special about each built-in kind when it is written: defaults, fields the server sets, checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources import defaults
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.validation import Check, CheckUpdate, checks_for


def _nothing(document: Json) -> None:
    """A kind without defaults."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """The rules of one kind."""

    counts_generations: bool
    # A PUT without a resource version overwrites; one to a name that is free creates.
    overwrites: bool
    creates_on_update: bool
    answers_with_deleted: bool
    default: Callable[[Json], None]
    # On creation only, at every write, and at every update with the old object beside it.
    check_create: Check
    check: Check
    check_update: CheckUpdate


_GENERATIONS = frozenset(
    (
        "/pods",
        "/podtemplates",
        "/replicationcontrollers",
        "apps/daemonsets",
        "apps/deployments",
        "apps/replicasets",
        "apps/statefulsets",
        "batch/jobs",
        "batch/cronjobs",
        "networking.k8s.io/ingresses",
        "networking.k8s.io/ingressclasses",
        "networking.k8s.io/networkpolicies",
        "policy/poddisruptionbudgets",
        "discovery.k8s.io/endpointslices",
        "scheduling.k8s.io/priorityclasses",
        "resource.k8s.io/resourceslices",
        "resource.k8s.io/deviceclasses",
        "flowcontrol.apiserver.k8s.io/flowschemas",
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "apiextensions.k8s.io/customresourcedefinitions",
    )
)
_NO_OVERWRITE = frozenset(
    (
        "node.k8s.io/runtimeclasses",
        "policy/poddisruptionbudgets",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/csistoragecapacities",
        "storage.k8s.io/volumeattachments",
        "storage.k8s.io/csinodes",
        "coordination.k8s.io/leases",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "apiextensions.k8s.io/customresourcedefinitions",
    )
)
_CREATES_ON_UPDATE = frozenset(
    (
        "node.k8s.io/runtimeclasses",
        "rbac.authorization.k8s.io/rolebindings",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "rbac.authorization.k8s.io/roles",
        "rbac.authorization.k8s.io/clusterroles",
        "coordination.k8s.io/leases",
        "/limitranges",
        "/events",
        "/services",
        "/endpoints",
    )
)
_ANSWERS_WITH_DELETED = frozenset(
    (
        "resource.k8s.io/resourceclaimtemplates",
        "resource.k8s.io/resourceslices",
        "resource.k8s.io/resourceclaims",
        "resource.k8s.io/deviceclasses",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/storageclasses",
        "storage.k8s.io/volumeattachments",
        "storage.k8s.io/csinodes",
        "storage.k8s.io/volumeattributesclasses",
        "/resourcequotas",
        "/persistentvolumes",
        "/serviceaccounts",
        "/persistentvolumeclaims",
        "/namespaces",
        "/pods",
        "/services",
        "/podtemplates",
    )
)
_made: dict[tuple[str, bool], Strategy] = {}


def strategy(kind: Kind) -> Strategy:
    """The rules of a kind."""
    table, is_custom = kind.table, kind.custom is not None
    found = _made.get((table, is_custom))
    if found is not None:
        return found
    check_create, check, check_update = checks_for(table)
    made = Strategy(
        counts_generations=is_custom or table in _GENERATIONS,
        overwrites=not is_custom and table not in _NO_OVERWRITE,
        creates_on_update=table in _CREATES_ON_UPDATE,
        answers_with_deleted=table in _ANSWERS_WITH_DELETED,
        default=defaults.DEFAULTS.get(table, _nothing),
        check_create=check_create,
        check=check,
        check_update=check_update,
    )
    _made[table, is_custom] = made
    return made


__all__ = ["FieldError", "Strategy", "strategy"]

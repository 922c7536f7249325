"""RoleBindings and ClusterRoleBindings."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.access.bindings import GROUP
from spinney.embedded.apiserver.errors import FieldError, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table


def _default(document: Json) -> None:
    reference = document.setdefault("roleRef", {})
    reference.setdefault("apiGroup", GROUP)
    for subject in document.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", GROUP)


def _check(document: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    reference = document.get("roleRef") or {}
    if reference.get("apiGroup") != GROUP:
        errors.append(unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (GROUP,)))
    allowed = ("ClusterRole",) if document.get("kind") == "ClusterRoleBinding" else ("Role", "ClusterRole")
    errors += one_of("roleRef.kind", reference.get("kind", ""), allowed)
    if not reference.get("name"):
        errors.append(required("roleRef.name"))
    for at, subject in enumerate(document.get("subjects") or ()):
        where = f"subjects[{at}]"
        if not subject.get("name"):
            errors.append(required(f"{where}.name"))
        if subject.get("kind") == "ServiceAccount":
            name = subject.get("name", "")
            if name:
                errors += [invalid(f"{where}.name", name, problem) for problem in naming.subdomain_problems(name)]
            if subject.get("apiGroup"):
                errors.append(unsupported(f"{where}.apiGroup", subject["apiGroup"], ("",)))
            if not subject.get("namespace") and document.get("kind") == "ClusterRoleBinding":
                errors.append(required(f"{where}.namespace"))
        elif subject.get("apiGroup", GROUP) != GROUP and subject.get("kind") in ("User", "Group"):
            errors.append(unsupported(f"{where}.apiGroup", subject["apiGroup"], (GROUP,)))
        errors += one_of(f"{where}.kind", subject.get("kind"), ("ServiceAccount", "User", "Group"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    if new.get("roleRef") == old.get("roleRef"):
        return []
    return [invalid("roleRef", new.get("roleRef"), "cannot change roleRef")]


def _cells(document: Json, now: datetime) -> list[Any]:
    role, subjects = document.get("roleRef") or {}, document.get("subjects") or ()
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        named.setdefault(subject.get("kind", ""), []).append(name)
    return [
        cells.name(document),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        cells.age(document, now),
        *(", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


ROLE_BINDINGS = Resource(
    group=GROUP,
    kind="RoleBinding",
    plural="rolebindings",
    default=_default,
    allow_create_on_update=True,
    checks=Checks(name=naming.path_problems, object=_check, update=_check_update),
    table=Table("Name,Role,Age,+Users,+Groups,+ServiceAccounts", _cells),
)
CLUSTER_ROLE_BINDINGS = replace(
    ROLE_BINDINGS, kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False
)

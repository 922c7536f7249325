"""Bindings of roles by subject, updated write by write: with each PodCliqueSet come a role and its binding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from spinney.api.meta import Json
from spinney.embedded.apiserver.store.store import Event, Item, Store, load
from spinney.kube.client.transport import User

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"{GROUP}/roles", f"{GROUP}/clusterroles"
BINDINGS, CLUSTER_BINDINGS = f"{GROUP}/rolebindings", f"{GROUP}/clusterrolebindings"
TABLES = frozenset((ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS))

# The rules that allow everything.
ALL_RIGHTS: list[Json] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
# Table and key of a role or binding.
_Place = tuple[str, str]
# Namespace, empty for the whole cluster; "User" or "Group"; name.
_Subject = tuple[str, str, str]


@dataclass(frozen=True)
class Grant:
    """A binding."""

    namespace: str
    subjects: tuple[Json, ...]
    role: _Place | None
    description: str


class Bindings:
    """All bindings of a store, and the rules of their roles."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._grants: dict[_Place, Grant] = {}
        self._of_subject: defaultdict[_Subject, set[_Place]] = defaultdict(set)
        self._rules: dict[_Place, tuple[Json, ...]] = {}

    def follow(self, table: str, event: Event) -> None:
        """Note that a role or binding has changed."""
        place = table, event.new.key
        if table in (ROLES, CLUSTER_ROLES):
            self._rules.pop(place, None)
            return
        previous = self._grants.pop(place, None)
        for subject in _subjects(previous) if previous is not None else ():
            places = self._of_subject[subject]
            places.discard(place)
            if not places:
                del self._of_subject[subject]
        if not event.deleted:
            grant = self._grants[place] = _grant(event.new)
            for subject in _subjects(grant):
                self._of_subject[subject].add(place)

    def grants_of(self, user: User, namespace: str) -> Iterator[tuple[Grant, str]]:
        """The bindings to a user that count in a namespace, those for the whole cluster first, with their subjects."""
        for scope in dict.fromkeys(("", namespace)):
            subjects = [(scope, "User", user.name), *((scope, "Group", group) for group in user.groups)]
            places = {place for subject in subjects for place in self._of_subject.get(subject, ())}
            for place in sorted(places):
                grant = self._grants[place]
                names = (_subject_name(user, subject, grant.namespace) for subject in grant.subjects)
                yield grant, next(filter(None, names))

    def rules_of(self, grant: Grant) -> tuple[Json, ...]:
        """The rules of the role that is bound; none where it does not exist."""
        if grant.role is None:
            return ()
        rules = self._rules.get(grant.role)
        if rules is None:
            role = self._store.get(*grant.role)
            rules = self._rules[grant.role] = tuple(load(role).get("rules") or ()) if role is not None else ()
        return rules


def _grant(item: Item) -> Grant:
    binding = load(item)
    role = binding.get("roleRef") or {}
    kind, role_name, namespace = role.get("kind"), role.get("name", ""), item.namespace
    place = {"Role": (ROLES, f"{namespace}/{role_name}"), "ClusterRole": (CLUSTER_ROLES, role_name)}.get(str(kind))
    name = f"{item.name}/{namespace}" if namespace else item.name
    description = f'{"RoleBinding" if namespace else "ClusterRoleBinding"} "{name}" of {kind} "{role_name}"'
    return Grant(namespace, tuple(binding.get("subjects") or ()), place, description)


def _subjects(grant: Grant) -> Iterator[_Subject]:
    for subject in grant.subjects:
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind in ("User", "Group"):
            yield grant.namespace, kind, name
        elif kind == "ServiceAccount":
            yield grant.namespace, "User", _account(subject, grant.namespace)


def _account(subject: Json, namespace: str) -> str:
    return f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject.get('name', '')}"


def _subject_name(user: User, subject: Json, namespace: str) -> str:
    """The name of a binding's subject for messages, if it is this user; empty if it is another one."""
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return f'User "{name}"' if user.name == name else ""
        case "Group":
            return f'Group "{name}"' if name in user.groups else ""
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return f'ServiceAccount "{name}/{home}"' if user.name == _account(subject, namespace) else ""
    return ""

"""RBAC: who may do what, by the roles and bindings in the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, NamedTuple

from spinney.api.meta import Json
from spinney.embedded.apiserver.access.bindings import ALL_RIGHTS, TABLES, Bindings
from spinney.embedded.apiserver.errors import Refusal
from spinney.embedded.apiserver.store.store import Event, Store
from spinney.kube.client.transport import User

MASTERS = "system:masters"
# Cached permissions and questions together, and the characters of a cached question: reviews let anybody ask.
_MOST_REMEMBERED = 16_384
_LONGEST_QUESTION = 1024


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants to do: a verb on a resource, or on another path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource, with its subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def attributes_of(members: Mapping[str, Any]) -> Attributes:
    """The attributes that a review or a rule gives by name; what else it gives is ignored."""
    names = (field.name for field in fields(Attributes))
    return Attributes(**{"verb": "", **{name: members[name] for name in names if name in members}})


def _covers(rule: Json, wanted: Attributes) -> bool:
    """Whether a rule allows something, for the names that it lists."""
    if not lists(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_path_matches(pattern, wanted.path) for pattern in rule.get("nonResourceURLs") or ())
    if not lists(rule.get("apiGroups"), wanted.group):
        return False
    resources = rule.get("resources") or ()
    return (
        "*" in resources
        or wanted.full_resource in resources
        or bool(wanted.subresource and f"*/{wanted.subresource}" in resources)
    )


def lists(values: Sequence[str] | None, value: str) -> bool:
    """Whether a list of a rule names a value, or all values by a star."""
    return values is not None and ("*" in values or value in values)


def _path_matches(pattern: str, path: str) -> bool:
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern[:-1])


class _Permission(NamedTuple):
    """A rule that allows something: for which names (any, where there are none), and the reason."""

    names: Sequence[str]
    reason: str


class Authorizer:
    """Answers from the bindings of a user."""

    tables: frozenset[str] | None = TABLES

    def __init__(self, store: Store) -> None:
        self._bindings = Bindings(store)
        # What was asked before, whatever the object's name: components ask for the same few things all the time.
        self._permissions: dict[tuple[object, ...], tuple[_Permission, ...]] = {}
        self._remembered = 0

    def follow(self, table: str, event: Event) -> None:
        """Note that a role or binding has changed."""
        self._bindings.follow(table, event)
        self._forget()

    def _forget(self) -> None:
        self._permissions.clear()
        self._remembered = 0

    def allows(self, user: User, wanted: Attributes) -> str | None:
        """The reason why something is allowed, or None."""
        if MASTERS in user.groups:
            return ""
        for permission in self._permissions_for(user, wanted):
            if not permission.names or wanted.name in permission.names:
                return permission.reason
        return None

    def check(self, user: User, wanted: Attributes) -> None:
        """Refuse what is not allowed."""
        if MASTERS not in user.groups and self.allows(user, wanted) is None:
            raise _forbidden(user, wanted)

    def rules(self, user: User, namespace: str) -> list[Json]:
        """Everything that a user may do in a namespace."""
        if MASTERS in user.groups:
            return ALL_RIGHTS
        bindings = self._bindings
        return [rule for grant, _ in bindings.grants_of(user, namespace) for rule in bindings.rules_of(grant)]

    def _permissions_for(self, user: User, wanted: Attributes) -> tuple[_Permission, ...]:
        question = replace(wanted, name="")
        request_key = (user.name, user.groups, question)
        permissions = self._permissions.get(request_key)
        if permissions is None:
            permissions = tuple(self._permitting(user, question))
            if sum(map(len, (user.name, *user.groups, *astuple(question)))) <= _LONGEST_QUESTION:
                if self._remembered > _MOST_REMEMBERED:
                    self._forget()
                self._permissions[request_key] = permissions
                self._remembered += 1 + len(permissions)
        return permissions

    def _permitting(self, user: User, wanted: Attributes) -> Iterator[_Permission]:
        """The rules that allow something, up to the first that does so for any name."""
        for grant, subject in self._bindings.grants_of(user, wanted.namespace):
            for rule in self._bindings.rules_of(grant):
                if _covers(rule, wanted):
                    names = rule.get("resourceNames") or ()
                    yield _Permission(names, f"RBAC: allowed by {grant.description} to {subject}")
                    if not names:
                        return


def _forbidden(user: User, wanted: Attributes) -> Refusal:
    if wanted.path:
        message = f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
        return Refusal(403, "Forbidden", message, {})
    resource = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    named = f'{resource} "{wanted.name}"' if wanted.name else resource
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    message = (
        f'{named} is forbidden: User "{user.name}" cannot {wanted.verb} resource "{wanted.full_resource}" in API group '
        f'"{wanted.group}" {where}'
    )
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return Refusal(403, "Forbidden", message, {key: value for key, value in details.items() if value})

"""A call: one verb on one resource, made from a request's path and query."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.embedded.apiserver.errors import (
    FieldError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_options,
    too_long,
    unsupported,
)
from spinney.embedded.apiserver.http.content_types import media_type
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.kube.client.transport import Request, User

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(slots=True)
class Call:
    """One verb on one resource, by one user."""

    verb: str
    kind: Kind
    namespace: str
    name: str
    subresource: str
    request: Request
    query: Mapping[str, str]
    user: User
    warnings: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    # Of a deletion, from its body or its query.
    options: Json = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the object in the kind's table."""
        return self.kind.key(self.namespace, self.name)

    @property
    def dry_run(self) -> bool:
        """Whether the write must not be stored."""
        return bool((self.options if self.verb in ("delete", "deletecollection") else self.query).get("dryRun"))

    @property
    def manager(self) -> str:
        """The field manager: as the query names it, or the name of the client program."""
        named = self.query.get("fieldManager", "")
        return named or self.request.headers.get("user-agent", "").partition("/")[0] or "unknown"

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        return self.query.get("fieldValidation") or "Warn"

    def check_options(self) -> None:
        """Refuse invalid options of a write."""
        query = self.query
        if not query:
            return
        errors: list[FieldError] = []
        if query.get("dryRun") not in (None, "All"):
            errors.append(unsupported("dryRun", [query["dryRun"]], ("All",)))
        manager = query.get("fieldManager", "")
        if len(manager) > 128:
            errors.append(too_long("fieldManager", 128))
        if not manager.isprintable():
            errors.append(invalid("fieldManager", manager, "must consist of printable characters"))
        if query.get("fieldValidation") not in (None, "", "Strict", "Warn", "Ignore"):
            errors.append(unsupported("fieldValidation", query["fieldValidation"], ("", "Ignore", "Strict", "Warn")))
        if self.verb == "patch" and "force" in query and "apply-patch" not in media_type(self.request):
            errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
        if errors:
            name = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}.get(self.verb)
            raise invalid_options(name or "DeleteOptions", errors)


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean of a query: everything but `false` and `0` is true."""
    return name in query and query[name] not in ("false", "0")


def number(text: str) -> int:
    """A number of a query, of 64 bits; an empty text is 0."""
    if not text:
        return 0
    with suppress(ValueError):
        if -(2**63) <= (value := int(text)) < 2**63:
            return value
    raise bad_request(f"{text!r} is not a number of 64 bits")


def version_number(text: str) -> int:
    """A resource version as a number; an empty text is 0."""
    version = whole_number(text) if text else 0
    if version is None:
        raise bad_request(f"resourceVersion: {text!r} is not a resource version")
    return version


@lru_cache(maxsize=4096)
def split_path(path: str) -> tuple[str, str, str, str, str, str] | None:
    """Group, version, namespace, plural, name and subresource of a resource path."""
    parts = path.strip("/").split("/")
    if is_old_watch(parts):
        parts.remove("watch")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1:
        namespace = ""
    name = rest[1] if len(rest) > 1 else ""
    return group, version, namespace, rest[0], name, "/".join(rest[2:])


def is_old_watch(parts: list[str]) -> bool:
    """Whether a path watches by the old prefix `/watch/`, from before `?watch=true`."""
    return parts[2:3] == ["watch"] if parts[0] == "api" else parts[3:4] == ["watch"]


_METHODS = {
    "GET": ("list", "get"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}


def verb_of(method: str, name: str, query: Mapping[str, str]) -> str:
    """The RBAC verb of a request."""
    verb = _METHODS.get(method, ("", ""))[bool(name)]
    return "watch" if verb == "list" and flag(query, "watch") else verb

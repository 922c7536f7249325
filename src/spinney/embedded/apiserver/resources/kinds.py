"""A kind as it is served at one version, and its subresources."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from spinney.embedded.apiserver.resources.record import ALL_VERBS, CREATE_ONLY, OtherVersion, Resource

if TYPE_CHECKING:
    from spinney.embedded.apiserver.schema.custom_resources import Custom


_PLAIN = Resource()
_STATUS_VERBS = ("get", "patch", "update")
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
# Subresources whose body is not the object itself.
_OTHER_BODIES = {
    "scale": ("autoscaling", "v1", "Scale", _STATUS_VERBS),
    "binding": ("", "v1", "Binding", CREATE_ONLY),
    "eviction": ("policy", "v1", "Eviction", CREATE_ONLY),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", CREATE_ONLY),
    "attach": ("", "v1", "PodAttachOptions", _CONNECT),
    "exec": ("", "v1", "PodExecOptions", _CONNECT),
    "portforward": ("", "v1", "PodPortForwardOptions", _CONNECT),
}
_OWN_BODIES = {"log": ("get",), "finalize": ("update",)}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource, with the kind of its body."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource at one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: dict[str, Subresource] = field(default_factory=dict)
    singular: str = ""
    list_kind: str = ""
    custom: Custom | None = None
    resource: Resource = _PLAIN
    # Set where this version is not the one that objects are stored at.
    other: OtherVersion | None = None
    # Derived once, since every request needs them. `stored` is the version that objects are stored at.
    api_version: str = ""
    stored: str = ""
    table: str = ""
    qualified: str = ""

    @staticmethod
    def of(group: str, version: str, kind: str, plural: str, namespaced: bool, **more: object) -> Kind:
        """A kind with its derived names filled in."""
        made = Kind(group, version, kind, plural, namespaced)
        return replace(
            made,
            **{
                "singular": kind.lower(),
                "list_kind": f"{kind}List",
                "api_version": f"{group}/{version}" if group else version,
                "stored": f"{group}/{version}" if group else version,
                "table": f"{group}/{plural}",
                "qualified": f"{plural}.{group}" if group else plural,
                **more,
            },  # type: ignore[arg-type]  # the names are this class's own fields
        )

    def key(self, namespace: str, name: str) -> str:
        """The key of an object in its table."""
        return f"{namespace}/{name}" if self.namespaced else name


def subresource(name: str, group: str, version: str, kind: str) -> Subresource:
    """The subresource of a kind, by name."""
    if name == "proxy":
        return Subresource(name, "", "v1", f"{kind}ProxyOptions", _PROXY)
    if name in _OTHER_BODIES:
        return Subresource(name, *_OTHER_BODIES[name])
    return Subresource(name, group, version, kind, _OWN_BODIES.get(name, _STATUS_VERBS))

"""The kind and API version of a body, checked against the path."""

from __future__ import annotations

from dataclasses import replace

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import CannotBeHandled, bad_request, invalid, invalid_object
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.schema.misfit import type_name
from spinney.embedded.apiserver.schema.shapes import kind_names


def check_type(document: Json, kind: Kind, verb: str = "") -> None:
    """Refuse an object of another kind or version."""
    version, name = document.get("apiVersion"), document.get("kind")
    if name == kind.kind and version == kind.api_version:
        return
    if name is None and version is None and kind.custom is None:
        return
    for key, value in (("apiVersion", version), ("kind", name)):
        if not isinstance(value, str | None):
            raise bad_request(f"{key}: expected a string, got {type_name(value)}")
    # A built-in object need not say its version.
    unsaid = not version and kind.custom is None
    if (not name or name == kind.kind) and (unsaid or version == kind.api_version):
        return
    if kind.custom is not None:
        metadata = document.get("metadata") or {}
        if name == kind.kind and verb == "patch":
            error = invalid("apiVersion", version, f"must be {kind.api_version}")
            group = str(version).rpartition("/")[0]
            raise invalid_object(replace(kind, table=f"{group}/{kind.plural}"), metadata.get("name", ""), [error])
        if name == kind.kind:
            version_text = f"the API version in the data ({version or ''})"
            raise bad_request(f"{version_text} does not match the expected API version ({kind.api_version})")
        error = invalid("kind", name, f"must be {kind.kind}")
        shown_kind = replace(kind, kind=name or kind.kind)
        raise invalid_object(shown_kind, metadata.get("name", "") if isinstance(metadata, dict) else "", [error])
    version = version or kind.api_version
    short = version.rpartition("/")[2]
    if kind_names().get((*_split(version), name or kind.kind)) or (version, name) == ("v1", "List"):
        group = "core" if not kind.group else kind.group.partition(".")[0]
        problem = f"converting ({short}.{name}) to ({group}.{kind.kind}): unknown conversion"
        raise CannotBeHandled(name or kind.kind, short, kind.kind, problem, other_kind=True)
    problem = f'no kind "{name or kind.kind}" is registered for version "{version}"'
    raise CannotBeHandled(name or kind.kind, short, kind.kind, problem)


def _split(version: str) -> tuple[str, str]:
    group, _, short = version.rpartition("/")
    return group, short

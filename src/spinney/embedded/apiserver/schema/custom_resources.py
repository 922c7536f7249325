"""What a CustomResourceDefinition says about the objects of its kind: schema, defaults, rules and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spinney.api.formats import is_checked
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid
from spinney.embedded.apiserver.schema.cel_rules import Rules, rules_below
from spinney.embedded.apiserver.schema.conform import conform_metadata
from spinney.embedded.apiserver.schema.shapes import Shape, definitions, meta_schema, schemas_below
from spinney.embedded.apiserver.schema.structural import Defaults, compiled, has_defaults, prune, without_nulls
from spinney.embedded.apiserver.schema.structural_checks import Checker

_TYPE_AND_METADATA = ("apiVersion", "kind", "metadata")
TABLE = "apiextensions.k8s.io/customresourcedefinitions"
# The finalizer of a definition whose objects are not gone yet.
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


@dataclass(frozen=True)
class Version:
    """One served version of a custom resource."""

    # The published schema, and the one for checks, without type and metadata.
    full: Json
    schema: Json
    shape: Shape
    status: bool
    scale: Json | None
    columns: tuple[Json, ...]
    selectable: tuple[str, ...]
    normal: Any
    defaults: Defaults | None
    rules: Rules | None
    # Whether every object must be walked.
    walked: bool
    warning: str


class Custom:
    """What a definition says about objects, by version."""

    def __init__(self, definition: Json, since: int) -> None:
        spec = definition["spec"]
        # The version of the definition's last change: older objects may not fit its schemas.
        self.since = since
        self.name: str = definition["metadata"]["name"]
        self.versions = {
            version["name"]: _version(version, spec["group"], spec["names"]["kind"])
            for version in spec["versions"]
            if version.get("served")
        }
        self.selectable: tuple[str, ...] = tuple({name for v in self.versions.values() for name in v.selectable})

    def shape(self, version: str) -> Shape:
        """The shape of objects, for owning and merging fields."""
        return self.versions[version].shape

    def has_status(self, version: str) -> bool:
        """Whether the status has an endpoint of its own."""
        return self.versions[version].status

    def conform(self, version: str, document: Json, old: Json | None = None) -> tuple[Json, list[str]]:
        """The object pruned and defaulted, and the dropped fields; `old` is the object before a change."""
        served = self.versions[version]
        dropped: list[str] = []
        body = {key: value for key, value in document.items() if key not in _TYPE_AND_METADATA}
        normal = served.normal.is_valid(body)
        if not normal:
            body = prune(body, served.schema, "", dropped)
        before = (old or {}).get("metadata") or {}
        metadata, unknown = conform_metadata(document["metadata"], "metadata", before)
        if served.defaults is not None:
            body = served.defaults.fill(body)
        if not normal:
            body = without_nulls(body, served.schema)
        dropped += unknown
        head = {"kind": document["kind"], "apiVersion": document["apiVersion"], "metadata": metadata}
        return head | body, sorted(dropped)

    def without_nulls(self, version: str, document: Json) -> Json:
        """An object without the nulls that its schema does not allow."""
        cleaned: Json = without_nulls(document, self.versions[version].schema)
        return cleaned

    def pruned(self, version: str, document: Json) -> Json:
        """An object of another version, without the fields that this version does not have."""
        body = {key: value for key, value in document.items() if key not in _TYPE_AND_METADATA}
        body = prune(body, self.versions[version].schema, "", [])
        head: Json = {key: document[key] for key in ("kind", "apiVersion", "metadata")}
        head.update(body)
        return head

    def check(self, version: str, new: Json, old: Json | None) -> list[FieldError]:
        """The errors of an object."""
        served = self.versions[version]
        body = {key: value for key, value in new.items() if key not in _TYPE_AND_METADATA}
        checker = Checker()
        if not served.normal.is_valid(body) or served.walked:
            before = {key: value for key, value in (old or {}).items() if key not in _TYPE_AND_METADATA}
            checker.check(body, served.schema, "", before or None)
        if checker.errors and served.rules is not None:
            detail = (
                "some validation rules were not checked because the object was invalid; correct the existing errors to "
            )
            return [*checker.errors, invalid("<nil>", None, detail + "complete validation")]
        if checker.errors or served.rules is None:
            return checker.errors
        return served.rules.check(new, old)


def _version(version: Json, group: str, kind: str) -> Version:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    members = {key: item for key, item in (schema.get("properties") or {}).items() if key not in _TYPE_AND_METADATA}
    needed = [key for key in schema.get("required") or () if key not in _TYPE_AND_METADATA]
    body = {**schema, "properties": members, "required": needed}
    full = {**schema, "properties": {**(schema.get("properties") or {}), "metadata": meta_schema()}}
    subs = version.get("subresources") or {}
    fields = tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ())
    return Version(
        schema,
        body,
        Shape(full, definitions()),
        "status" in subs,
        subs.get("scale"),
        tuple(version.get("additionalPrinterColumns") or ()),
        fields,
        compiled(body),
        Defaults(body) if has_defaults(body) else None,
        Rules(schema, root=True) if rules_below(schema) else None,
        _needs_walk(body),
        _warning(version, group, kind),
    )


def _warning(version: Json, group: str, kind: str) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated"


def _needs_walk(schema: Json) -> bool:
    """Whether duplicates or formats must be looked for, which the compiled schema cannot do."""
    if schema.get("x-kubernetes-list-type") in ("set", "map") or is_checked(schema.get("format", "")):
        return True
    return any(map(_needs_walk, schemas_below(schema)))

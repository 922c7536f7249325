"""CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    one_of,
    required,
    too_long,
    too_many,
    unsupported,
)
from spinney.embedded.apiserver.resources.defaults import fill
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Warnings
from spinney.embedded.apiserver.resources.validation.names import check_unchanged
from spinney.embedded.apiserver.resources.validation.schemas import check_root, unknown_formats
from spinney.embedded.apiserver.schema import definition_status
from spinney.embedded.apiserver.schema.custom_resources import CLEANUP

_APPROVAL = "api-approved.kubernetes.io"
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
# Every write looks up the selectable fields, and every row of a list all columns; known definitions have up to 20.
_MOST_SELECTABLE = 8
_MOST_COLUMNS = 100
_LONGEST_PATH = 1024


def _check(document: Json) -> list[FieldError]:
    spec, metadata = document.get("spec") or {}, document["metadata"]
    group, labels = spec.get("group", ""), spec.get("names") or {}
    name, errors = metadata.get("name", ""), []
    # In an update, a change of these fields is reported instead.
    is_new = "resourceVersion" not in metadata
    if is_new and name != f"{labels.get('plural', '')}.{group}":
        errors.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors += _group(group) + _scope(spec.get("scope", ""))
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid("spec.preserveUnknownFields", True, detail))
    versions = spec.get("versions")
    errors += (
        _versions(versions) + _names(labels) + _contents(versions or []) + _conversion(spec.get("conversion") or {})
    )
    return errors + _stored(versions or []) + _approval(group, metadata)


def _group(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    problems = naming.subdomain_problems(group)
    if problems:
        return [invalid("spec.group", group, problem) for problem in problems]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _scope(scope: str) -> list[FieldError]:
    if not scope:
        return [required("spec.scope")]
    allowed = ("Cluster", "Namespaced")
    return one_of("spec.scope", scope, allowed)


def _approval(group: str, metadata: Json) -> list[FieldError]:
    protected = group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))
    if not protected or (metadata.get("annotations") or {}).get(_APPROVAL):
        return []
    detail = (
        f'protected groups must have approval annotation "{_APPROVAL}", '
        "see https://github.com/kubernetes/enhancements/pull/1111"
    )
    return [required(f"metadata.annotations[{_APPROVAL}]", detail)]


def _names(labels: Json) -> list[FieldError]:
    keys = ("plural", "singular", "kind", "listKind")
    errors = [required(f"spec.names.{key}") for key in keys if not labels.get(key)]
    for key in keys:
        value = labels.get(key, "")
        if not value:
            continue
        mixed = key in ("kind", "listKind")
        prefix = "may have mixed case, but should otherwise match: " if mixed else ""
        problems = naming.dns_1035_problems(value.lower() if mixed else value)
        errors += [invalid(f"spec.names.{key}", value, prefix + problem) for problem in problems]
    for key in ("shortNames", "categories"):
        for at, value in enumerate(labels.get(key) or ()):
            errors += [invalid(f"spec.names.{key}[{at}]", value, why) for why in naming.dns_1035_problems(value)]
    if labels.get("kind") and labels.get("kind") == labels.get("listKind"):
        errors.append(invalid("spec.names.listKind", labels["listKind"], "kind and listKind may not be the same"))
    return errors


def _versions(versions: list[Json] | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, version in enumerate(versions or ()):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            errors.append(required(f"spec.versions[{at}].schema.openAPIV3Schema"))
        if version.get("deprecationWarning") and not version.get("deprecated"):
            detail = "can only be set for deprecated versions"
            errors.append(invalid(f"spec.versions[{at}].deprecationWarning", version["deprecationWarning"], detail))
    for at, version in enumerate(versions or ()):
        name = version.get("name", "")
        errors += [invalid(f"spec.versions[{at}].name", name, problem) for problem in naming.dns_1035_problems(name)]
    names = [version.get("name") for version in versions or ()]
    if len(set(names)) != len(names):
        errors.append(invalid("spec.versions", versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions or ()) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", versions, detail))
    return errors


def _stored(versions: list[Json]) -> list[FieldError]:
    stored = [version.get("name") for version in versions if version.get("storage")]
    if not stored:
        return [invalid("status.storedVersions", None, "must have at least one stored version")]
    if stored[-1] != stored[0]:
        return [invalid("status.storedVersions", stored[:1], f"must have the storage version {stored[-1]}")]
    return []


def _contents(versions: list[Json]) -> list[FieldError]:
    """Check the contents of versions; errors that all versions share are reported once."""
    errors: list[FieldError] = []
    for key, at_top in (
        ("schema", "validation"),
        ("subresources", "subresources"),
        ("additionalPrinterColumns",) * 2,
    ):
        parts = [version.get(key) for version in versions]
        if parts and all(part == parts[0] for part in parts):
            errors += _part(key, parts[0], f"spec.{at_top}")
            continue
        for at, part in enumerate(parts):
            errors += _part(key, part, f"spec.versions[{at}].{key}")
    same = all(version.get("selectableFields") == versions[0].get("selectableFields") for version in versions)
    for at, version in enumerate(versions[:1] if same else versions):
        errors += _selectable(version, "spec" if same else f"spec.versions[{at}]")
    return errors


def _selectable(version: Json, path: str) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    errors: list[FieldError] = []
    if not schema and version.get("selectableFields"):
        detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
        return [invalid(f"{path}.selectableFields", "", detail)]
    fields = version.get("selectableFields") or ()
    if len(fields) > _MOST_SELECTABLE:
        return [too_many(f"{path}.selectableFields", len(fields), _MOST_SELECTABLE)]
    seen: set[str] = set()
    for at, field in enumerate(fields):
        where, json_path = f"{path}.selectableFields[{at}].jsonPath", field.get("jsonPath", "")
        if not json_path:
            errors.append(required(where))
            continue
        node: Any = schema
        for part in json_path.strip(".").split("."):
            node = (node.get("properties") or {}).get(part) or {}
        if not node.get("type") or json_path.startswith(".metadata."):
            errors.append(invalid(where, json_path, "is an invalid path: does not refer to a valid field"))
        elif node["type"] not in ("string", "integer", "boolean"):
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            errors.append(invalid(where, json_path, detail))
        elif len(json_path) > _LONGEST_PATH:
            errors.append(too_long(where, _LONGEST_PATH))
        elif json_path in seen:
            errors.append(duplicate(where, json_path))
        seen.add(json_path)
    return errors


def _part(key: str, part: Any, path: str) -> list[FieldError]:
    if key == "schema":
        schema = (part or {}).get("openAPIV3Schema")
        return check_root(schema, f"{path}.openAPIV3Schema") if schema is not None else []
    if key == "subresources":
        return _scale((part or {}).get("scale"), f"{path}.scale")
    columns = part or ()
    if len(columns) > _MOST_COLUMNS:
        return [too_many(path, len(columns), _MOST_COLUMNS)]
    return [error for at, column in enumerate(columns) for error in _column(column, f"{path}[{at}]")]


def _scale(scale: Json | None, path: str) -> list[FieldError]:
    if scale is None:
        return []
    errors: list[FieldError] = []
    for key, part in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value, field = scale.get(key, ""), f"{path}.{key}"
        if not value:
            errors.append(required(field))
        elif not value.startswith("."):
            errors.append(invalid(field, value, "must be a simple json path starting with ."))
        elif not value.startswith(f"{part}."):
            errors.append(invalid(field, value, f"should be a json path under {part}"))
        elif len(value) > _LONGEST_PATH:
            errors.append(too_long(field, _LONGEST_PATH))
    selector = scale.get("labelSelectorPath", "")
    if selector and not selector.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        errors.append(invalid(f"{path}.labelSelectorPath", selector, detail))
    elif len(selector) > _LONGEST_PATH:
        errors.append(too_long(f"{path}.labelSelectorPath", _LONGEST_PATH))
    return errors


def _column(column: Json, path: str) -> list[FieldError]:
    errors = [
        required(f"{path}.{shown}")
        for key, shown in (("name", "name"), ("type", "type"), ("jsonPath", "JSONPath"))
        if not column.get(key)
    ]
    if column.get("type") and column["type"] not in _COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", column["type"], "must be one of " + ",".join(_COLUMN_TYPES)))
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", column["format"], "must be one of " + ",".join(_COLUMN_FORMATS)))
    if column.get("jsonPath") and not column["jsonPath"].startswith("."):
        detail = "must be a simple json path starting with ."
        errors.append(invalid(f"{path}.JSONPath", column["jsonPath"], detail))
    elif len(column.get("jsonPath", "")) > _LONGEST_PATH:
        errors.append(too_long(f"{path}.JSONPath", _LONGEST_PATH))
    return errors


def _conversion(conversion: Json) -> list[FieldError]:
    strategy = conversion.get("strategy", "None")
    if strategy not in ("None", "Webhook"):
        return [unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    if strategy == "None":
        if (conversion.get("webhook") or {}).get("conversionReviewVersions"):
            detail = "should not be set when strategy is not set to Webhook"
            return [forbidden_field("spec.conversion.conversionReviewVersions", detail)]
        return []
    errors, webhook = [], conversion.get("webhook") or {}
    if not webhook.get("clientConfig"):
        detail = "required when strategy is set to Webhook"
        errors.append(required("spec.conversion.webhookClientConfig", detail))
    if not webhook.get("conversionReviewVersions"):
        errors.append(required("spec.conversion.conversionReviewVersions"))
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a definition."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = check_unchanged(spec, old_spec, ("group", "scope"), "spec.")
    errors += check_unchanged(spec.get("names") or {}, old_spec.get("names") or {}, ("kind", "plural"), "spec.names.")
    present = {version.get("name") for version in spec.get("versions") or ()}
    for at, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in present:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            errors.append(invalid(f"status.storedVersions[{at}]", name, detail))
    return errors


def _default(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("conversion", {}).setdefault("strategy", "None")
    names = spec.setdefault("names", {})
    if names.get("kind"):
        fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


def _prepare_create(core: Core, call: Call, document: Json) -> None:
    document["status"] = definition_status.new_status(core, document, {})


def _prepare_update(core: Core, call: Call, new: Json, old: Json) -> None:
    if new.get("spec") != old.get("spec"):
        new["status"] = definition_status.new_status(core, new, old.get("status") or {})


def _warn(document: Json) -> Iterator[str]:
    for version in (document.get("spec") or {}).get("versions") or ():
        for name in unknown_formats((version.get("schema") or {}).get("openAPIV3Schema") or {}):
            yield f'unrecognized format "{name}"'


def _begin_deletion(core: Core, document: Json, finalizers: list[str], options: Json) -> bool:
    """Mark a definition, which waits until its objects are gone."""
    metadata = document["metadata"]
    if not metadata.get("deletionTimestamp"):
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
            _set_terminating(core, document)
        metadata["deletionTimestamp"] = core.timestamp()
    return bool(finalizers)


def _set_terminating(core: Core, definition: Json) -> None:
    """Add the condition that says that the objects of a definition are deleted first."""
    status = definition.setdefault("status", {})
    condition = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": core.timestamp(),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    status["conditions"] = [*(status.get("conditions") or ()), condition]


CUSTOM_RESOURCE_DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    storage_version="v1beta1",
    categories=("api-extensions",),
    subresources=("status",),
    default=_default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    status_keeps=None,
    has_generation=True,
    allow_unconditional_update=False,
    deletion=Deletion(begin=_begin_deletion),
    checks=Checks(qualified_finalizers=False, object=_check, update=_check_update),
    warnings=Warnings(create=_warn),
)

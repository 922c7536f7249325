"""CustomResourceDefinitions: names, versions, and schemas that are structural and whose rules compile."""

from __future__ import annotations

from typing import Any

from spinney.api.meta import Json
from spinney.embedded import cel
from spinney.embedded.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.validation import names

_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def check(document: Json) -> list[FieldError]:
    """A definition as it is about to be kept."""
    spec, name = document.get("spec") or {}, document["metadata"].get("name", "")
    found: list[FieldError] = []
    group, labels = spec.get("group", ""), spec.get("names") or {}
    plural = labels.get("plural", "")
    if name != f"{plural}.{group}":
        found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        found.append(required("spec.group"))
    elif names.subdomain_problems(group):
        found += [invalid("spec.group", group, problem) for problem in names.subdomain_problems(group)]
    elif "." not in group:
        found.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        field = "spec.scope"
        given = spec.get("scope", "")
        found.append(unsupported(field, given, ("Cluster", "Namespaced")) if given else required(field))
    found += _names(labels)
    found += _versions(spec.get("versions") or [])
    return found


def _names(labels: Json) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("plural", "singular", "kind", "listKind"):
        value = labels.get(key, "")
        if not value:
            if key in ("plural", "kind"):
                found.append(required(f"spec.names.{key}"))
            continue
        problems = names.dns_1035_problems(value.lower() if key in ("kind", "listKind") else value)
        found += [invalid(f"spec.names.{key}", value, problem) for problem in problems]
    for at, short in enumerate(labels.get("shortNames") or ()):
        found += [invalid(f"spec.names.shortNames[{at}]", short, why) for why in names.dns_1035_problems(short)]
    if labels.get("kind") and labels.get("kind") == labels.get("listKind"):
        found.append(invalid("spec.names.listKind", labels["listKind"], "kind and listKind may not be the same"))
    return found


def _versions(versions: list[Json]) -> list[FieldError]:
    found: list[FieldError] = []
    if not versions:
        found.append(required("spec.versions", "must have at least one version"))
    seen: set[str] = set()
    stored = 0
    for at, version in enumerate(versions):
        where = f"spec.versions[{at}]"
        name = version.get("name", "")
        found += [invalid(f"{where}.name", name, problem) for problem in names.dns_1035_problems(name)]
        if name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen.add(name)
        stored += bool(version.get("storage"))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            found.append(required(f"{where}.schema.openAPIV3Schema", "schemas are required"))
        else:
            found += _schema(schema, f"{where}.schema.openAPIV3Schema")
        found += _extras(version, where)
    if versions and stored != 1:
        detail = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", versions, detail))
    return found


def _extras(version: Json, where: str) -> list[FieldError]:
    found: list[FieldError] = []
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        for key in ("specReplicasPath", "statusReplicasPath"):
            path, part = scale.get(key, ""), ".spec." if key.startswith("spec") else ".status."
            field = f"{where}.subresources.scale.{key}"
            if not path:
                found.append(required(field))
            elif not path.startswith(part):
                found.append(invalid(field, path, f"should be a json path under {part.rstrip('.')}"))
    for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
        field = f"{where}.additionalPrinterColumns[{at}]"
        for key in ("name", "type", "jsonPath"):
            if not column.get(key):
                found.append(required(f"{field}.{key}"))
        allowed = ("boolean", "date", "integer", "number", "string")
        if column.get("type") and column["type"] not in allowed:
            detail = "must be one of " + ",".join(allowed)
            found.append(invalid(f"{field}.type", column["type"], detail))
    return found


def _schema(schema: Json, path: str) -> list[FieldError]:
    """The root of a schema: an object, structural all the way down."""
    found: list[FieldError] = []
    if not schema.get("type"):
        found.append(required(f"{path}.type", "must not be empty at the root"))
    elif schema["type"] != "object":
        found.append(invalid(f"{path}.type", schema["type"], "must be object at the root"))
    return found + _node(schema, path, root=True)


def _node(schema: Any, path: str, *, root: bool = False) -> list[FieldError]:
    if not isinstance(schema, dict):
        return []
    found: list[FieldError] = []
    kind = schema.get("type", "")
    open_type = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if not kind and not open_type and not root:
        what = "array items" if path.endswith(".items") else "specified object fields"
        found.append(required(f"{path}.type", f"must not be empty for {what}"))
    if kind and kind not in _TYPES:
        found.append(unsupported(f"{path}.type", kind, _TYPES))
    if kind == "array" and "items" not in schema:
        found.append(required(f"{path}.items", "must be specified"))
    if "properties" in schema and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden_field(f"{path}.additionalProperties", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden_field(f"{path}.uniqueItems", detail))
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        detail = "must not be empty if x-kubernetes-list-type is map"
        found.append(required(f"{path}.x-kubernetes-list-map-keys", detail))
    found += _rules(schema, path)
    for name, item in (schema.get("properties") or {}).items():
        if root and name == "metadata":
            continue
        found += _node(item, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        found += _node(schema["items"], f"{path}.items")
    if isinstance(schema.get("additionalProperties"), dict):
        found += _node(schema["additionalProperties"], f"{path}.additionalProperties")
    return found


def _rules(schema: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{at}]"
        text = entry.get("rule", "")
        if not text.strip():
            found.append(required(f"{where}.rule", "rule is not specified"))
            continue
        try:
            cel.program(text, ("self", "oldSelf"))
        except cel.BadRule as error:
            found.append(invalid(f"{where}.rule", _shown_rule(entry), f"compilation failed: {error}"))
    return found


def _shown_rule(entry: Json) -> Json:
    return {"Rule": entry.get("rule"), "Message": entry.get("message", "")}


def check_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a definition."""
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    found: list[FieldError] = []
    for key in ("group", "scope"):
        if mine.get(key) != was.get(key):
            found.append(invalid(f"spec.{key}", mine.get(key), "field is immutable"))
    for key in ("kind", "plural"):
        value = (mine.get("names") or {}).get(key)
        if value != (was.get("names") or {}).get(key):
            found.append(invalid(f"spec.names.{key}", value, "field is immutable"))
    present = {version.get("name") for version in mine.get("versions") or ()}
    for at, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in present:
            detail = "must appear in spec.versions"
            found.append(invalid(f"status.storedVersions[{at}]", name, detail))
    return found

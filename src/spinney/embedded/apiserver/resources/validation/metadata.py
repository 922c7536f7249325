"""Checks of `metadata`, for every kind."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, required
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.validation import names

_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))

_NEW: Json = {}


def check(kind: Kind, metadata: Json, checked: Json = _NEW) -> list[FieldError]:
    """Check the metadata of an object. What it shares with `checked` was checked before."""
    errors: list[FieldError] = []
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif name != checked.get("name") or prefix != checked.get("generateName", ""):
        rule = kind.resource.checks.name
        if prefix:
            # The generated suffix follows the prefix, so the prefix may end with a dash.
            begun = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
            errors += [invalid("metadata.generateName", prefix, problem) for problem in rule(begun)]
        errors += [invalid("metadata.name", name, problem) for problem in rule(name)]
    if metadata.get("labels") and metadata["labels"] is not checked.get("labels"):
        errors += names.check_labels(metadata["labels"], "metadata.labels")
    if metadata.get("annotations") and metadata["annotations"] is not checked.get("annotations"):
        errors += names.check_annotations(metadata["annotations"], "metadata.annotations")
    if metadata.get("ownerReferences") and metadata["ownerReferences"] is not checked.get("ownerReferences"):
        errors += _owners(metadata["ownerReferences"])
    return errors + _finalizers(kind, metadata["finalizers"]) if metadata.get("finalizers") else errors


def _finalizers(kind: Kind, finalizers: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, finalizer in enumerate(finalizers):
        errors += [invalid("metadata.finalizers", finalizer, why) for why in naming.qualified_problems(finalizer)]
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS and kind.resource.checks.qualified_finalizers:
            errors.append(
                invalid(
                    f"metadata.finalizers[{at}]",
                    finalizer,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid("metadata.finalizers", finalizers, detail))
    return errors


def _owners(owners: list[Json]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    errors: list[FieldError] = []
    controller = ""
    for owner in owners:
        version = owner.get("apiVersion", "")
        if not version.rpartition("/")[2] or version.count("/") > 1:
            errors.append(invalid(f"{path}.apiVersion", version, "version must not be empty"))
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                errors.append(invalid(f"{path}.{key}", owner.get(key, ""), "must not be empty"))
        if owner.get("kind") == "Event" and owner.get("apiVersion") == "v1":
            errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if not owner.get("controller"):
            continue
        name = f"{owner.get('kind')}/{owner.get('name')}"
        if controller:
            rule = "Only one reference can have Controller set to true."
            errors.append(invalid(path, owners, f'{rule} Found "true" in references for {controller} and {name}'))
        controller = controller or name
    return errors


def check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of metadata."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            detail = f"no new finalizers can be added if the object is being deleted, found {', '.join(added)}"
            errors.append(forbidden_field("metadata.finalizers", detail))
    return errors


def finalizer_warnings(metadata: Json, before: Json) -> list[str]:
    """Warn of new finalizers of a custom object that have no domain in their name."""
    new = set(metadata.get("finalizers") or ()) - {*(before.get("finalizers") or ()), *_STANDARD_FINALIZERS}
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name '
        f"{'including a path (/) ' if '.' in name else ''}to avoid accidental conflicts with other finalizer writers"
        for name in sorted(new)
        if "/" not in name
    ]

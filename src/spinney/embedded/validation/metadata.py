"""`metadata` of every kind: names, labels, annotations, owners, finalizers, and what may not change."""

from __future__ import annotations

from collections.abc import Callable

from spinney.api.meta import Json
from spinney.embedded.errors import FieldError, forbidden_field, invalid, required
from spinney.embedded.kinds import Kind
from spinney.embedded.validation import names

_NAME_RULES: dict[str, Callable[[str], tuple[str, ...]]] = {
    "/services": names.dns_1035_problems,
    "/namespaces": names.label_problems,
    "/events": names.path_problems,
    "apps/statefulsets": names.label_problems,
    "policy/poddisruptionbudgets": names.path_problems,
    "rbac.authorization.k8s.io/roles": names.path_problems,
    "rbac.authorization.k8s.io/clusterroles": names.path_problems,
    "rbac.authorization.k8s.io/rolebindings": names.path_problems,
    "rbac.authorization.k8s.io/clusterrolebindings": names.path_problems,
}
# Groups whose own server asks only that a finalizer looks like a name.
_LENIENT = frozenset(("apiextensions.k8s.io", "apiregistration.k8s.io"))
_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


_NEW: Json = {}


def check(kind: Kind, metadata: Json, known: Json = _NEW) -> list[FieldError]:
    """The metadata of an object that is about to be kept; what it shares with `known` was checked before."""
    found: list[FieldError] = []
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        rule = _NAME_RULES.get(kind.table, names.subdomain_problems)
        if prefix and rule(prefix.rstrip("-.")) and not names.DNS_SUBDOMAIN.match(name):
            found += [invalid("metadata.generateName", prefix, problem) for problem in rule(prefix)]
        found += [invalid("metadata.name", name, problem) for problem in rule(name)]
    if metadata.get("labels") and metadata["labels"] is not known.get("labels"):
        found += names.check_labels(metadata["labels"], "metadata.labels")
    if metadata.get("annotations") and metadata["annotations"] is not known.get("annotations"):
        found += names.check_annotations(metadata["annotations"], "metadata.annotations")
    if metadata.get("ownerReferences") and metadata["ownerReferences"] is not known.get("ownerReferences"):
        found += _owners(metadata["ownerReferences"])
    for at, finalizer in enumerate(metadata.get("finalizers") or ()):
        found += [invalid("metadata.finalizers", finalizer, why) for why in names.qualified_problems(finalizer)]
        if (
            "/" not in finalizer
            and finalizer not in _STANDARD_FINALIZERS
            and kind.group not in _LENIENT
            and kind.custom is None
        ):
            found.append(
                invalid(
                    f"metadata.finalizers[{at}]",
                    finalizer,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    return found


def _owners(owners: list[Json]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    found: list[FieldError] = []
    controller = ""
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                found.append(invalid(f"{path}.{key}", owner.get(key, ""), "must not be empty"))
        if owner.get("kind") == "Event" and owner.get("apiVersion") == "v1":
            found.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if not owner.get("controller"):
            continue
        name = f"{owner.get('kind')}/{owner.get('name')}"
        if controller:
            rule = "Only one reference can have Controller set to true."
            found.append(invalid(path, owners, f'{rule} Found "true" in references for {controller} and {name}'))
        controller = controller or name
    return found


def check_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to metadata."""
    found: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            shown = ", ".join(f'"{name}"' for name in added)
            found.append(
                forbidden_field(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{shown}}}",
                )
            )
    return found

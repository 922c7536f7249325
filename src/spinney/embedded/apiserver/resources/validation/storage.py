"""Volumes, claims and storage classes."""

from __future__ import annotations

from fractions import Fraction

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, forbidden_field, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation import pod_placement, volume_sources
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector
from spinney.embedded.apiserver.schema import internal

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "may not use ReadWriteOncePod with other access modes"
_POLICIES = ("Delete", "Recycle", "Retain")
# Members of a volume's spec that are no source.
_PLAIN = frozenset(
    (
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    )
)


def check_volume(document: Json) -> list[FieldError]:
    """A PersistentVolume."""
    spec = document.get("spec") or {}
    modes, capacity = spec.get("accessModes") or (), spec.get("capacity")
    found: list[FieldError] = []
    if not modes:
        found.append(required("spec.accessModes"))
    found += [unsupported("spec.accessModes", mode, _MODES) for mode in modes if mode not in _MODES]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        found.append(forbidden_field("spec.accessModes", _ALONE))
    if not capacity:
        found.append(required("spec.capacity"))
    if list(capacity or ()) != ["storage"]:
        found.append(unsupported("spec.capacity", capacity, ("storage",)))
    for name, amount in (capacity or {}).items():
        if quantity.exact(amount) <= 0:
            found.append(invalid(f"spec.capacity[{name}]", amount, "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _POLICIES:
        found.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES))
    found += _node_affinity(spec.get("nodeAffinity"))
    return found + _volume_source(spec, "spec") + _volume_class(spec)


def _node_affinity(affinity: Json | None) -> list[FieldError]:
    if affinity is None:
        return []
    wanted = affinity.get("required")
    if wanted is None:
        return [required("spec.nodeAffinity.required", "must specify required node constraints")]
    found: list[FieldError] = []
    for at, term in enumerate(wanted.get("nodeSelectorTerms") or ()):
        found += pod_placement.check_node_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{at}]")
    return found


def _volume_source(spec: Json, path: str) -> list[FieldError]:
    """Where the bytes are."""
    sources = [key for key in spec if key not in _PLAIN]
    if not sources:
        return [required(path, "must specify a volume type")]
    found: list[FieldError] = []
    kind, source = sources[0], spec[sources[0]]
    if kind == "csi":
        found += [required(f"{path}.csi.{key}") for key in ("driver", "volumeHandle") if not source.get(key)]
    if kind == "local":
        if not source.get("path"):
            found.append(required(f"{path}.local.path"))
        if spec.get("nodeAffinity") is None:
            found.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    found += volume_sources.check(kind, source, f"{path}.{kind}")
    found += [forbidden_field(f"{path}.{extra}", "may not specify more than 1 volume type") for extra in sources[1:]]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        found.append(forbidden_field(f"{path}.persistentVolumeReclaimPolicy", detail))
    return found


def _volume_class(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    name, mode = spec.get("storageClassName"), spec.get("volumeMode", "Filesystem")
    if name:
        found += [invalid("spec.storageClassName", name, problem) for problem in naming.subdomain_problems(name)]
    if mode not in ("Block", "Filesystem"):
        found.append(unsupported("spec.volumeMode", mode, ("Block", "Filesystem")))
    return found


def check_volume_update(new: Json, old: Json) -> list[FieldError]:
    """A volume keeps its source."""
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    before, now = ({key: value for key, value in each.items() if key not in _PLAIN} for each in (was, mine))
    found: list[FieldError] = []
    if before != now:
        told = internal.difference(before, now, "core.PersistentVolumeSource")
        path = "spec.persistentvolumesource"
        found.append(forbidden_field(path, f"{path} is immutable after creation\n{told}"))
    if mine.get("volumeMode") != was.get("volumeMode"):
        found.append(invalid("volumeMode", mine.get("volumeMode"), "field is immutable"))
    return found


def check_claim(document: Json) -> list[FieldError]:
    """A PersistentVolumeClaim."""
    return check_claim_spec(document.get("spec") or {}, "spec")


def check_claim_spec(spec: Json, path: str) -> list[FieldError]:
    """The spec of a claim, of its own or in a template."""
    found: list[FieldError] = []
    if not spec.get("accessModes"):
        found.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    found += check_selector(spec.get("selector"), f"{path}.selector")
    modes = spec.get("accessModes") or ()
    found += [unsupported(f"{path}.accessModes", mode, _MODES) for mode in modes if mode not in _MODES]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        found.append(forbidden_field(f"{path}.accessModes", _ALONE))
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        found.append(required(f"{path}.resources[storage]"))
    elif quantity.exact(storage) <= 0:
        found.append(invalid(f"{path}.resources[storage]", storage, "must be greater than zero"))
    name = spec.get("storageClassName")
    if name:
        found += [invalid(f"{path}.storageClassName", name, problem) for problem in naming.subdomain_problems(name)]
    mode = spec.get("volumeMode", "Filesystem")
    if mode not in ("Block", "Filesystem"):
        found.append(unsupported(f"{path}.volumeMode", mode, ("Block", "Filesystem")))
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            found += [required(f"{path}.{key}.{part}") for part in ("name", "kind") if not spec[key].get(part)]
    return found


def check_claim_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a PersistentVolumeClaim."""
    mine, was = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if bound:
        for key in ("resources", "volumeAttributesClassName"):
            mine.pop(key, None)
            if key in was:
                mine[key] = was[key]
    if not was.get("volumeName") and "volumeName" in mine:
        was["volumeName"] = mine["volumeName"]
    # A claim that names no class may get the default one later; the empty class is a choice.
    if was.get("storageClassName") is None:
        mine.pop("storageClassName", None)
    found: list[FieldError] = []
    if mine != was:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
        told = internal.difference(was, mine, "core.PersistentVolumeClaimSpec")
        found.append(forbidden_field("spec", f"{detail} claims\n{told}"))
    sizes = [_size(each.get("spec") or {}) for each in (new, old)]
    kept = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if sizes[0] < sizes[1] and sizes[0] <= quantity.exact(kept):
        where = "spec.resources.requests.storage"
        found.append(forbidden_field(where, "field can not be less than status.capacity"))
    if mine.get("volumeMode") != was.get("volumeMode"):
        found.append(invalid("volumeMode", mine.get("volumeMode"), "field is immutable"))
    return found


def _size(spec: Json) -> Fraction:
    return quantity.exact(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def check_claim_status(new: Json, old: Json) -> list[FieldError]:
    """How much a claim got."""
    return [
        invalid(f"status.capacity[{name}]", quantity.units(amount), "must be a valid resource quantity")
        for name, amount in ((new.get("status") or {}).get("capacity") or {}).items()
        if quantity.exact(amount) < 0
    ]


def check_storage_class(document: Json) -> list[FieldError]:
    """A StorageClass."""
    found: list[FieldError] = []
    name = document.get("provisioner", "")
    if not name:
        found.append(required("provisioner"))
    else:
        found += [invalid("provisioner", name, problem) for problem in naming.qualified_problems(name.lower())]
    if "" in (document.get("parameters") or {}):
        found.append(invalid("parameters", "", "field can not be empty."))
    policy = document.get("reclaimPolicy", "Delete")
    if policy not in ("Delete", "Retain"):
        found.append(unsupported("reclaimPolicy", policy, ("Delete", "Retain")))
    mode = document.get("volumeBindingMode", "Immediate")
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        found.append(unsupported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer")))
    for at, term in enumerate(document.get("allowedTopologies") or ()):
        for number, rule in enumerate(term.get("matchLabelExpressions") or ()):
            found += _topology(rule, f"allowedTopologies[{at}].matchLabelExpressions[{number}]")
    return found


def _topology(rule: Json, path: str) -> list[FieldError]:
    values, key = rule.get("values") or [], rule.get("key", "")
    found = [] if values else [required(f"{path}.values")]
    found += [duplicate(f"{path}.values[{at}]", value) for at, value in enumerate(values) if value in values[:at]]
    return found + [invalid(f"{path}.key", key, problem) for problem in naming.qualified_problems(key)]


def check_storage_class_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a StorageClass."""
    found = [
        forbidden_field(key, f"updates to {key} are forbidden.")
        for key in ("parameters", "provisioner", "reclaimPolicy")
        if new.get(key) != old.get(key)
    ]
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        found.append(invalid("volumeBindingMode", new.get("volumeBindingMode"), "field is immutable"))
    return found

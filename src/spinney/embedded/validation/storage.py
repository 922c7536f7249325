"""Volumes, claims and storage classes."""

from __future__ import annotations

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.errors import FieldError, forbidden_field, invalid, required, unsupported
from spinney.embedded.validation import names
from spinney.embedded.validation.selectors import check_selector

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
    found: list[FieldError] = []
    if not spec.get("accessModes"):
        found.append(required("spec.accessModes"))
    found += [
        unsupported("spec.accessModes", mode, _MODES) for mode in spec.get("accessModes") or () if mode not in _MODES
    ]
    capacity = spec.get("capacity")
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
    if not spec.keys() - _PLAIN:
        found.append(required("spec", "must specify a volume type"))
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
        found += [invalid(f"{path}.storageClassName", name, problem) for problem in names.subdomain_problems(name)]
    mode = spec.get("volumeMode", "Filesystem")
    if mode not in ("Block", "Filesystem"):
        found.append(unsupported(f"{path}.volumeMode", mode, ("Block", "Filesystem")))
    return found


def check_claim_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a PersistentVolumeClaim."""
    mine, was = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    for key in ("resources", "volumeAttributesClassName"):
        mine.pop(key, None)
        was.pop(key, None)
    if not was.get("volumeName"):
        mine.pop("volumeName", None)
        was.pop("volumeName", None)
    # A claim that names no class may get the default one later; the empty class is a choice.
    if was.get("storageClassName") is None:
        mine.pop("storageClassName", None)
    if mine == was:
        return []
    detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return [forbidden_field("spec", detail)]


def check_storage_class(document: Json) -> list[FieldError]:
    """A StorageClass."""
    found: list[FieldError] = []
    if not document.get("provisioner"):
        found.append(required("provisioner", ""))
    mode = document.get("volumeBindingMode", "Immediate")
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        found.append(unsupported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer")))
    return found


def check_storage_class_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a StorageClass."""
    found: list[FieldError] = []
    if new.get("parameters") != old.get("parameters"):
        found.append(forbidden_field("parameters", "updates to parameters are forbidden."))
    if new.get("provisioner") != old.get("provisioner"):
        found.append(forbidden_field("provisioner", "updates to provisioner are forbidden."))
    if new.get("reclaimPolicy") != old.get("reclaimPolicy"):
        found.append(forbidden_field("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    return found

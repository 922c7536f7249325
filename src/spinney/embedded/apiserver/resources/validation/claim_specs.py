"""Checks of the spec of a PersistentVolumeClaim, its own or that of a template."""

from __future__ import annotations

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, forbidden_field, invalid, one_of, required, unsupported
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ALONE = "may not use ReadWriteOncePod with other access modes"


def check_claim_spec(spec: Json, path: str) -> list[FieldError]:
    """Check the spec of a claim or of a claim template."""
    errors: list[FieldError] = []
    if not spec.get("accessModes"):
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += check_selector(spec.get("selector"), f"{path}.selector")
    modes = spec.get("accessModes") or ()
    errors += [unsupported(f"{path}.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        errors.append(forbidden_field(f"{path}.accessModes", _ALONE))
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        errors.append(required(f"{path}.resources[storage]"))
    elif quantity.exact(storage) <= 0:
        errors.append(invalid(f"{path}.resources[storage]", storage, "must be greater than zero"))
    name = spec.get("storageClassName")
    if name:
        errors += [invalid(f"{path}.storageClassName", name, problem) for problem in naming.subdomain_problems(name)]
    mode = spec.get("volumeMode", "Filesystem")
    errors += one_of(f"{path}.volumeMode", mode, ("Block", "Filesystem"))
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            errors += [required(f"{path}.{key}.{part}") for part in ("name", "kind") if not spec[key].get(part)]
    return errors

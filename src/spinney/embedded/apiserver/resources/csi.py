"""What storage drivers say of themselves: CSIDrivers, CSINodes, attachments, capacities and attribute classes."""

from __future__ import annotations

from spinney.api import naming, quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required, unsupported
from spinney.embedded.apiserver.resources.validation.label_selectors import check_selector

_GROUPS = ("File", "None", "ReadWriteOnceWithFSType")


def check_driver(document: Json) -> list[FieldError]:
    """A CSIDriver."""
    spec = document.get("spec") or {}
    modes = ("Persistent", "Ephemeral")
    given = spec.get("volumeLifecycleModes") or ()
    found = [unsupported("spec.volumeLifecycleModes", mode, modes) for mode in given if mode not in modes]
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _GROUPS:
        found.append(unsupported("spec.fsGroupPolicy", policy, _GROUPS))
    seen: set[str] = set()
    for at, token in enumerate(spec.get("tokenRequests") or ()):
        where, audience, seconds = (
            f"spec.tokenRequests[{at}]",
            token.get("audience", ""),
            token.get("expirationSeconds"),
        )
        if audience in seen:
            found.append(duplicate(f"{where}.audience", audience))
        seen.add(audience)
        if seconds is not None and seconds < 600:
            detail = "may not specify a duration less than 10 minutes"
            found.append(invalid(f"{where}.expirationSeconds", seconds, detail))
    return found


def check_node(document: Json) -> list[FieldError]:
    """A CSINode."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, driver in enumerate((document.get("spec") or {}).get("drivers") or ()):
        where, name = f"spec.drivers[{at}]", driver.get("name", "")
        found += _name(name, f"{where}.name")
        if not driver.get("nodeID"):
            found.append(required(f"{where}.nodeID"))
        count = (driver.get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            found.append(invalid(f"{where}.allocatable.count", count, "must be greater than or equal to 0"))
        if name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return found


def _name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    return [invalid(path, name, problem) for problem in naming.subdomain_problems(name)]


def check_attachment(document: Json) -> list[FieldError]:
    """A VolumeAttachment."""
    spec = document.get("spec") or {}
    found = _name(spec.get("attacher", ""), "spec.attacher")
    if not spec.get("attacher"):
        # Two rules say the same.
        found *= 2
    source, node = spec.get("source") or {}, spec.get("nodeName", "")
    if bool(source.get("persistentVolumeName")) == bool(source.get("inlineVolumeSpec")):
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        found.append(required("spec.source", detail))
    return found + [invalid("spec.nodeName", node, problem) for problem in naming.subdomain_problems(node)]


def check_capacity(document: Json) -> list[FieldError]:
    """A CSIStorageCapacity."""
    name = document.get("storageClassName", "")
    found = check_selector(document.get("nodeTopology"), "nodeTopology")
    found += [invalid("storageClassName", name, problem) for problem in naming.subdomain_problems(name)]
    for key in ("capacity", "maximumVolumeSize"):
        if document.get(key) is not None and quantity.exact(document[key]) < 0:
            found.append(invalid(key, document[key], "must be greater than or equal to 0"))
    return found


def check_attributes(document: Json) -> list[FieldError]:
    """A VolumeAttributesClass."""
    found = _name(document.get("driverName", ""), "driverName")
    if not document.get("parameters"):
        found.append(required("parameters", "must contain at least one key/value pair"))
    return found

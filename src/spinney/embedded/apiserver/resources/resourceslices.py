"""ResourceSlices."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required, too_many
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.resourceclaims import check_driver, check_pool
from spinney.embedded.apiserver.resources.validation import names, pod_placement

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_DEVICES, _MEMBERS = 128, 32
_KINDS = ("int", "bool", "string", "version")
_VERSION = re.compile(
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9A-Za-z.-]+)?\Z"
)


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    pool = spec.get("pool") or {}
    errors = check_driver(spec.get("driver", ""), "spec.driver") + check_pool(pool.get("name", ""), "spec.pool.name")
    if pool.get("resourceSliceCount", 0) <= 0:
        count = pool.get("resourceSliceCount", 0)
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if pool.get("generation", 0) < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid("spec.pool.generation", pool["generation"], detail))
    errors += _place(spec)
    devices = spec.get("devices") or ()
    if len(devices) > _DEVICES:
        errors.append(too_many("spec.devices", len(devices), _DEVICES))
    seen: set[str] = set()
    for at, device in enumerate(devices):
        where, name = f"spec.devices[{at}]", device.get("name", "")
        errors += _device(device, where)
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a slice."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    pool = (spec.get("pool") or {}).get("name", "")
    if pool != (old_spec.get("pool") or {}).get("name", ""):
        errors.append(invalid("spec.pool.name", pool, "field is immutable"))
    for key in ("driver", "nodeName"):
        if spec.get(key) != old_spec.get(key):
            errors.append(invalid(f"spec.{key}", spec.get(key), "field is immutable"))
    return errors


def _place(spec: Json) -> list[FieldError]:
    """Check that exactly one field says where the devices are."""
    errors: list[FieldError] = []
    given = [key for key in _PLACES if spec.get(key)]
    if spec.get("nodeName"):
        name = spec["nodeName"]
        errors += [invalid("spec.nodeName", name, problem) for problem in naming.subdomain_problems(name)]
    elif spec.get("nodeName") == "":
        errors.append(invalid("spec.nodeName", "", "must be either unset or set to a non-empty string"))
    for at, term in enumerate((spec.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()):
        errors += pod_placement.check_node_term(term, f"spec.nodeSelector.nodeSelectorTerms[{at}]")
    for key in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(key) is False:
            errors.append(invalid(f"spec.{key}", False, "must be either unset or set to true"))
    if not given:
        errors.append(required("spec", _ONE))
    elif len(given) > 1:
        listed = ", ".join(f"`{key}`" for key in given)
        errors.append(invalid("spec", f"{{{listed}}}", f"{_ONE}, but multiple fields are set"))
    return errors


def _device(device: Json, path: str) -> list[FieldError]:
    name = device.get("name", "")
    errors = [invalid(f"{path}.name", name, problem) for problem in naming.label_problems(name)]
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MEMBERS:
        detail = f"the total number of attributes and capacities must not exceed {_MEMBERS}"
        errors.append(invalid(path, len(attributes) + len(capacity), detail))
    for key in sorted(attributes):
        where = f"{path}.attributes[{key}]"
        errors += _member(key, where) + _attribute(attributes[key], where)
    for key in sorted(capacity):
        errors += _member(key, f"{path}.capacity[{key}]")
    return errors


def _member(name: str, path: str) -> list[FieldError]:
    """Check the name of an attribute or a capacity."""
    domain, slash, rest = name.rpartition("/")
    errors = [invalid(path, domain, problem) for problem in naming.subdomain_problems(domain)] if slash else []
    return errors + names.check_identifier(rest, path)


def _attribute(attribute: Json, path: str) -> list[FieldError]:
    given = [kind for kind in _KINDS if attribute.get(kind) is not None]
    detail = "exactly one value must be specified"
    if not given:
        return [invalid(path, "", detail)]
    errors: list[FieldError] = []
    version = attribute.get("version")
    if version is not None and not _VERSION.match(version):
        errors.append(invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0"))
    if len(given) > 1:
        errors.append(invalid(path, attribute, detail))
    return errors


def _default(document: Json) -> None:
    for device in document.setdefault("spec", {}).get("devices") or ():
        device.pop("taints", None)


def _cells(document: Json, now: datetime) -> list[Any]:
    spec = cells.spec(document)
    pool = (spec.get("pool") or {}).get("name", "")
    return [cells.name(document), spec.get("nodeName", ""), spec.get("driver", ""), pool, cells.age(document, now)]


RESOURCE_SLICES = Resource(
    group="resource.k8s.io",
    kind="ResourceSlice",
    plural="resourceslices",
    namespaced=False,
    default=_default,
    has_generation=True,
    deletion=Deletion(returns_object=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Node,Driver,Pool,Age", _cells),
    selectable=("spec.nodeName", "spec.driver"),
)

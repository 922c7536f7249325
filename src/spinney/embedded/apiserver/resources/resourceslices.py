"""ResourceSlices."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, duplicate, invalid, required
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation.names import check_unchanged

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


def _check(document: Json) -> list[FieldError]:
    spec = document.get("spec") or {}
    errors = [] if spec.get("driver") else [required("spec.driver")]
    if not (spec.get("pool") or {}).get("name"):
        errors.append(required("spec.pool.name"))
    places = [key for key in _PLACES if spec.get(key)]
    if not places:
        errors.append(required("spec", _ONE))
    elif len(places) > 1:
        listed = ", ".join(f"`{key}`" for key in places)
        errors.append(invalid("spec", f"{{{listed}}}", f"{_ONE}, but multiple fields are set"))
    seen: set[str] = set()
    for at, device in enumerate(spec.get("devices") or ()):
        where, name = f"spec.devices[{at}]", device.get("name", "")
        errors += [invalid(f"{where}.name", name, problem) for problem in naming.label_problems(name)]
        errors += [duplicate(where, name)] if name in seen else []
        seen.add(name)
    return errors


def _check_update(new: Json, old: Json) -> list[FieldError]:
    """Check an update of a slice."""
    return check_unchanged(new.get("spec") or {}, old.get("spec") or {}, ("driver", "nodeName"), "spec.")


def _default(document: Json) -> None:
    for device in document.setdefault("spec", {}).get("devices") or ():
        device.pop("taints", None)


RESOURCE_SLICES = Resource(
    group="resource.k8s.io",
    kind="ResourceSlice",
    plural="resourceslices",
    namespaced=False,
    default=_default,
    has_generation=True,
    deletion=Deletion(returns_object=True),
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Node,Driver,Pool,Age", cells.members("spec.nodeName", "spec.driver", "spec.pool.name")),
    selectable=("spec.nodeName", "spec.driver"),
)

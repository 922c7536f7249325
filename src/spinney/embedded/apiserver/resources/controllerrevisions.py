"""ControllerRevisions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError, invalid, required
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation.rollouts import NOT_NEGATIVE


def _check(document: Json) -> list[FieldError]:
    if not document.get("data"):
        return [required("data", "data is mandatory")]
    number = document.get("revision", 0)
    return [invalid("revision", number, NOT_NEGATIVE)] if number < 0 else []


def _check_update(new: Json, old: Json) -> list[FieldError]:
    return [] if new.get("data") == old.get("data") else [invalid("data", new.get("data"), "field is immutable")]


def _cells(document: Json, now: datetime) -> list[Any]:
    owners = document["metadata"].get("ownerReferences") or ()
    owner = next((entry for entry in owners if entry.get("controller")), None)
    controller = "<none>"
    if owner:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        controller = f"{'.'.join(filter(None, (owner['kind'], group))).lower()}/{owner['name']}"
    return [cells.name(document), controller, document.get("revision", 0), cells.age(document, now)]


CONTROLLER_REVISIONS = Resource(
    group="apps",
    kind="ControllerRevision",
    plural="controllerrevisions",
    checks=Checks(object=_check, update=_check_update),
    table=Table("Name,Controller,Revision,Age", _cells),
)

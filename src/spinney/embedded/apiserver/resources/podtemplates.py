"""PodTemplates."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.record import Checks, Resource, Table
from spinney.embedded.apiserver.resources.validation import pod_specs
from spinney.embedded.apiserver.resources.warnings import template_warnings


def _default(document: Json) -> None:
    """A PodTemplate."""
    default_template(document)


def _check(document: Json) -> list[FieldError]:
    """A PodTemplate."""
    return pod_specs.check_template(document.get("template") or {}, "template")


def _cells(document: Json, now: datetime) -> list[Any]:
    """A PodTemplate."""
    labels = ((document.get("template") or {}).get("metadata") or {}).get("labels") or {}
    shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"
    return [cells.name(document), *cells.containers(document), shown]


POD_TEMPLATES = Resource(
    kind="PodTemplate",
    plural="podtemplates",
    default=_default,
    has_generation=True,
    returns_deleted_object=True,
    checks=Checks(object=_check),
    warnings=template_warnings("template"),
    table=Table("Name,Containers,Images,Pod Labels", _cells),
)

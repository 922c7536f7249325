"""PodTemplates."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import FieldError
from spinney.embedded.apiserver.resources import cells
from spinney.embedded.apiserver.resources.pod_defaults import default_template
from spinney.embedded.apiserver.resources.pod_warnings import template_warnings
from spinney.embedded.apiserver.resources.record import Checks, Deletion, Resource, Table
from spinney.embedded.apiserver.resources.validation import pod_specs


def _default(document: Json) -> None:
    default_template(document)


def _check(document: Json) -> list[FieldError]:
    return pod_specs.check_template(document.get("template") or {}, "template")


def _cells(document: Json, now: datetime) -> list[Any]:
    labels = ((document.get("template") or {}).get("metadata") or {}).get("labels") or {}
    shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"
    return [cells.name(document), *cells.containers(document), shown]


POD_TEMPLATES = Resource(
    kind="PodTemplate",
    plural="podtemplates",
    default=_default,
    has_generation=True,
    deletion=Deletion(returns_object=True),
    checks=Checks(object=_check),
    warnings=template_warnings("template"),
    table=Table("Name,Containers,Images,Pod Labels", _cells),
)

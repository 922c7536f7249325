"""apiextensions.k8s.io: definitions of custom resources as they are read; `api.crd` generates ours."""

from __future__ import annotations

from typing import ClassVar

from spinney.api.meta import Condition, Json, Object, Resource, Struct


class Names(Struct, frozen=True):
    """The names of a kind: singular, plural, short."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class PrinterColumn(Struct, frozen=True):
    """A column of `kubectl get`."""

    name: str = ""
    type: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""


class ScaleSubresource(Struct, frozen=True):
    """Where the scale subresource finds its numbers."""

    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str = ""


class Subresources(Struct, frozen=True):
    """Which subresources a version has."""

    status: Json | None = None
    scale: ScaleSubresource | None = None


class Version(Struct, frozen=True):
    """One version of a kind."""

    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    schema: Json | None = None
    subresources: Subresources = Subresources()
    additional_printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[Json, ...] = ()


class CustomResourceDefinitionSpec(Struct, frozen=True):
    """A kind and its versions."""

    group: str = ""
    names: Names = Names()
    scope: str = ""
    versions: tuple[Version, ...] = ()
    conversion: Json | None = None


class CustomResourceDefinitionStatus(Struct, frozen=True):
    """Whether the kind is served."""

    conditions: tuple[Condition, ...] = ()
    accepted_names: Names = Names()
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(Object, frozen=True):
    """A custom kind."""

    resource: ClassVar[Resource] = Resource(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    )

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()

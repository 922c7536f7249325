"""Ingresses, their classes and endpoint slices."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.errors import FieldError, invalid, required, unsupported

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def check_ingress(document: Json) -> list[FieldError]:
    """An Ingress."""
    spec = document.get("spec") or {}
    if spec.get("rules") or spec.get("defaultBackend"):
        return []
    return [invalid("spec", None, "either `defaultBackend` or `rules` must be specified")]


def check_ingress_class(document: Json) -> list[FieldError]:
    """An IngressClass."""
    return [] if (document.get("spec") or {}).get("controller") else [required("spec.controller")]


def check_endpoint_slice(document: Json) -> list[FieldError]:
    """An EndpointSlice."""
    kind = document.get("addressType")
    if not kind:
        return [required("addressType")]
    return [] if kind in _ADDRESS_TYPES else [unsupported("addressType", kind, _ADDRESS_TYPES)]

"""Kubernetes' protobuf bodies, for the built-in kinds that Go clients send in no other form."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.errors import unsupported_media_type


def decode(body: bytes) -> Json:
    """The object in a protobuf envelope."""
    raise unsupported_media_type(("application/json", "application/yaml"))

"""Settings of the platform operator."""

from __future__ import annotations

import msgspec

from spinney.api.image import default_image
from spinney.api.meta import Struct


class PlatformSettings(Struct, frozen=True):
    """Settings that Config does not have."""

    # The default image of services.
    image: str = msgspec.field(default_factory=default_image)
    # URLs of webhooks by process, where the API server cannot reach Services.
    webhook_urls: dict[str, str] = {}
    # Namespaces about whose pods no webhook asks, beside kube-system and our own.
    left_out_namespaces: tuple[str, ...] = ()

"""Settings of the platform operator."""

from __future__ import annotations

import msgspec

from spinney.api.image import default_image
from spinney.api.meta import Json, Struct


class ShardSettings(Struct, frozen=True):
    """A SchedulingShard to create."""

    name: str = "default"
    spec: Json = {}


class PlatformSettings(Struct, frozen=True):
    """Settings that Config does not have."""

    # The default image of services.
    image: str = msgspec.field(default_factory=default_image)
    # URLs of webhooks by process, where the API server cannot reach Services.
    webhook_urls: dict[str, str] = {}
    # Namespaces about whose pods no webhook asks, beside kube-system and our own.
    left_out_namespaces: tuple[str, ...] = ()
    # Keep others from reaching reservation pods.
    network_policies: bool = False
    # Created at start where given: the spec of Config, shards, and the resources of the default queues.
    config: Json | None = None
    shards: tuple[ShardSettings, ...] = ()
    queues: Json | None = None
    # The ClusterRole that owns them, so that they go with the installation.
    owner: str = ""

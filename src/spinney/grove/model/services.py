"""The headless Service of a set replica."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Service
from spinney.api.meta import Json
from spinney.grove.model import names
from spinney.grove.model.layout import Layout
from spinney.grove.model.metadata import replica_metadata


def service_body(layout: Layout) -> Json:
    """The headless Service that gives a replica's pods their DNS names."""
    name = names.replica(layout.pcs.name, layout.index)
    return {
        "metadata": replica_metadata(layout, name, labels.HEADLESS_SERVICE),
        "spec": {
            "clusterIP": "None",
            "selector": {
                labels.MANAGED_BY: labels.GROVE_OPERATOR,
                labels.PART_OF: layout.pcs.name,
                labels.SET_REPLICA_INDEX: str(layout.index),
            },
            "publishNotReadyAddresses": _publish_not_ready(layout),
        },
    }


def service_patch(layout: Layout, stored: Service) -> Json:
    """What a stored Service must change; empty where it is as wanted."""
    publish = _publish_not_ready(layout)
    if stored.spec.publish_not_ready_addresses == publish:
        return {}
    return {"spec": {"publishNotReadyAddresses": publish}}


def _publish_not_ready(layout: Layout) -> bool:
    config = layout.pcs.spec.template.headless_service_config
    return config.publish_not_ready_addresses if config else True

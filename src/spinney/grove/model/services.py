"""The headless Service of a set replica."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Service
from spinney.api.meta import Json
from spinney.grove.model import names
from spinney.grove.model.layout import Layout
from spinney.grove.model.metadata import name_of, replica_metadata
from spinney.kube.desired import Drift, Wanted


def wanted_service(layout: Layout, stored: Service | None) -> Wanted:
    """The headless Service that gives a replica's pods their DNS names."""
    spec: Json = {"publishNotReadyAddresses": _publish_not_ready(layout)}
    if stored is not None:
        metadata = name_of(stored)
    else:
        name = names.replica(layout.pcs.name, layout.index)
        metadata = replica_metadata(layout, name, labels.HEADLESS_SERVICE)
        selector = {
            labels.MANAGED_BY: labels.GROVE_OPERATOR,
            labels.PART_OF: layout.pcs.name,
            labels.SET_REPLICA_INDEX: str(layout.index),
        }
        spec = {"clusterIP": "None", "selector": selector, **spec}
    return Wanted(Service.resource, {"metadata": metadata, "spec": spec}, Drift.PATCH_NAMED)


def _publish_not_ready(layout: Layout) -> bool:
    config = layout.pcs.spec.template.headless_service_config
    return config.publish_not_ready_addresses if config else True

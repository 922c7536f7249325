"""PodGang → the resources of one scheduler; one module per scheduler.

What is listed here is what a backend of another package imports, beside the tests in `spinney.backends.conformance`.
"""

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.owners import controller_reference
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.building import (
    edited_pod,
    fitted_name,
    may_read,
    may_read_settings,
    may_write,
    owned_metadata,
)
from spinney.backends.capabilities import Capabilities, Feature, Loss
from spinney.backends.interface import (
    Backend,
    Cluster,
    Configured,
    Problem,
    Queued,
    Readiness,
    Remembering,
    Retrying,
    Setting,
    TopologyAware,
    Translation,
)
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist, condition_message
from spinney.backends.required_features import gang_losses, packed, packed_whole
from spinney.backends.served import Served
from spinney.kube.desired import Drift, Wanted
from spinney.kube.runtime import Rule

__all__ = [
    "Backend",
    "Capabilities",
    "Cluster",
    "ClusterTopologyBinding",
    "Configured",
    "Drift",
    "Feature",
    "Json",
    "Loss",
    "Pod",
    "PodCliqueSet",
    "PodGang",
    "Problem",
    "QueueKeys",
    "Queued",
    "Readiness",
    "Remembering",
    "Resource",
    "Retrying",
    "Rule",
    "Served",
    "Setting",
    "TopologyAware",
    "Translation",
    "Wanted",
    "all_exist",
    "condition_message",
    "controller_reference",
    "edited_pod",
    "fitted_name",
    "gang_losses",
    "may_read",
    "may_read_settings",
    "may_write",
    "owned_metadata",
    "packed",
    "packed_whole",
]

"""What a write passes on its way into the store."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.embedded.apiserver.access.rbac import Authorizer
from spinney.embedded.apiserver.admission.webhooks import Admission
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.resources.pod_spec_cache import PodSpecs
from spinney.embedded.apiserver.resources.served_kinds import Kinds


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The parts of the server that create, update, patch and delete need."""

    core: Core
    kinds: Kinds
    authorizer: Authorizer
    admission: Admission
    pod_specs: PodSpecs

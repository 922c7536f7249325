"""What the operator is told at start: upstream's configuration file, and what we add to it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from spinney.api.groveconfig import OperatorConfiguration, TopologyAwareScheduling

_IMAGE_VARIABLE = "GROVE_INIT_CONTAINER_IMAGE"
_ACCOUNT_VARIABLE = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"


class GroveConfiguration(OperatorConfiguration, frozen=True, forbid_unknown_fields=True):
    """Upstream's file with one other default: topology constraints are accepted unless they are switched off."""

    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling(enabled=True)


@dataclass(frozen=True)
class Settings:
    """The operator's settings."""

    config: OperatorConfiguration = field(default_factory=GroveConfiguration)
    # The image whose `spinney initc` keeps the start-up order.
    init_image: str = field(default_factory=lambda: os.environ.get(_IMAGE_VARIABLE, "spinney:latest"))
    # Who the operator is to the API server; the authorizer lets this user change what is managed.
    user: str = field(default_factory=lambda: os.environ.get(_ACCOUNT_VARIABLE, ""))
    # How long changes of pods are gathered before a status is written.
    status_window: float = 0.1

    @property
    def topology_aware(self) -> bool:
        """Whether topology constraints are accepted."""
        return self.config.topology_aware_scheduling.enabled

    @property
    def mnnvl(self) -> bool:
        """Whether ComputeDomains are made."""
        return self.config.network.auto_mnnvl_enabled

    @property
    def default_profile(self) -> str:
        """The scheduler of sets that name none."""
        return self.config.scheduler.default_profile_name

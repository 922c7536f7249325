"""Settings of an operator with multi-node NVLink."""

from __future__ import annotations

from spinney.api.groveconfig import Network
from spinney.grove.settings import GroveConfiguration, Settings

MNNVL = Settings(config=GroveConfiguration(network=Network(auto_mnnvl_enabled=True)))

"""The platform operator, which deploys components of the registry."""

from __future__ import annotations

from spinney.app.components import load
from spinney.services.platform.component import component

COMPONENT = component(load)

"""The platform operator with the table of components that it deploys."""

from __future__ import annotations

from spinney.app.components import load
from spinney.services.platform.component import component

COMPONENT = component(load)

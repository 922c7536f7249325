"""`spinney run dashboard`: what-if questions may name workloads, which controllers of a simulated cluster work out."""

from __future__ import annotations

from spinney.sim.expansion import expand
from spinney.web.component import component

COMPONENT = component(expand)

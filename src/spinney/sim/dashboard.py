"""`spinney run dashboard`: what-if questions may name workloads, which controllers of a simulated cluster work out."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.answers.cluster import Cluster
from spinney.answers.whatif.applying import Created
from spinney.api.meta import Json
from spinney.web.component import component


def _expand(cluster: Cluster, documents: Sequence[Json]) -> Created:
    """As `expansion.expand`, imported with the first question: a simulated cluster doubles the start."""
    from spinney.sim.expansion import expand  # noqa: PLC0415  # as said

    return expand(cluster, documents)


COMPONENT = component(_expand)

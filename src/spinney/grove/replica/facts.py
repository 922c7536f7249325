"""What the plan of a set replica reads besides the replica."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from spinney.api.core import Node
from spinney.backends.registry import Choice
from spinney.backends.served import Served
from spinney.grove.model.pod_names import PodNames


@dataclass(frozen=True)
class Facts:
    """The set's backend, the APIs that the cluster serves, names for new pods, the time, and the nodes."""

    choice: Choice
    served: Served
    init_image: str
    # The gates of all backends but the chosen one.
    other_gates: frozenset[str]
    pod_names: PodNames
    now: datetime
    nodes: Iterable[Node] = ()

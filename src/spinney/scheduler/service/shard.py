"""The part of a cluster that one scheduler serves."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.api import labels
from spinney.api.meta import Object


@dataclass(frozen=True)
class Shard:
    """Nodes, queues and groups with the label of a node pool; for an empty pool, those without the label."""

    scheduler_name: str = labels.KAI_SCHEDULER
    pool_label: str = labels.NODE_POOL
    pool: str = ""

    @property
    def name(self) -> str:
        """The shard's name, unique in a cluster."""
        return f"{self.scheduler_name}-{self.pool}" if self.pool else self.scheduler_name

    def holds(self, item: Object) -> bool:
        """Whether an object belongs to the shard."""
        return item.metadata.labels.get(self.pool_label, "") == self.pool

"""What the endpoints ask for: rows that are kept current, and answers that are computed on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spinney.answers.model import Capacity, Topology, Unread, WhatIf, Workload, WorkloadTree
from spinney.answers.whatif.changes import Change
from spinney.web.board import Board
from spinney.web.history import History


class Source(Protocol):
    """Where answers come from."""

    board: Board
    history: History

    def now(self) -> str:
        """The time, as answers write it."""

    async def ready(self) -> None:
        """Wait until there is something to show."""

    def missing(self) -> tuple[Unread, ...]:
        """What the server itself could not read."""

    async def tree(self, row: Workload) -> WorkloadTree | None:
        """A workload with its parts; None where it is gone."""

    async def capacity(self) -> Capacity:
        """Idle GPUs by reason."""

    async def topology(self) -> Topology:
        """Levels and domains."""

    async def what_if(self, changes: Sequence[Change]) -> WhatIf:
        """What would be different with some changes; a ChangeError where one of them makes no sense."""

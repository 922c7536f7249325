"""Claimed devices: a claim that several tasks share is counted once, and keeps them on one node."""

from __future__ import annotations

import numpy as np

from spinney.scheduler.config import PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.state import status as st
from spinney.scheduler.state.nodes import Mask, Rows
from spinney.scheduler.state.refusal import Code, Refusal
from spinney.scheduler.state.tasks import Task

# Kubernetes' limit on `status.reservedFor` of a claim.
MOST_CONSUMERS = 256


def install(cycle: Cycle, _: PluginConfig) -> None:
    """Send tasks to where their shared claims already are, as long as these take more consumers."""

    def mask(task: Task, rows: Rows) -> tuple[Mask, Refusal] | None:
        result: Mask | None = None
        for claim in task.cls.claims:
            if not claim.shared:
                continue
            homes = [
                holder.node
                for holder in cycle.state.holders.get(claim.claim, {}).values()
                if holder is not task and holder.node >= 0 and holder.status & st.ACTIVE
            ]
            if len(homes) + claim.other_consumers >= MOST_CONSUMERS:
                return np.zeros(len(rows), dtype=np.bool_), Refusal(Code.CLAIM_CONSUMERS, claim.claim)
            if homes:
                here = np.isin(rows, homes)
                result = here if result is None else result & here
        return None if result is None else (result, Refusal(Code.DEVICES))

    cycle.hooks.task_masks.append(mask)

"""A bind in progress, and its steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import structlog

from spinney.api.core import Node, Pod
from spinney.api.kai import BindRequest
from spinney.kube.errors import ApiError, ConnectionLost

_log = structlog.get_logger("spinney.binder")


class BindError(Exception):
    """The bind fails; the message goes to the pod's owner."""


@dataclass
class Bind:
    """A BindRequest that is being carried out."""

    request: BindRequest
    pod: Pod
    node: Node
    # GPU UUIDs held for the pod, in the order of the request's GPU groups.
    devices: list[str] = field(default_factory=list)

    @property
    def target(self) -> str:
        """The selected node."""
        return self.request.spec.selected_node


class Step(Protocol):
    """A step before the binding, undone if the bind fails later."""

    def concerns(self, bind: Bind) -> bool:
        """Whether this bind needs the step."""

    async def do(self, bind: Bind) -> None:
        """Take the step; idempotent. Raises `BindError` where it cannot."""

    async def undo(self, bind: Bind) -> None:
        """Undo what `do` did, even if it failed half-way."""


class Finish(Step, Protocol):
    """The last step, which binds the pod."""

    async def bound_to(self, bind: Bind) -> str:
        """The node that the pod has, read from the API server; empty where it has none or is gone."""


async def carry_out(bind: Bind, steps: tuple[Step, ...], finish: Finish) -> None:
    """Take all steps that the bind needs, then bind; after a failure, undo them in reverse order.

    Without an answer nothing is undone: the pod may be bound, which the next attempt finds out. Nor is it where another
    binder that acts as leader, too, was faster: the bound pod needs what the steps have done.
    """
    begun: list[Step] = []
    try:
        for step in (*steps, finish):
            if step.concerns(bind):
                begun.append(step)
                await step.do(bind)
    except ConnectionLost:
        raise
    except Exception:
        node = await finish.bound_to(bind)
        if node == bind.target:
            return
        for step in reversed(begun) if not node else ():
            await _undo(step, bind)
        raise


async def _undo(step: Step, bind: Bind) -> None:
    """Undo a step; an error is logged, so that the other steps are undone as well."""
    try:
        await step.undo(bind)
    except (BindError, ApiError, ConnectionLost, TimeoutError) as error:
        _log.warning("bind.not_undone", step=type(step).__name__, pod=bind.pod.name, error=str(error))

"""One bind in progress, and the steps it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import structlog

from spinney.api.core import Node, Pod
from spinney.api.kai import BindRequest
from spinney.kube.errors import ApiError, ConnectionLost

_log = structlog.get_logger("spinney.binder")


class BindError(Exception):
    """The bind cannot go on; the message tells the pod's owner why."""


@dataclass
class Bind:
    """A decision about one pod, while it is carried out."""

    request: BindRequest
    pod: Pod
    node: Node
    # GPU UUIDs held for the pod, in the order of the request's GPU groups.
    devices: list[str] = field(default_factory=list)

    @property
    def target(self) -> str:
        """The node that was chosen."""
        return self.request.spec.selected_node


class Step(Protocol):
    """Something that has to be done before a pod can be bound, and undone where the bind fails later."""

    def concerns(self, bind: Bind) -> bool:
        """Whether this bind needs the step at all."""

    async def do(self, bind: Bind) -> None:
        """Prepare; done twice it changes nothing more. Raises `BindError` where it cannot."""

    async def undo(self, bind: Bind) -> None:
        """Take back what `do` did, also where it stopped half-way."""


async def carry_out(bind: Bind, steps: tuple[Step, ...], finish: Step) -> None:
    """All steps that concern the bind, then the binding itself; a failure takes back what was done, in reverse.

    Where no answer came the pod may be bound by now, and need all of it: the next try finds out.
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
        for step in reversed(begun):
            await _taken_back(step, bind)
        raise


async def _taken_back(step: Step, bind: Bind) -> None:
    """One step that cannot be undone must not keep the others from it; the next try finds what it left."""
    try:
        await step.undo(bind)
    except (BindError, ApiError, ConnectionLost, TimeoutError) as error:
        _log.warning("bind.not_undone", step=type(step).__name__, pod=bind.pod.name, error=str(error))

"""Fair shares of queues that need not exist: the question and answer of upstream's fair-share simulator."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import msgspec

from spinney.api.meta import Struct
from spinney.scheduler.share.fair_share import fair_shares
from spinney.scheduler.state.queues import Queues
from spinney.scheduler.state.specs import UNLIMITED, QueueSpec, Share

# What a queue asks for that does not say.
_EVERYTHING = 100_000.0


class Total(Struct, frozen=True):
    """What is to be divided."""

    gpu: float = msgspec.field(default=0.0, name="GPU")
    cpu: float = msgspec.field(default=0.0, name="CPU")
    memory: float = msgspec.field(default=0.0, name="Memory")


class AskedShare(Struct, frozen=True):
    """One resource of a queue: quota, limit, weight and what it asks for."""

    deserved: float = 0.0
    max_allowed: float = UNLIMITED
    over_quota_weight: float = 1.0
    request: float = _EVERYTHING

    def share(self) -> Share:
        """The same as a queue has it."""
        return Share(self.deserved, self.max_allowed, self.over_quota_weight)


_UNLIMITED = AskedShare(deserved=UNLIMITED)


class AskedShares(Struct, frozen=True):
    """The resources of a queue; CPU and memory are unlimited unless given."""

    gpu: AskedShare = AskedShare()
    cpu: AskedShare = _UNLIMITED
    memory: AskedShare = _UNLIMITED


class AskedQueue(Struct, frozen=True):
    """A queue of the question; one that names a parent divides what that one gets."""

    uid: str
    name: str = ""
    parent_queue: str = ""
    priority: int = 0
    creation_timestamp: datetime | None = None
    resource_share: AskedShares = AskedShares()


class Question(Struct, frozen=True):
    """What there is, and who wants it."""

    total_resource: Total = Total()
    queues: tuple[AskedQueue, ...] = ()


def simulate(question: Question) -> dict[str, dict[str, float]]:
    """The fair share of each queue, as the scheduler would work it out without a past."""
    asked_queues = {queue.uid: queue for queue in question.queues}
    specs = {uid: _spec(queue, number) for number, (uid, queue) in enumerate(asked_queues.items())}
    queues = Queues(
        {uid: spec if spec.parent in asked_queues else replace(spec, parent="") for uid, spec in specs.items()}
    )
    shares = [asked_queues[name].resource_share for name in queues.names]
    requested = [[share.cpu.request, share.memory.request, share.gpu.request] for share in shares]
    total = question.total_resource
    fair = fair_shares(queues, [total.cpu, total.memory, total.gpu], requested, usage_weight=0.0)
    return {
        name: {"gpu": gpu, "cpu": cpu, "memory": memory}
        for name, (cpu, memory, gpu) in zip(queues.names, fair, strict=True)
    }


def _spec(queue: AskedQueue, number: int) -> QueueSpec:
    created = queue.creation_timestamp.timestamp() if queue.creation_timestamp is not None else float(number)
    shares = queue.resource_share
    return QueueSpec(
        queue.uid,
        queue.parent_queue,
        queue.priority,
        created,
        cpu=shares.cpu.share(),
        memory=shares.memory.share(),
        gpu=shares.gpu.share(),
    )

"""The faults: what can go wrong at one write, and storms of several faults that are drawn from a seed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum

from spinney.kube.client.transport import Request, Response
from spinney.kube.errors import ConnectionLost


class Kind(StrEnum):
    """What goes wrong at one write."""

    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"
    ANSWER_LOST = "answer-lost"
    REFUSED = "refused"
    TIMED_OUT = "timed-out"
    # A user deletes, scales or flaps something right after the write.
    USER = "user"


# What a storm's second leaders, jumps of clocks, late watch events and late kubelets are counted as.
SECOND_LEADER = "second leader"
CLOCK_JUMPED = "clock jumped"
DELAYED = "delayed"
LATE_KUBELET = "late"

# After these the cluster must end exactly as it would have without them.
HARMLESS = (Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.ANSWER_LOST, Kind.REFUSED, Kind.TIMED_OUT)

_STATUS = '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s","reason":"%s","code":%d}'
_TIMEOUT = _STATUS % ("the server did not answer in time", "Timeout", 504)


def refusal(request: Request, number: int) -> Response:
    """The answer to a refused write, which had no effect: too many requests, an internal error, or a conflict."""
    code, reason, headers = (
        (429, "TooManyRequests", {"retry-after": "1"}),
        (500, "InternalError", {}),
        # Only a write to an existing object can be in conflict with another.
        (409, "Conflict", {}) if request.method in ("PATCH", "PUT") else (500, "InternalError", {}),
    )[number // 3 % 3]
    return Response(code, (_STATUS % (f"injected {reason}", reason, code)).encode(), headers)


def lost_answer(kind: Kind) -> Response:
    """What a client sees of a write that had its effect, where the answer does not say so."""
    if kind is Kind.ANSWER_LOST:
        raise ConnectionLost("connection reset")
    return Response(504, _TIMEOUT.encode())


@dataclass(frozen=True)
class Storm:
    """Random faults from a seed; each rate is the probability per watch event or per write."""

    seed: int
    # Watch events of one kind, or of one whole process, are delayed by up to `max_delay` seconds.
    max_delay: float = 0.0
    delay_kind: float = 0.0
    delay_process: float = 0.0
    # The watch breaks and loses the event; the version to continue from is gone (410); events come twice.
    broken: float = 0.0
    expired: float = 0.0
    replayed: float = 0.0
    # Per write of a component.
    crash: float = 0.0
    refused: float = 0.0
    unanswered: float = 0.0
    # Per write: webhooks refuse connections, a process's clock jumps, a second copy of a process acts for a while,
    # kubelets report late.
    webhooks: float = 0.0
    clock: float = 0.0
    second_leader: float = 0.0
    slow_kubelet: float = 0.0
    # Per write: users delete and scale, nodes become unready for a while.
    user: float = 0.0
    flap: float = 0.0

    def __str__(self) -> str:
        return " ".join(f"{name} {value}" for name, value in asdict(self).items() if value)


CALM = Storm(0)

# Groups of faults that seeds take in turn: first one kind each, then many kinds at once.
_GROUPS: tuple[dict[str, float], ...] = (
    {"delay_kind": 0.1},
    {"delay_process": 0.02, "replayed": 0.05},
    {"broken": 0.05, "expired": 0.05},
    {"crash": 0.03, "delay_kind": 0.05},
    {"refused": 0.05, "unanswered": 0.05},
    {"webhooks": 0.03, "slow_kubelet": 0.8},
    {"clock": 0.1, "crash": 0.02},
    {"second_leader": 0.1},
    {"user": 0.03, "crash": 0.02},
    {"flap": 0.02, "delay_process": 0.01},
    dict.fromkeys(
        ("crash", "refused", "unanswered", "webhooks", "broken", "expired", "delay_kind", "second_leader"), 0.01
    ),
    dict.fromkeys(("crash", "refused", "unanswered", "user", "flap", "clock", "slow_kubelet", "replayed"), 0.01),
)


def storm(seed: int) -> Storm:
    """The storm of a seed: its group of faults, and how long its delays are."""
    rates = _GROUPS[seed % len(_GROUPS)]
    assert rates.keys() <= {each.name for each in fields(Storm)}
    return Storm(seed, max_delay=(1.0, 5.0, 20.0)[seed // len(_GROUPS) % 3], **rates)

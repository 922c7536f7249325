"""Retries: which requests are sent again after a refusal or a lost response, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from spinney.api.numbers import whole_number
from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, Response
from spinney.kube.errors import ConnectionLost, NotSent, Untrusted


class Repeat(Enum):
    """Whether a request may be sent twice."""

    ALWAYS = "a second time changes nothing"
    UNLESS_DONE = "only where the first try surely did nothing"
    NEVER = "the caller wants to hear of it"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Number and delay of attempts: the delay doubles from `first` to `longest`, plus up to half of it at random."""

    attempts: int = 6
    first: float = 0.1
    longest: float = 5.0

    def delay(self, attempt: int, chance: Chance) -> float:
        """How long to wait after a failed attempt (counted from 0)."""
        return chance.jitter(min(self.first * 2 ** min(attempt, 30), self.longest), 0.5)


async def send_with_retries(
    send: Callable[[Request], Awaitable[Response]], request: Request, repeat: Repeat, backoff: Backoff, chance: Chance
) -> Response:
    """The response to a request, with retries where they are safe and useful."""
    for attempt in range(backoff.attempts):
        last = attempt + 1 == backoff.attempts
        retry_after = 0.0
        try:
            response = await send(request)
            if last or not _refused(response, repeat):
                return response
            retry_after = _retry_after(response)
        except ConnectionLost as error:
            if last or not _repeatable(error, repeat):
                raise
        await asyncio.sleep(max(retry_after, backoff.delay(attempt, chance)))
    raise AssertionError("a back-off has at least one attempt")


def _repeatable(error: ConnectionLost, repeat: Repeat) -> bool:
    if repeat is Repeat.NEVER or isinstance(error, Untrusted):
        return False
    return repeat is Repeat.ALWAYS or isinstance(error, NotSent)


def _refused(response: Response, repeat: Repeat) -> bool:
    """Whether the server refused the request for now, and a retry is safe."""
    if repeat is Repeat.NEVER or response.status < 429:
        return False
    if response.status == 429:
        return True
    # A 5xx may come after the deed; one with Retry-After comes from a server that turned the request away.
    return response.status >= 500 and (repeat is Repeat.ALWAYS or "retry-after" in response.headers)


def _retry_after(response: Response) -> float:
    return min(float(whole_number(response.headers.get("retry-after", "")) or 0), 60.0)

"""When a request is made again: what a server refused for now, and what got lost where a second try does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, Response
from spinney.kube.errors import ConnectionLost, NotSent, Untrusted


class Repeat(Enum):
    """Whether a request may be made twice."""

    ALWAYS = "a second time changes nothing"
    UNLESS_DONE = "only where the first try surely did nothing"
    NEVER = "the caller wants to hear of it"


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often and how fast: the delay doubles from `first` to `longest`, and up to half of it is added by chance."""

    attempts: int = 6
    first: float = 0.1
    longest: float = 5.0

    def delay(self, attempt: int, chance: Chance) -> float:
        """How long to wait after a failed attempt (counted from 0)."""
        return chance.jitter(min(self.first * 2 ** min(attempt, 30), self.longest), 0.5)


async def send_with_retries(
    send: Callable[[Request], Awaitable[Response]], request: Request, repeat: Repeat, backoff: Backoff, chance: Chance
) -> Response:
    """The answer to a request, asked for again while that is of use and does no harm."""
    for attempt in range(backoff.attempts):
        last = attempt + 1 == backoff.attempts
        asked = 0.0
        try:
            response = await send(request)
            if last or not _refused(response, repeat):
                return response
            asked = _retry_after(response)
        except ConnectionLost as error:
            if last or not _repeatable(error, repeat):
                raise
        await asyncio.sleep(max(asked, backoff.delay(attempt, chance)))
    raise AssertionError("a back-off has at least one attempt")


def _repeatable(error: ConnectionLost, repeat: Repeat) -> bool:
    if repeat is Repeat.NEVER or isinstance(error, Untrusted):
        return False
    return repeat is Repeat.ALWAYS or isinstance(error, NotSent)


def _refused(response: Response, repeat: Repeat) -> bool:
    """Whether the server did nothing but may yet."""
    if repeat is Repeat.NEVER or response.status < 429:
        return False
    if response.status == 429:
        return True
    # A 5xx may come after the deed; one with Retry-After comes from a server that turned the request away.
    return response.status >= 500 and (repeat is Repeat.ALWAYS or "retry-after" in response.headers)


def _retry_after(response: Response) -> float:
    given = response.headers.get("retry-after", "")
    return min(float(given), 60.0) if given.isdecimal() else 0.0

"""What an examination finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from spinney.api.meta import Struct
from spinney.kube.client.client import Client
from spinney.kube.clock import Clock

_MOST_SHOWN = 3

Status = Literal["ok", "note", "warning", "problem", "unknown"]


class Finding(Struct, frozen=True, omit_defaults=False):
    """One line: what was looked at, how it is, and what to do. `unknown` is what we may not read."""

    check: str
    status: Status
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Target:
    """The cluster that is examined, and the namespace of the installation."""

    client: Client
    clock: Clock
    namespace: str


Check = Callable[[Target], Awaitable[list[Finding]]]


def shortened(names: list[str]) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(names[:_MOST_SHOWN])
    return f"{shown} and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else shown

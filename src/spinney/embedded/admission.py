"""Admission webhooks: who wants to see a write before it is kept."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from spinney.api.meta import Json
from spinney.embedded.calls import Call
from spinney.embedded.kinds import Kind

if TYPE_CHECKING:
    from spinney.embedded.server import ApiServer


class Operation(StrEnum):
    """What a webhook can be called for."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Admission:
    """The configured webhooks."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def concerns(self, kind: Kind) -> bool:
        """Whether any webhook may want to see this kind."""
        return False

    async def mutate(self, call: Call, operation: Operation, new: Json, old: Json | None) -> Json:
        """The object as the mutating webhooks leave it."""
        return new

    async def validate(self, call: Call, operation: Operation, new: Json, old: Json | None) -> None:
        """Ask the validating webhooks."""

    async def validate_delete(self, call: Call, operation: Operation, old: Json) -> None:
        """Ask all webhooks about a deletion."""

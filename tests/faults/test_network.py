"""The network of the fault search."""

from __future__ import annotations

from collections.abc import AsyncIterator

from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, Response, User
from spinney.sim.faults.network import Connection, Network
from tests.virtual_time import virtual


class InParts:
    """An API server that answers a list in parts."""

    async def handle(self, request: Request) -> Response:
        """The list."""

        async def parts() -> AsyncIterator[bytes]:
            yield b'{"items":['
            yield b"]}"

        return Response(200, stream=parts())


@virtual
async def test_a_large_list_was_carried_as_a_watch() -> None:
    """Only watches are delayed, cut and replayed event by event; a list arrives whole."""
    connection = Connection(InParts(), User("u"), "p", Network(Chance(1), 0.01))
    answer = await connection.send(Request("GET", "/api/v1/pods"))
    assert (answer.body, answer.stream) == (b'{"items":[]}', None)

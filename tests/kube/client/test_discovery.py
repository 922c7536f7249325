"""Finding the resource that serves a kind."""

from spinney.api.meta import Resource, encode
from spinney.kube.client.client import Client
from spinney.kube.client.discovery import Discovery
from spinney.kube.client.transport import Request, Response


class Scripted:
    """A server that serves one group, from the moment it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.installed = True

    async def send(self, request: Request) -> Response:
        self.asked += 1
        if not self.installed or request.path != "/apis/batch/v1":
            return Response(404, b'{"kind":"Status","reason":"NotFound","code":404}')
        served = [
            {"name": "jobs", "kind": "Job", "namespaced": True},
            {"name": "jobs/status", "kind": "Job", "namespaced": True},
        ]
        return Response(200, encode({"resources": served}))

    async def close(self) -> None: ...


async def test_a_kind_is_found_once_and_remembered() -> None:
    """The second question for the same group version costs no request."""
    server = Scripted()
    discovery = Discovery(Client(server))
    assert await discovery.resource("batch/v1", "Job") == Resource("batch/v1", "Job", "jobs")
    assert await discovery.resource("batch/v1", "Job") is not None
    assert server.asked == 1


async def test_a_kind_that_was_missing_is_asked_for_again() -> None:
    """A CRD may be installed after the first question."""
    server = Scripted()
    server.installed = False
    discovery = Discovery(Client(server))
    assert await discovery.resource("batch/v1", "Job") is None
    server.installed = True
    assert await discovery.serves("batch/v1")

"""Webhooks: reviews in bytes, over TLS, with registrations that trust them."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import aiohttp
import msgspec

from spinney.api.meta import Json
from spinney.kube.admission.certificates import SERVING_LIFE
from spinney.kube.admission.registration import Registration
from spinney.kube.admission.review import changed, refused, reviewers
from spinney.kube.admission.server import WebhookServer
from spinney.kube.caches.cache import Caches
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.runtime import Component, Runtime, Webhook
from tests.kube.fake_server import FakeServer


def review(_: Runtime) -> Callable[[Json], Awaitable[Json]]:
    async def answer(request: Json) -> Json:
        thing = request["object"]
        if thing["spec"].get("unreadable"):
            msgspec.convert(1e308, int)
        if thing["spec"].get("deep"):
            raise RecursionError
        if thing["spec"].get("explode"):
            raise ValueError("boom")
        if thing["spec"].get("bad"):
            return refused(request, "spec.bad: found true, allowed false")
        return changed(request, {**thing, "spec": {**thing["spec"], "seen": True}}, warnings=["careful"])

    return answer


async def idle(_: Runtime, __: object) -> None:
    await asyncio.Event().wait()


COMPONENT = Component(
    "tester",
    "Tests.",
    idle,
    webhooks=(
        Webhook(
            "things.tester.example.com",
            "/mutate-things",
            mutating=True,
            review=review,
            rules=(
                {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["things"]},
            ),
        ),
    ),
)


def life(world: FakeServer) -> Runtime:
    client = Client(world, Chance(1))
    return Runtime(client, Caches(client), SystemClock())


def question(**spec: object) -> bytes:
    request = {"uid": "42", "operation": "CREATE", "name": "a", "object": {"spec": spec}}
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


async def ask(**spec: object) -> Json:
    answer = await reviewers(COMPONENT, life(FakeServer()))["/mutate-things"](question(**spec))
    document = msgspec.json.decode(answer)
    assert document["kind"] == "AdmissionReview"
    response: Json = document["response"]
    assert response["uid"] == "42"
    return response


async def test_a_change_is_a_json_patch() -> None:
    """A review that changes the object answers with the operations, and its warnings."""
    response = await ask(x=1)
    assert response["allowed"] is True
    assert response["warnings"] == ["careful"]
    operations = msgspec.json.decode(base64.b64decode(response["patch"]))
    assert operations == [{"op": "add", "path": "/spec/seen", "value": True}]


async def test_a_refusal_says_why() -> None:
    """A review that refuses says what the user is told."""
    response = await ask(bad=True)
    assert response["allowed"] is False
    assert response["status"]["message"] == "spec.bad: found true, allowed false"


async def test_a_review_that_fails_refuses() -> None:
    """A mistake of ours is not a yes."""
    response = await ask(explode=True)
    assert response["allowed"] is False
    assert response["status"]["code"] == 500


async def test_an_object_that_our_types_cannot_read_was_an_internal_error() -> None:
    """The sender is told what is wrong: a schema may let through more than our types hold."""
    response = await ask(unreadable=True)
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert response["status"]["message"] == "the object cannot be read: Expected `int`, got `float`"
    deep = await ask(deep=True)
    assert (deep["allowed"], deep["status"]["message"]) == (False, "the object is nested too deeply")


class Server:
    """Webhooks on loopback, with the registrations that a world holds."""

    def __init__(self, world: FakeServer) -> None:
        self.runtime = life(world)
        self.server = WebhookServer(reviewers(COMPONENT, self.runtime))
        self.port = 0

    def registration(self, clock: object = None) -> Registration:
        return Registration(
            self.runtime.client,
            clock or SystemClock(),  # type: ignore[arg-type]  # a clock of the test's own
            [COMPONENT],
            self.server,
            namespace="default",
            url="https://127.0.0.1:9443",
            names=["127.0.0.1"],
        )

    async def post(self, trusted: str, path: str, body: bytes) -> tuple[int, bytes]:
        started = asyncio.Event()

        def at(port: int) -> None:
            self.port = port
            started.set()

        serving = asyncio.create_task(self.server.serve("127.0.0.1", 0, at))
        await started.wait()
        context = ssl.create_default_context(cadata=trusted)
        try:
            async with aiohttp.ClientSession() as session:
                url = f"https://127.0.0.1:{self.port}{path}"
                async with session.post(url, data=body, ssl=context) as answer:
                    return answer.status, await answer.read()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def configuration(world: FakeServer) -> Json:
    (webhooks,) = [each for each in world.objects.values() if each["kind"] == "MutatingWebhookConfiguration"]
    return webhooks


def bundle_of(world: FakeServer) -> str:
    return base64.b64decode(configuration(world)["webhooks"][0]["clientConfig"]["caBundle"]).decode()


async def test_served_over_tls_with_our_own_certificate() -> None:
    """What the registration trusts is what the server shows."""
    world = FakeServer()
    server = Server(world)
    await server.registration().refresh()
    status, body = await server.post(bundle_of(world), "/mutate-things", question(x=1))
    assert status == 200
    assert msgspec.json.decode(body)["response"]["allowed"] is True
    assert configuration(world)["webhooks"][0]["clientConfig"]["url"] == "https://127.0.0.1:9443/mutate-things"


async def test_a_large_review_is_taken() -> None:
    """An update of a large object carries it twice."""
    world = FakeServer()
    server = Server(world)
    await server.registration().refresh()
    assert (await server.post(bundle_of(world), "/mutate-things", question(text="x" * 5 * 2**20)))[0] == 200


async def test_what_is_no_review_is_refused() -> None:
    """Garbage and unknown paths get an error, not a crash."""
    world = FakeServer()
    server = Server(world)
    await server.registration().refresh()
    assert (await server.post(bundle_of(world), "/mutate-things", b"{}"))[0] == 400
    assert (await server.post(bundle_of(world), "/nowhere", b"{}"))[0] == 404


async def test_no_writes_when_all_is_well() -> None:
    """A second look writes nothing, and a second replica takes what the first one made."""
    world = FakeServer()
    first, second = Server(world), Server(world)
    await first.registration().refresh()
    first.runtime.client.writes.clear()
    await first.registration().refresh()
    await second.registration().refresh()
    assert first.runtime.client.writes.total() == 0
    assert second.runtime.client.writes.total() == 0


async def test_a_renewed_certificate_is_registered_and_served() -> None:
    """When the certificate grows old, the server gets a new one that the registration trusts."""
    world = FakeServer()
    server = Server(world)

    class Earlier:
        def now(self) -> datetime:
            return SystemClock().now() - SERVING_LIFE + timedelta(days=10)

    await server.registration(Earlier()).refresh()
    before = dict(next(each for each in world.objects.values() if each["kind"] == "Secret")["data"])
    await server.registration().refresh()
    after = next(each for each in world.objects.values() if each["kind"] == "Secret")["data"]
    assert after["certificate"] != before["certificate"]
    assert (await server.post(bundle_of(world), "/mutate-things", question()))[0] == 200


async def test_a_registration_that_someone_broke_is_mended() -> None:
    """A CA bundle that someone changed is put right again."""
    world = FakeServer()
    server = Server(world)
    await server.registration().refresh()
    good = bundle_of(world)
    broken = configuration(world)
    broken["webhooks"][0]["clientConfig"]["caBundle"] = ""
    world.put(broken)
    await server.registration().refresh()
    assert bundle_of(world) == good

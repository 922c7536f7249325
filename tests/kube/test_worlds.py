"""The runtime's promises, on the embedded cluster and on the real control plane alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from spinney.api.core import ConfigMap
from spinney.api.meta import Json, Key, Resource
from spinney.kube.admission.registration import Registration
from spinney.kube.admission.review import allowed, refused
from spinney.kube.admission.server import WebhookServer
from spinney.kube.caches.cache import Cache, Caches, Change
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.https import connect
from spinney.kube.client.kubeconfig import find_server
from spinney.kube.client.retry import Backoff
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.controller import Controller, run_controllers
from spinney.kube.controllers.events import Recorder
from spinney.kube.controllers.host import Host
from spinney.kube.controllers.leader import LEASE, Election, LeaseLost
from spinney.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound, NotLeader
from spinney.kube.manifests import manifests
from spinney.kube.process_settings import Timing
from spinney.kube.runtime import Component, Rule, Runtime, Webhook
from spinney.kube.writer import Writer
from spinney.testing.process import free_ports
from tests.kube.unreliable import Unreliable
from tests.waiting import PATIENCE, alongside, until
from tests.worlds import Cluster

# A leader on a busy machine keeps what it has; who waits for it to be silent does not wait long.
QUICK = Timing(duration=4.0, renew_deadline=3.0, retry_period=0.1)
STEADY = Timing(duration=60.0, renew_deadline=30.0, retry_period=0.1)


def config(name: str, **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


def wired(cluster: Cluster) -> tuple[Unreliable, Client]:
    """A client over a wire that can misbehave."""
    wire = Unreliable(cluster.transport())
    return wire, Client(wire, backoff=Backoff(first=0.01, longest=0.1))


@asynccontextmanager
async def watching(client: Client, namespace: str) -> AsyncIterator[tuple[Cache[ConfigMap], list[str]]]:
    """A cache of a namespace's config maps that we made, and what it tells."""
    caches = Caches(client)
    cache = caches.of(ConfigMap, namespace=namespace)
    changes: list[str] = []

    def tell(change: Change[ConfigMap]) -> None:
        # A controller of the real control plane puts one of its own into every namespace.
        if not change.object.name.startswith("kube-"):
            changes.append(
                f"-{change.object.name}" if change.new is None else f"{change.new.name}={change.new.data['x']}"
            )

    cache.on_change(tell)
    async with alongside(caches.run()):
        async with asyncio.timeout(PATIENCE):
            await cache.synced()
        yield cache, changes


async def test_the_verbs(cluster: Cluster) -> None:
    """Create, read, list in pages, patch, delete; what is not there or already there is said so."""
    client, namespace = cluster.client(), await cluster.namespace()
    made = await client.create(ConfigMap, config("a", x="1"), namespace)
    assert (made.name, made.data) == ("a", {"x": "1"})
    with pytest.raises(AlreadyExists):
        await client.create(ConfigMap, config("a"), namespace)
    for name in "bcd":
        await client.create(ConfigMap, config(name, x="1"), namespace, dry_run=name == "d")
    listing = await client.list(ConfigMap, namespace, page=1)
    assert [item.name for item in listing.items if len(item.name) == 1] == ["a", "b", "c"]
    patched = await client.patch(ConfigMap, (namespace, "a"), {"data": {"y": "2"}})
    assert patched.data == {"x": "1", "y": "2"}
    await client.patch(ConfigMap, (namespace, "e"), config("e", x="1"), kind=Patch.APPLY)
    await client.delete(ConfigMap, (namespace, "a"), uid=made.uid)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, (namespace, "a"))
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, (namespace, "b"), uid=made.uid)


async def test_a_conflict(cluster: Cluster) -> None:
    """A patch with the version of an older state is refused."""
    client, namespace = cluster.client(), await cluster.namespace()
    made = await client.create(ConfigMap, config("a", x="1"), namespace)
    await client.patch(ConfigMap, (namespace, "a"), {"data": {"x": "2"}})
    stale = {"metadata": {"resourceVersion": made.metadata.resource_version}, "data": {"x": "3"}}
    with pytest.raises(Conflict):
        await client.patch(ConfigMap, (namespace, "a"), stale)


async def test_a_finalizer_that_was_added_at_the_same_moment_went_with_ours(cluster: Cluster) -> None:
    """Who removes a finalizer leaves those of others, and takes it off no other object of the name."""
    client, namespace = cluster.client(), await cluster.namespace()
    writer = Writer(client)
    body = {"metadata": {"name": "a", "finalizers": ["example.com/ours"]}}
    read = await client.create(ConfigMap, body, namespace)
    await client.patch(ConfigMap, read.key, {"metadata": {"finalizers": ["example.com/ours", "example.com/theirs"]}})
    await writer.release(read, "example.com/ours")
    stored = await client.get(ConfigMap, read.key)
    assert stored.metadata.finalizers == ("example.com/theirs",)

    with pytest.raises(Conflict):
        await writer.release(read, "example.com/ours")
    with pytest.raises(Conflict):
        await writer.release(replace(stored, metadata=replace(stored.metadata, uid="another")), "example.com/theirs")
    await writer.release(stored, "example.com/theirs")
    assert (await client.get(ConfigMap, read.key)).metadata.finalizers == ()


async def test_a_watch_that_is_cut(cluster: Cluster) -> None:
    """Nothing is missed and nothing told twice, however often the watch breaks."""
    wire, client = wired(cluster)
    namespace = await cluster.namespace()
    await client.create(ConfigMap, config("a", x="0"), namespace)
    async with watching(client, namespace) as (_, changes):
        for x in range(1, 6):
            wire.cut()
            await client.patch(ConfigMap, (namespace, "a"), {"data": {"x": str(x)}})
        await client.delete(ConfigMap, (namespace, "a"))
        await until(lambda: "-a" in changes)
        assert changes == [*(f"a={x}" for x in range(6)), "-a"]


async def test_a_410(cluster: Cluster) -> None:
    """After the server forgot where we were, the cache tells what changed in between, once."""
    wire, client = wired(cluster)
    namespace = await cluster.namespace()
    for name in ("same", "changed", "gone"):
        await client.create(ConfigMap, config(name, x="0"), namespace)
    async with watching(client, namespace) as (_, changes):
        await until(lambda: len(changes) == 3)
        changes.clear()
        released = wire.hold()
        wire.forget()
        wire.cut()
        other = cluster.client()
        await other.patch(ConfigMap, (namespace, "changed"), {"data": {"x": "1"}})
        await other.delete(ConfigMap, (namespace, "gone"))
        await other.create(ConfigMap, config("new", x="1"), namespace)
        released.set()
        await until(lambda: len(changes) == 3)
        assert sorted(changes) == ["-gone", "changed=1", "new=1"]
        await other.patch(ConfigMap, (namespace, "same"), {"data": {"x": "2"}})
        await until(lambda: changes[-1] == "same=2")


@pytest.mark.parametrize("generated", [False, True])
async def test_an_answer_that_is_lost(cluster: Cluster, generated: bool) -> None:
    """A create whose answer is lost happens once; we get the object that it made."""
    wire, client = wired(cluster)
    namespace = await cluster.namespace()
    wire.lose_answer("POST", "/configmaps")
    body = config("a", x="1")
    if generated:
        body["metadata"] = {"generateName": "a-"}
    made = await client.create(ConfigMap, body, namespace)
    listing = await client.list(ConfigMap, namespace)
    assert [item.uid for item in listing.items if "x" in item.data] == [made.uid]


def children(life: Runtime, cache: Cache[ConfigMap], namespace: str) -> Controller:
    """A controller that gives every parent one child with a generated name: a second one would be a mistake."""

    async def reconcile(key: Key) -> None:
        parent = cache.get(key)
        if parent is None or "x" not in parent.data or any(f.data.get("parent") == key[1] for f in cache):
            return
        body = {"metadata": {"generateName": f"{key[1]}-"}, "data": {"parent": key[1]}}
        await life.client.create(ConfigMap, body, namespace)

    def keys(change: Change[ConfigMap]) -> list[Key]:
        return [(namespace, change.object.data.get("parent", change.object.name))]

    return Controller("children", life, reconcile).watch(cache, keys)


async def test_a_reconcile_reads_its_own_writes(cluster: Cluster) -> None:
    """However often a key is asked for, and whatever the wire does, each parent gets exactly one child."""
    wire, client = wired(cluster)
    namespace = await cluster.namespace()
    life = Runtime(client.named("tester"), Caches(client), SystemClock())
    cache = life.caches.of(ConfigMap, namespace=namespace)
    controller = children(life, cache, namespace)
    async with alongside(life.caches.run(), run_controllers(life, controller)):
        for index in range(20):
            await client.create(ConfigMap, config(f"p{index}", x="1"), namespace)
            controller.enqueue(namespace, f"p{index}")
            if index % 5 == 0:
                wire.lose_answer("POST", "/configmaps")
                wire.cut()
        for _ in range(5):
            for index in range(20):
                controller.enqueue(namespace, f"p{index}")
            await until(lambda: controller.idle)
        await until(lambda: sum("parent" in item.data for item in cache) >= 20)
        await until(lambda: controller.idle)
    listing = await client.list(ConfigMap, namespace)
    parents = sorted(each.data["parent"] for each in listing.items if "parent" in each.data)
    assert parents == sorted(f"p{index}" for index in range(20))


async def test_no_writes_at_rest(cluster: Cluster) -> None:
    """Once all is as it should be, reconciling again writes nothing."""
    client, namespace = cluster.client(), await cluster.namespace()
    life = Runtime(client.named("tester"), Caches(client), SystemClock())
    cache = life.caches.of(ConfigMap, namespace=namespace)
    controller = children(life, cache, namespace)
    await client.create(ConfigMap, config("p", x="1"), namespace)
    async with alongside(life.caches.run(), run_controllers(life, controller)):
        await until(lambda: any("parent" in item.data for item in cache) and controller.idle)
        assert life.client.writes.total() == 1
        for _ in range(10):
            controller.enqueue(namespace, "p")
            await until(lambda: controller.idle)
        assert life.client.writes.total() == 1


async def test_a_slow_server_costs_no_lease(cluster: Cluster) -> None:
    """While a server is slow to answer everything else, the lease is renewed."""
    wire, client = wired(cluster)
    namespace = await cluster.namespace()
    election = Election(client, SystemClock(), "lease", namespace, identity="a", timing=STEADY)
    reader, renewals = cluster.client(), set[str]()

    async def work() -> None:
        released = wire.hold()
        slow = asyncio.create_task(client.create(ConfigMap, config("a", x="1"), namespace))
        while len(renewals) < 3:
            renewals.add((await reader.get(LEASE, (namespace, "lease")))["spec"]["renewTime"])
            await asyncio.sleep(0.01)
        election.may_write()
        assert not slow.done()
        released.set()
        await slow

    async with asyncio.timeout(PATIENCE):
        await election.lead(work)
    assert len(renewals) == 3


async def test_a_lost_lease_and_two_leaders(cluster: Cluster) -> None:
    """A leader that is cut off stops before the next one starts; never may both write."""
    namespace = await cluster.namespace()
    first = cluster.client()
    old = Election(first, SystemClock(), "lease", namespace, identity="a", timing=QUICK)
    new = Election(cluster.client(), SystemClock(), "lease", namespace, identity="b", timing=QUICK)
    leading = asyncio.ensure_future(old.lead(_forever))
    await until(lambda: old.leading)
    following = asyncio.ensure_future(new.lead(_forever))
    both = 0
    old._client = Client(_Dead(), backoff=Backoff(first=0.01, longest=0.1))
    async with asyncio.timeout(PATIENCE):
        while not new.leading:
            both += _may(old) and _may(new)
            await asyncio.sleep(0.01)
    assert both == 0
    with pytest.raises(LeaseLost):
        await leading
    guarded = first.named("old", old.may_write)
    with pytest.raises(NotLeader):
        await guarded.create(ConfigMap, config("late", x="1"), namespace)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


class _Dead:
    """A wire that leads nowhere."""

    async def send(self, _: object) -> object:
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self) -> None:
        pass


async def _forever() -> None:
    await asyncio.Event().wait()


def _may(election: Election) -> bool:
    try:
        election.may_write()
    except NotLeader:
        return False
    return True


async def test_a_second_replica_takes_over(cluster: Cluster) -> None:
    """Of two processes with one component one acts; when it dies without a word, the other does."""
    namespace = await cluster.namespace()
    tester = component(namespace)
    hosts = [
        Host(cluster.client(), SystemClock(), [(tester, None)], namespace=namespace, identity=name, timing=QUICK)
        for name in ("a", "b")
    ]
    first, second = (asyncio.ensure_future(host.run()) for host in hosts)
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait(
            {asyncio.ensure_future(host.ready.wait()) for host in hosts}, return_when=asyncio.FIRST_COMPLETED
        )
    acting, standby = (0, 1) if hosts[0].ready.is_set() else (1, 0)
    assert hosts[standby].not_ready == []
    assert not hosts[standby].ready.is_set()
    dying = (first, second)[acting]
    # Dead is dead: not even the lease is given back.
    hosts[acting]._elections[tester.name].leading = False
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    async with asyncio.timeout(PATIENCE):
        await hosts[standby].ready.wait()
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


async def test_events_are_taken(cluster: Cluster) -> None:
    """The server takes our events, and kubectl would show them."""
    client, namespace = cluster.client(), await cluster.namespace()
    about = await client.create(ConfigMap, config("a", x="1"), namespace)
    recorder = Recorder(client, SystemClock(), "tester")
    recorder.event(about, "Warning", "Looked", "at it")
    await recorder.flush()
    response = await client.call("GET", f"/api/v1/namespaces/{namespace}/events")
    assert b'"reason":"Looked"' in response.body


def component(namespace: str, *hooks: Webhook) -> Component:
    """A component that may read and patch config maps, and nothing else."""

    async def run(runtime: Runtime, _: object) -> None:
        cache = runtime.caches.of(ConfigMap)
        await cache.synced()
        runtime.ready()
        await asyncio.Event().wait()

    rules = (Rule(("",), ("configmaps",), ("get", "list", "watch", "patch")),)
    return Component(f"tester-{namespace}", "Tests.", run, rules, webhooks=hooks)


async def apply(client: Client, documents: list[Json]) -> None:
    from spinney.kube.client.discovery import Discovery

    discovery = Discovery(client)
    for document in documents:
        resource = await discovery.resource(document["apiVersion"], document["kind"])
        assert resource is not None
        metadata = document["metadata"]
        await client.patch(resource, (metadata.get("namespace", ""), metadata["name"]), document, kind=Patch.APPLY)


async def test_manifests_give_exactly_the_rights(cluster: Cluster) -> None:
    """With what `spinney manifests` prints, a component can run with its lease, and do nothing it did not declare."""
    admin, namespace = cluster.client(), await cluster.namespace()
    tester = component(namespace)
    await apply(admin, manifests(tester, namespace))
    account = f"system:serviceaccount:{namespace}:spinney-{tester.name}"
    client = cluster.client(account)
    host = Host(client, SystemClock(), [(tester, None)], namespace=namespace, identity="me")
    async with alongside(host.run()), asyncio.timeout(PATIENCE):
        await host.ready.wait()
    with pytest.raises(Forbidden):
        await client.create(ConfigMap, config("a", x="1"), namespace)
    with pytest.raises(Forbidden):
        await client.call("GET", "/api/v1/secrets")


async def test_access_reviews(cluster: Cluster) -> None:
    """Who may do what can be asked."""
    review = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
    attributes = {"verb": "get", "resource": "pods", "namespace": "default"}
    answer = await cluster.client().create(review, {"spec": {"user": "nobody", "resourceAttributes": attributes}})
    assert answer["status"]["allowed"] is False


def no_x(_: Runtime) -> Callable[[Json], Awaitable[Json]]:
    async def review(request: Json) -> Json:
        bad = "x" in request["object"].get("data", {})
        return refused(request, "data.x: found, not allowed") if bad else allowed(request, ["be nice"])

    return review


async def test_webhooks_are_called(cluster: Cluster) -> None:
    """A webhook that we serve and register by URL, with a certificate of our own, decides."""
    admin, namespace = cluster.client(), await cluster.namespace()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = Webhook(
        f"x.{namespace}.example.com",
        "/x",
        mutating=False,
        review=no_x,
        rules=(rule,),
        namespace_selector={"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    )
    tester = component(namespace, hook)
    host = Host(admin, SystemClock(), [(tester, None)], namespace=namespace)
    server = WebhookServer(host.reviewers())
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    registration = Registration(
        admin, SystemClock(), [tester], server, namespace=namespace, url=url, names=["127.0.0.1"]
    )
    await registration.certify()
    started = asyncio.Event()
    async with alongside(server.serve("127.0.0.1", port, lambda _: started.set())):
        await started.wait()
        await registration.refresh()
        try:
            # The server learns of a registration by a watch of its own.
            async with asyncio.timeout(PATIENCE):
                refusal = ""
                while not refusal:
                    refusal = await _refusal(admin, config(cluster.unique("a"), x="1"), namespace)
            assert "data.x: found, not allowed" in refusal
            await admin.create(ConfigMap, config("good", y="1"), namespace)
            admin.writes.clear()
            await registration.refresh()
            assert admin.writes.total() == 0
        finally:
            path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            await admin.call("DELETE", f"{path}/spinney-{tester.name}")


async def _refusal(client: Client, body: Json, namespace: str) -> str:
    try:
        await client.create(ConfigMap, body, namespace)
    except Forbidden as error:
        return str(error)
    return ""


async def test_by_kubeconfig(cluster: Cluster) -> None:
    """The same over HTTPS, with what a kubeconfig says: requests, watches, flow control."""
    server = find_server(str(await cluster.kubeconfig()))
    client = connect(server, at_once=4)
    namespace = await cluster.namespace()
    try:
        async with watching(client, namespace) as (_, changes):
            made = [client.create(ConfigMap, config(f"a{index}", x="1"), namespace) for index in range(20)]
            await asyncio.gather(*made)
            await until(lambda: len(changes) == 20)
    finally:
        await client.close()

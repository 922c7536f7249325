"""The dashboard in trouble: restarts, lost networks, users without rights, and names that try to be code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from spinney.api.core import Event, Namespace, Pod, ServiceAccount
from spinney.api.meta import Json, Resource
from spinney.embedded.cluster import Cluster
from spinney.embedded.nodes.profile import Profile
from spinney.kube.runtime import Runtime
from spinney.web.component import serve_dashboard
from spinney.web.settings import DashboardSettings, Limits
from tests import make
from tests.browser.browser import launched, visiting

pytestmark = pytest.mark.asyncio(loop_scope="module")

expect.set_options(timeout=60_000)

HOSTILE = '<img src=x onerror="document.title=1">'
ROLE = Resource("rbac.authorization.k8s.io/v1", "Role", "roles")
BINDING = Resource("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
GENEROUS = Limits(requests_per_second=1000.0, burst=10000)


@dataclass
class Stage:
    """A cluster of two nodes with a pod in each of two namespaces, and a browser."""

    cluster: Cluster
    browser: Browser

    @asynccontextmanager
    async def dashboard(self, **settings: object) -> AsyncIterator[str]:
        """A dashboard for the block, which gets its link."""
        runtime = Runtime(client=self.cluster.client(), caches=self.cluster.caches, clock=self.cluster.clock)
        link: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        chosen = DashboardSettings(**{"port": 0, "limits": GENEROUS, **settings})  # type: ignore[arg-type]  # its fields
        life = asyncio.create_task(serve_dashboard(runtime, chosen, link.set_result))
        try:
            yield await link
        finally:
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)

    async def token(self, namespace: str) -> str:
        """The token of an account that may list pods and events in its own namespace, and nothing else."""
        client = self.cluster.client()
        rules = [{"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list"]}]
        await client.create(ServiceAccount, {"metadata": {"name": "viewer"}}, namespace)
        await client.create(ROLE, {"metadata": {"name": "viewer"}, "rules": rules}, namespace)
        subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
        binding: Json = {"metadata": {"name": "viewer"}, "subjects": [subject], "roleRef": role}
        await client.create(BINDING, binding, namespace)
        answer = await client.post(
            ServiceAccount, (namespace, "viewer"), "token", {"spec": {"expirationSeconds": 3600}}
        )
        return str(answer["status"]["token"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage() -> AsyncIterator[Stage]:
    """The stage, without any component: pods are bound by hand."""
    async with launched() as browser, Cluster(nodes=Profile(count=2, racks=1)) as cluster:
        client = cluster.client()
        for namespace, node in (("red", "node-00"), ("blue", "node-01")):
            await client.create(Namespace, {"metadata": {"name": namespace}})
            await client.create(Pod, make.pod(f"{namespace}-pod", namespace).gpus(2).on(node).build(), namespace)
        yield Stage(cluster, browser)


async def test_a_page_survives_a_restart_of_the_server(stage: Stage) -> None:
    """It says that the connection is lost, keeps what it shows, and goes on by itself."""
    async with stage.dashboard() as link, visiting(stage.browser, link) as visit:
        page = await visit.to("/workloads")
        await expect(page.locator("tbody tr")).to_have_count(2)
    port = int(link.rstrip("/").rpartition(":")[2])
    context = await stage.browser.new_context()
    page = await context.new_page()
    async with stage.dashboard(port=port) as link:
        await page.goto(f"{link}workloads")
        await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page.locator(".live")).to_contain_text("Connection lost")
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page.locator(".notice")).to_contain_text("What is here was true then")
    await stage.cluster.client().create(Pod, make.pod("later", "red").on("node-00").build(), "red")
    async with stage.dashboard(port=port):
        await expect(page.locator(".live")).to_contain_text("Live")
        await expect(page.get_by_role("link", name="pod/later")).to_be_visible()
    await stage.cluster.client().delete(Pod, ("red", "later"), grace_seconds=0)
    await context.close()


async def test_a_page_survives_a_network_that_goes_and_comes(stage: Stage) -> None:
    """As on a train."""
    context = await stage.browser.new_context()
    page = await context.new_page()
    async with stage.dashboard() as link:
        await page.goto(f"{link}workloads")
        await expect(page.locator(".live")).to_contain_text("Live")
        await context.set_offline(True)
        await page.get_by_role("link", name="Queues").click()
        await expect(page.locator(".live")).to_contain_text("Connection lost")
        await context.set_offline(False)
        await expect(page.locator(".live")).to_contain_text("Live")
        await context.close()


async def test_two_users_see_what_each_of_them_may_list(stage: Stage) -> None:
    """Workloads of the own namespace, no nodes, and why there are not more."""
    tokens = {namespace: await stage.token(namespace) for namespace in ("red", "blue")}
    async with stage.dashboard(login="token") as link:
        for mine, theirs in (("red", "blue"), ("blue", "red")):
            context = await stage.browser.new_context()
            page = await context.new_page()
            await page.goto(f"{link}workloads")
            await page.get_by_label("Token").fill(tokens[mine])
            await page.get_by_role("button", name="Log in").click()
            # The view that was asked for, without another click.
            await expect(page.locator("h1")).to_have_text("Workloads")
            await expect(page.get_by_role("link", name=f"pod/{mine}-pod")).to_be_visible()
            await expect(page.locator("main")).not_to_contain_text(f"{theirs}-pod")
            await expect(page.locator(".notice")).to_contain_text("You may not list pods in 1 namespace.")
            await page.goto(f"{link}map")
            await expect(page.locator(".notice")).to_contain_text("You may not list nodes.")
            await page.goto(f"{link}workloads/{theirs}/pod/{theirs}-pod")
            await expect(page.locator("main")).to_contain_text("No such workload")
            assert await page.evaluate("document.cookie") == ""
            await page.get_by_role("button", name="Log out").click()
            await expect(page.locator("h1")).to_have_text("Log in to Spinney")
            await context.close()


async def test_a_wrong_token_is_told(stage: Stage) -> None:
    """In one sentence, and the page stays."""
    async with stage.dashboard(login="token") as link:
        context = await stage.browser.new_context()
        page = await context.new_page()
        await page.goto(link)
        await page.get_by_label("Token").fill("nonsense")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
        await context.close()


async def test_names_and_words_that_try_to_be_code_are_text(stage: Stage) -> None:
    """What anybody can write into an event or an address is shown letter by letter."""
    client = stage.cluster.client()
    subject = {"kind": "Pod", "name": HOSTILE, "namespace": "red", "uid": "u"}
    event = {"metadata": {"name": "hostile"}, "involvedObject": subject, "reason": "Evil", "message": HOSTILE}
    now = stage.cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    await client.create(Event, {**event, "type": "Warning", "lastTimestamp": now, "firstTimestamp": now}, "red")
    async with stage.dashboard() as link, visiting(stage.browser, link) as visit:
        page = await visit.to("/")
        await expect(page.locator(".feed")).to_contain_text(HOSTILE)
        assert await page.locator("main img").count() == 0
        page = await visit.to(f"/workloads?q={HOSTILE}&phase={HOSTILE}")
        await expect(page.get_by_role("searchbox")).to_have_value(HOSTILE)
        assert await page.locator("main img").count() == 0
        assert await page.title() == "Workloads · Spinney"


async def test_long_and_foreign_words_stay_in_their_place(stage: Stage) -> None:
    """253 letters without a break, marks that turn the direction of writing, emoji: nothing leaves the screen."""
    client = stage.cluster.client()
    name, words = "n" * 253, "\u202eright to left\u202c \U0001f525 " + "w" * 900
    await client.create(Pod, make.pod(name, "blue").build(), "blue")
    subject = {"kind": "Pod", "name": name, "namespace": "blue", "uid": "v"}
    event = {"metadata": {"name": "long"}, "involvedObject": subject, "reason": "Long", "message": words}
    now = stage.cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    await client.create(Event, {**event, "type": "Warning", "lastTimestamp": now, "firstTimestamp": now}, "blue")
    async with stage.dashboard() as link, visiting(stage.browser, link, width=390) as visit:
        for path in ("/", "/workloads", "/waiting", "/map", f"/workloads/blue/pod/{name}"):
            page = await visit.to(path)
            await expect(page.locator("[aria-busy]")).to_have_count(0)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, path
        await expect(page.locator("h1")).to_have_text(name)
        page = await visit.to("/")
        await expect(page.locator(".feed")).to_contain_text(words)
    await client.delete(Pod, ("blue", name), grace_seconds=0)

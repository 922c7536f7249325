"""Registrations of webhooks beside an administrator who applies the manifests, on both worlds."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from spinney.api.meta import Json
from spinney.kube.admission.registration import Registration
from spinney.kube.admission.server import WebhookServer
from spinney.kube.client.client import Client, Patch
from spinney.kube.clock import SystemClock
from spinney.kube.manifests import webhook_configurations, webhook_resource
from spinney.kube.runtime import Component, Runtime, Webhook
from tests.worlds import Cluster

URL = "https://127.0.0.1:9443"
MUTATING = webhook_resource("MutatingWebhookConfiguration")


async def idle(_: Runtime, __: object) -> None:
    await asyncio.Event().wait()


def component(cluster: Cluster) -> Component:
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}
    hook = Webhook("things.example.com", "/things", mutating=True, review=lambda _: None, rules=(rule,))  # type: ignore[arg-type,return-value]  # never asked
    return Component(cluster.unique("reg"), "Tests.", idle, webhooks=(hook,))


def registration(client: Client, served: Component, url: str = "") -> Registration:
    return Registration(
        client.named("webhooks"), SystemClock(), [served], WebhookServer({}), namespace="default", url=url, names=["me"]
    )


async def apply(client: Client, served: Component, url: str = "") -> None:
    """As `spinney manifests … | kubectl apply --server-side -f -` does: a conflict is an error."""
    for document in webhook_configurations(served, "default", url):
        name = document["metadata"]["name"]
        await client.named("kubectl").patch(webhook_resource(document["kind"]), name, document, kind=Patch.APPLY)


async def hook_of(client: Client, served: Component) -> Json:
    configuration = await client.get(MUTATING, f"spinney-{served.name}")
    (hook,) = configuration["webhooks"]
    return dict(hook)


async def test_manifests_can_be_applied_again(cluster: Cluster) -> None:
    """Applying the manifests again met a conflict with field manager `webhooks` on the rules."""
    client, served = cluster.client(), component(cluster)
    await apply(client, served)
    await registration(client, served).refresh()
    bundle = (await hook_of(client, served))["clientConfig"]["caBundle"]
    assert bundle
    newer = replace(served, webhooks=(replace(served.webhooks[0], timeout_seconds=7),))
    await apply(client, newer)
    # A replica of the version before does not take it back.
    await registration(client, served).refresh()
    hook = await hook_of(client, served)
    assert (hook["timeoutSeconds"], hook["clientConfig"]["caBundle"]) == (7, bundle)
    await client.delete(MUTATING, f"spinney-{served.name}")


async def test_from_service_to_url_and_back(cluster: Cluster) -> None:
    """A component that was reached by Service and now by URL ended with "exactly one of url or service"."""
    client, served = cluster.client(), component(cluster)
    await apply(client, served)
    await registration(client, served).refresh()
    await registration(client, served, URL).refresh()
    hook = await hook_of(client, served)
    assert hook["clientConfig"]["url"] == f"{URL}/things"
    assert "service" not in hook["clientConfig"]
    await registration(client, served).refresh()
    hook = await hook_of(client, served)
    assert hook["clientConfig"]["service"]["path"] == "/things"
    assert "url" not in hook["clientConfig"]
    await apply(client, served)
    await client.delete(MUTATING, f"spinney-{served.name}")


async def test_what_a_component_created_itself_it_keeps_current(cluster: Cluster) -> None:
    """Without manifests, the next version's rules reach the API server too."""
    client, served = cluster.client(), component(cluster)
    await registration(client, served, URL).refresh()
    newer = replace(served, webhooks=(replace(served.webhooks[0], timeout_seconds=7),))
    await registration(client, newer, URL).refresh()
    assert (await hook_of(client, served))["timeoutSeconds"] == 7
    client.writes.clear()
    await registration(client, newer, URL).refresh()
    assert client.writes.total() == 0
    await client.delete(MUTATING, f"spinney-{served.name}")


async def test_an_administrator_who_is_quicker_is_not_overwritten(cluster: Cluster) -> None:
    """A webhook that an administrator changes between our look and our write keeps the change."""
    client, served = cluster.client(), component(cluster)
    await apply(client, served)
    changed = replace(served, webhooks=(replace(served.webhooks[0], timeout_seconds=7),))
    registering = registration(client, served)
    look, times = client.find, 0

    async def look_and_let_another_write(*arguments: Any) -> Any:
        nonlocal times
        live = await look(*arguments)
        times += 1
        if times == 1:
            await apply(client, changed)
        return live

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registering._client, "find", look_and_let_another_write)
        await registering.register("an authority")
    hook = await hook_of(client, served)
    assert (hook["timeoutSeconds"], b64decode(hook["clientConfig"]["caBundle"])) == (7, b"an authority")
    await client.delete(MUTATING, f"spinney-{served.name}")

"""Waiting for deletions that take time, on both worlds."""

from __future__ import annotations

import asyncio

from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.core import ConfigMap
from spinney.api.meta import Json, Resource
from spinney.api.untyped import untyped
from spinney.kube.client.client import Client
from spinney.kube.deletion import until_gone
from tests.backends import live
from tests.waiting import object_until
from tests.worlds import Cluster

HELD = {"finalizers": ["example.com/held"]}
RELEASE = {"metadata": {"finalizers": None}}
WIDGET = Resource("deletion.example.com/v1", "Widget", "widgets")


def definition() -> Json:
    """A kind that no other test knows."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": WIDGET.kind, "plural": WIDGET.plural, "singular": "widget", "listKind": "WidgetList"}
    spec = {"group": WIDGET.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{WIDGET.plural}.{WIDGET.group}"}, "spec": spec}


async def deleted_but_held(client: Client, of: Resource, name: str, namespace: str) -> None:
    """An object whose deletion waits for somebody."""
    await client.create(of, {"metadata": {"name": name, "labels": {"app": "x"}, **HELD}}, namespace)
    await client.delete(of, (namespace, name))


async def test_a_finalizer_is_waited_for(cluster: Cluster) -> None:
    """An object that is being deleted is still there; the wait ends with the last of them."""
    client, namespace = cluster.client(), await cluster.namespace()
    for name in ("a", "b"):
        await deleted_but_held(client, ConfigMap.resource, name, namespace)
    waiting = asyncio.create_task(until_gone(client, ConfigMap, namespace, labels="app=x"))
    await client.patch(ConfigMap, (namespace, "a"), RELEASE)
    await object_until(client, ConfigMap, (namespace, "a"), lambda item: item is None)
    assert not waiting.done()
    await client.patch(ConfigMap, (namespace, "b"), RELEASE)
    await waiting


async def test_a_kind_that_is_not_served_has_no_objects(cluster: Cluster) -> None:
    """Nothing is left of what cannot be."""
    await until_gone(cluster.client(), untyped(Resource("nobody.example.com/v1", "Thing", "things")))


async def test_a_definition_that_is_being_deleted_was_taken_for_installed(cluster: Cluster) -> None:
    """It is still established; a test that trusted it lost its objects when the definition went."""
    client, namespace = cluster.client(), await cluster.namespace()
    await live.install(client, [definition()])
    name = definition()["metadata"]["name"]
    old = await client.get(CustomResourceDefinition, name)
    await client.create(WIDGET, {"metadata": {"name": "held", **HELD}}, namespace)
    await client.delete(CustomResourceDefinition, name)
    installing = asyncio.create_task(live.install(client, [definition()]))
    await client.patch(WIDGET, (namespace, "held"), RELEASE)
    await installing
    assert (await client.get(CustomResourceDefinition, name)).uid != old.uid

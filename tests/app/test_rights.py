"""Every component gets along with the rights that it declares, on both worlds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from spinney.api.coordination import Lease
from spinney.api.crd import FOREIGN_GROUPS, OUR_GROUPS
from spinney.api.crd import crds as definitions
from spinney.api.meta import convert
from spinney.app.components import load, registered
from spinney.kube.client.client import Client, Patch
from spinney.kube.client.discovery import Discovery
from spinney.kube.client.transport import Request, Response, Transport
from spinney.kube.clock import SystemClock
from spinney.kube.controllers.host import Host
from spinney.kube.errors import Forbidden
from spinney.kube.manifests import manifests
from spinney.kube.runtime import Rule
from tests.backends import live
from tests.waiting import until
from tests.worlds import Cluster


class Listening:
    """Passes requests on, and writes down what was refused."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.refused: list[str] = []

    async def send(self, request: Request) -> Response:
        """Pass a request on."""
        response = await self._transport.send(request)
        if response.status in (401, 403):
            self.refused.append(f"{request.method} {request.path} {dict(request.query).get('labelSelector', '')}")
        return response

    async def close(self) -> None:
        """Whoever opened the wire closes it."""


# These two speak for the pod or the node that they run on, and for nobody without one.
BOUND = ("reservation", "numa-placement-exporter")
# Its usual port may be taken by another one on this machine.
FREE_PORT = {"dashboard": {"port": 0}}


@pytest.mark.parametrize("name", [name for name in registered() if name not in BOUND])
async def test_a_component_starts_with_its_own_rights(cluster: Cluster, name: str) -> None:
    """With what `spinney manifests` prints and no more, a component gets ready, and nothing is refused to it."""
    admin, namespace = cluster.client(), await cluster.namespace()
    await live.install(admin, definitions((*OUR_GROUPS, *FOREIGN_GROUPS)))
    component = load(name)
    discovery = Discovery(admin)
    for document in manifests(component, namespace):
        if "Webhook" in document["kind"]:
            continue
        resource = await discovery.resource(document["apiVersion"], document["kind"])
        assert resource is not None
        where = document["metadata"].get("namespace", "")
        await admin.patch(resource, (where, document["metadata"]["name"]), document, kind=Patch.APPLY, force=True)
    account = f"system:serviceaccount:{namespace}:spinney-{name}"
    await until(lambda: _may_lead(cluster.client(account), namespace))
    wire = Listening(cluster.transport(account))
    config = convert(component.settings, FREE_PORT.get(name, {})) if component.settings is not None else None
    host = Host(Client(wire), SystemClock(), [(component, config)], namespace=namespace, identity="me")
    running = asyncio.ensure_future(host.run())
    ready = asyncio.ensure_future(host.ready.wait())
    try:
        await asyncio.wait({running, ready}, timeout=120, return_when=asyncio.FIRST_COMPLETED)
        assert wire.refused == []
        assert ready.done()
    finally:
        for task in (ready, running):
            task.cancel()
        await asyncio.gather(ready, running, return_exceptions=True)


async def _may_lead(client: Client, namespace: str) -> bool:
    """Whether the right that is granted last counts: roles reach the API server's authorizer by a watch."""
    try:
        await client.find(Lease, (namespace, "any"))
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize("name", registered())
def test_who_creates_may_look_whether_it_did(name: str) -> None:
    """After a lost answer a creator reads what it may have made; the binder was not allowed to."""
    component = load(name)
    verbs: dict[str, set[str]] = {}
    for rule in (*component.rules, *component.namespace_rules):
        for resource in rule.resources:
            verbs.setdefault(resource, set()).update(rule.verbs)
    # Events may be lost, subresources and reviews store nothing under a name of their own, Secrets are not for reading.
    unread = ("events", "subjectaccessreviews", "tokenreviews", *(("secrets",) if component.name == "grove" else ()))
    stored = {name for name in verbs if "/" not in name and name not in unread}
    assert [name for name in stored if "create" in verbs[name] and "get" not in verbs[name]] == []


@pytest.mark.parametrize("name", registered())
def test_nobody_may_read_all_secrets_or_give_himself_rights(name: str) -> None:
    """The operator and the platform could list every Secret, and the platform could write any role."""
    for document in manifests(load(name), "here"):
        for rule in document.get("rules", ()):
            if "secrets" in rule["resources"]:
                read = {"get", "list", "watch", "patch", "delete"} & set(rule["verbs"])
                assert not read or (document["kind"] == "Role" and rule["resourceNames"])
            assert not {"escalate", "bind", "impersonate", "*"} & set(rule["verbs"])


def test_the_security_page_lists_what_each_component_may_write() -> None:
    """Its table is made of the rules that components declare."""
    page = (Path(__file__).parents[2] / "docs/users/operations/security.md").read_text()
    for name in sorted(registered()):
        component = load(name)
        cells = (_written(component.rules), _written(component.namespace_rules))
        assert f"| `{name}` | {' | '.join(cells)} |" in page


def _written(rules: Iterable[Rule]) -> str:
    names = {resource for rule in rules if set(rule.verbs) - {"get", "list", "watch"} for resource in rule.resources}
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"

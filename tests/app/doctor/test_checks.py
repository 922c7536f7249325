"""What `spinney doctor` says of an API server, certificates, rights and Config that are not as they should be."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import format_datetime

import msgspec
import pytest

from spinney.api.kai import Config
from spinney.api.rbac import ClusterRole
from spinney.app.components import load
from spinney.app.doctor.api_server import check_clock, check_version
from spinney.app.doctor.definitions import check_definitions
from spinney.app.doctor.findings import Finding, Target
from spinney.app.doctor.processes import check_config
from spinney.app.doctor.rights import check_own_rights, check_roles
from spinney.app.doctor.webhooks import check_webhooks
from spinney.app.installation import install_crds
from spinney.app.laptop import Options, laptop
from spinney.embedded.nodes.profile import Profile
from spinney.kube.admission.certificates import renewed
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response, Transport
from spinney.kube.clock import SystemClock
from spinney.kube.manifests import manifests, webhook_configurations, webhook_resource
from tests.waiting import until
from tests.worlds import Cluster

CLOCK = SystemClock()


class Answering:
    """An API server of which some paths answer otherwise."""

    def __init__(self, transport: Transport, **answers: Response) -> None:
        self._transport = transport
        self._answers = answers

    async def send(self, request: Request) -> Response:
        """The server's answer, or ours."""
        return self._answers.get(request.path.rpartition("/")[2]) or await self._transport.send(request)

    async def close(self) -> None:
        """Whoever opened the wire closes it."""


@asynccontextmanager
async def embedded() -> AsyncIterator[Client]:
    async with laptop(Options(nodes=Profile(count=0), bare=True)) as running:
        yield running.client


def target(client: Client) -> Target:
    return Target(client, CLOCK, "here")


def only(findings: list[Finding], status: str) -> Finding:
    (finding,) = [each for each in findings if each.status == status]
    return finding


def version(minor: str) -> Response:
    return Response(200, msgspec.json.encode({"minor": minor, "gitVersion": f"v1.{minor}.0"}))


@pytest.mark.parametrize(
    ("minor", "status", "advice"),
    [
        ("32", "problem", "upgrade it to 1.33"),
        ("34+", "note", "other schedulers work"),
        ("36", "note", "feature-gates"),
    ],
)
async def test_old_kubernetes_and_closed_gates_are_told(minor: str, status: str, advice: str) -> None:
    """Before 1.33 nothing works, before 1.35 kube-scheduler knows no gangs, and later only where gates are open."""
    async with embedded() as client:
        nothing = Response(404, b"{}")
        gateless = dict.fromkeys(("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1"), nothing)
        wire = Answering(client.transport, version=version(minor), **gateless)
        assert advice in only(await check_version(target(Client(wire))), status).advice


@pytest.mark.parametrize(("seconds", "side"), [(90, "ahead of"), (-90, "behind")])
async def test_a_clock_that_differs_is_told(seconds: int, side: str) -> None:
    """Leases and certificates depend on clocks that agree."""
    async with embedded() as client:
        date = format_datetime(CLOCK.now() + timedelta(seconds=seconds), usegmt=True)
        answer = Response(200, version("35").body, {"Date": date})
        finding = only(await check_clock(target(Client(Answering(client.transport, version=answer)))), "warning")
    assert side in finding.text
    assert "NTP" in finding.advice


def bundle(age: timedelta) -> str:
    """The CA bundle of certificates that were made so long ago."""
    return base64.b64encode(renewed(None, ["x"], CLOCK.now() - age).trusted.encode()).decode()


@pytest.mark.parametrize(
    ("ca_bundle", "status", "text"),
    [
        (bundle(timedelta(days=360)), "problem", "the authority of its certificate ends on"),
        (base64.b64encode(b"nonsense").decode(), "problem", "unreadable CA bundle"),
        (bundle(timedelta()), "ok", "trusted until"),
        ("", "note", "has no CA bundle"),
    ],
    ids=["ends-soon", "unreadable", "new", "missing"],
)
async def test_certificates_are_looked_at(ca_bundle: str, status: str, text: str) -> None:
    """An authority that has ended refuses every PodCliqueSet: who is told two weeks before can act."""
    async with embedded() as client:
        await install_crds(client)
        for document in webhook_configurations(load("grove"), "here", ca_bundle=ca_bundle):
            await client.create(webhook_resource(document["kind"]), document)
        elsewhere = Answering(client.transport, version=version("35"))
        findings = await check_webhooks(target(Client(elsewhere)))
    about_certificates = [each for each in findings if each.check == "certificates"]
    assert about_certificates
    assert {each.status for each in about_certificates} == {status}
    assert all(text in each.text for each in about_certificates)


async def test_no_webhook_at_all_is_a_problem() -> None:
    """Without webhooks sets get no defaults, and mistakes are accepted."""
    async with embedded() as client:
        assert "install.md" in only(await check_webhooks(target(client)), "problem").advice


async def test_webhooks_that_nobody_serves_were_said_to_answer(cluster: Cluster) -> None:
    """A real API server refuses a custom resource without its kind before it asks any webhook."""
    namespace, client = await cluster.namespace(), cluster.client()
    await install_crds(client)
    for document in webhook_configurations(load("grove"), namespace, ca_bundle=bundle(timedelta())):
        for hook in document["webhooks"]:
            # Where the doctor tries; other tests create sets elsewhere.
            hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
        await client.create(webhook_resource(document["kind"]), document)

    async def told() -> bool:
        findings = await check_webhooks(target(client))
        return any(each.status == "problem" and each.text.startswith("PodCliqueSet: ") for each in findings)

    await until(told)


async def test_a_trial_that_is_forbidden_says_nothing_about_webhooks(cluster: Cluster) -> None:
    """Who may not create sets cannot find out whether their webhooks answer."""
    namespace, client = await cluster.namespace(), cluster.client()
    await install_crds(client)
    (document, *_) = webhook_configurations(load("grove"), namespace, ca_bundle=bundle(timedelta()))
    for hook in document["webhooks"]:
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    await client.create(webhook_resource(document["kind"]), document)
    configurations = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["list"]}
    findings = await check_webhooks(target(await cluster.granted("ann", configurations)))
    tried = [each for each in findings if "PodCliqueSet" in each.text and each.check == "webhooks"]
    assert [each.status for each in tried] == ["unknown"]
    assert "could not be tried" in tried[0].text


async def test_a_role_of_an_older_version_is_told() -> None:
    """A component that lacks a right of its version says nothing until it needs it."""
    async with embedded() as client:
        (role,) = (each for each in manifests(load("grove"), "here") if each["kind"] == "ClusterRole")
        await client.create(ClusterRole, {**role, "rules": role["rules"][1:]})
        finding = only(await check_roles(target(client)), "warning")
    assert "spinney-grove lacks 1 rules of this version" in finding.text
    assert "apply the objects of this version again" in finding.advice


async def test_who_may_not_install_is_told(cluster: Cluster) -> None:
    """By access reviews: the first right that is missing would stop an installation half-way."""
    await cluster.namespace()
    ours = await check_own_rights(target(cluster.client()))
    theirs = await check_own_rights(target(cluster.client("ann", ("system:authenticated",))))
    assert only(ours, "ok").text == "you may install, upgrade and uninstall"
    assert "patch customresourcedefinitions" in only(theirs, "note").text


async def test_a_config_that_nobody_looks_at_is_a_problem() -> None:
    """Without the platform operator Config stays without conditions."""
    async with embedded() as client:
        await install_crds(client)
        await client.create(Config, {"metadata": {"name": "kai-config"}, "spec": {}})
        finding = only(await check_config(target(client)), "problem")
    assert finding.text == "Config kai-config: the platform has not looked at it"


async def test_advice_on_an_empty_cluster_made_helm_refuse_to_install() -> None:
    """Helm installs over no CRDs that somebody applied: where there are none, they come with the installation."""
    async with embedded() as client:
        finding = only(await check_definitions(target(client)), "problem")
    assert finding.advice == "install: see docs/users/install.md"


async def test_a_definition_that_is_not_established_is_a_problem() -> None:
    """Another definition with the same names keeps ours from being served."""
    async with embedded() as client:
        await install_crds(client)
        name = "podgangs.scheduler.grove.io"
        stored = await client.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        refused = {**msgspec.json.decode(stored.body), "status": {"conditions": []}}
        wire = Answering(client.transport, **{name: Response(200, msgspec.json.encode(refused))})
        finding = only(await check_definitions(target(Client(wire))), "problem")
    assert finding.text == f"not established: {name}"

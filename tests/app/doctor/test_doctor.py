"""`spinney doctor`: a healthy cluster has no problems, and each fault is named with what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api import labels
from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.apps import Deployment
from spinney.api.coordination import Lease
from spinney.api.core import Node, ServiceAccount
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.kai import Config, Queue
from spinney.api.meta import Json
from spinney.app.components import load
from spinney.app.doctor.examination import examine
from spinney.app.doctor.findings import Finding, Target
from spinney.app.installation import SYSTEM_NAMESPACE, install_crds
from spinney.app.laptop import Options, laptop
from spinney.cli.main import main
from spinney.embedded.nodes.profile import Profile
from spinney.kube.client.client import Client
from spinney.kube.clock import SystemClock
from spinney.kube.manifests import webhook_configurations, webhook_resource
from tests.waiting import object_until
from tests.worlds import Cluster


async def examined(client: Client, namespace: str = SYSTEM_NAMESPACE) -> list[Finding]:
    return await examine(Target(client, SystemClock(), namespace))


async def test_a_laptop_is_healthy() -> None:
    """Everything in one process: all checks run, and none has anything to say, such as to install something on top."""
    async with laptop(Options(nodes=Profile(count=2))) as running:
        findings = await examined(running.client)
    assert [finding for finding in findings if finding.status not in ("ok", "unknown")] == []
    checks = {finding.check for finding in findings}
    assert {"version", "crds", "webhooks", "config", "rights", "nodes", "queues", "neighbours", "topology"} <= checks
    assert any(finding.text == "all webhooks for a Pod answer" for finding in findings)


def deployment(name: str, part_of: str = "", replicas: int = 1) -> Json:
    marks = {"app": name}
    pod = {"metadata": {"labels": marks}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    metadata = {"name": name, "labels": {"app.kubernetes.io/part-of": part_of} if part_of else {}}
    return {"metadata": metadata, "spec": {"replicas": replicas, "selector": {"matchLabels": marks}, "template": pod}}


async def missing_definition(client: Client, _: str) -> None:
    name = "podgangs.scheduler.grove.io"
    await client.delete(CustomResourceDefinition, name)
    await object_until(client, CustomResourceDefinition, ("", name), lambda crd: crd is None)


async def older_definition(client: Client, _: str) -> None:
    names = {"spec": {"names": {"shortNames": ["oldname"]}}}
    await client.patch(CustomResourceDefinition, "podcliques.grove.io", names)


async def unserved_webhooks(client: Client, namespace: str) -> None:
    for document in webhook_configurations(load("admission"), namespace):
        await client.create(webhook_resource(document["kind"]), document)


async def silent_lease(client: Client, namespace: str) -> None:
    await client.create(Deployment, deployment("spinney-backends", "spinney"), namespace)
    long_ago = (SystemClock().now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": long_ago}
    await client.create(Lease, {"metadata": {"name": "spinney-backends"}, "spec": spec}, namespace)


async def lease_in_between(client: Client, namespace: str) -> None:
    await client.create(Deployment, deployment("spinney-backends", "spinney"), namespace)
    now = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
    await client.create(Lease, {"metadata": {"name": "spinney-backends"}, "spec": spec}, namespace)


async def no_replicas(client: Client, namespace: str) -> None:
    await client.create(Deployment, deployment("spinney-backends", "spinney", replicas=0), namespace)


async def deleted_deployment(client: Client, namespace: str) -> None:
    await client.create(Deployment, deployment("spinney-grove", "spinney"), namespace)
    account = {"metadata": {"name": "spinney-backends", "labels": {"app.kubernetes.io/part-of": "spinney"}}}
    await client.create(ServiceAccount, account, namespace)


async def deleted_config(client: Client, namespace: str) -> None:
    await client.create(Deployment, deployment("spinney-platform", "spinney"), namespace)


async def two_installations(client: Client, namespace: str) -> None:
    for place in ("default", namespace):
        await client.create(Deployment, deployment("spinney-grove", "spinney"), place)


async def no_runtime_class(client: Client, _: str) -> None:
    spec = {"admission": {"gpuSharing": True}}
    await client.create(Config, {"metadata": {"name": labels.KAI_CONFIG}, "spec": spec})


async def unlabelled_node(client: Client, _: str) -> None:
    await client.create(Node, {"metadata": {"name": "bare"}})
    levels = {"levels": [{"domain": "rack", "key": "example.com/rack"}]}
    await client.create(ClusterTopologyBinding, {"metadata": {"name": "t"}, "spec": levels})


async def orphan_queue(client: Client, _: str) -> None:
    resources = {"gpu": {"limit": 0}}
    await client.create(Queue, {"metadata": {"name": "q"}, "spec": {"parentQueue": "lost", "resources": resources}})


async def forbidden_queue(client: Client, _: str) -> None:
    await client.create(Queue, {"metadata": {"name": "vip"}, "spec": {"resources": {"gpu": {"limit": -1}}}})
    annotations = {labels.REVIEW_QUEUE_ACCESS: "true"}
    await client.create(Config, {"metadata": {"name": labels.KAI_CONFIG, "annotations": annotations}, "spec": {}})


async def both_operators(client: Client, namespace: str) -> None:
    await client.create(Deployment, deployment("grove-operator"), "default")
    await client.create(Deployment, deployment("spinney-grove", "spinney"), namespace)


async def kai_alone(client: Client, _: str) -> None:
    await client.create(Deployment, deployment("kai-operator"), "default")


Fault = Callable[[Client, str], Awaitable[None]]
FAULTS: list[tuple[Fault, str, str, str]] = [
    (missing_definition, "problem", "CRDs are missing: podgangs.scheduler.grove.io", "kubectl apply --server-side"),
    (older_definition, "warning", "podcliques.grove.io", "spinney crds"),
    (unserved_webhooks, "problem", "Pod: ", "start what serves it"),
    (silent_lease, "problem", "nobody holds Lease spinney-backends", "logs"),
    (silent_lease, "problem", "spinney-backends: 0 of 1 pods available", "describe pods"),
    (lease_in_between, "note", "Lease spinney-backends was given up", "look again"),
    (two_installations, "problem", "ours is also installed in default", "spinney uninstall -n default"),
    (no_runtime_class, "note", "there is no RuntimeClass nvidia", "handler runc"),
    (no_replicas, "problem", "spinney-backends is scaled to 0", "--replicas=1"),
    (deleted_deployment, "problem", "Deployment spinney-backends is missing", "install again"),
    (deleted_config, "problem", "there is no Config kai-config", "rollout restart deployment spinney-platform"),
    (unlabelled_node, "warning", "1 of 1 nodes lack the label example.com/rack: bare", "kubectl label node bare"),
    (unlabelled_node, "note", "none of 1 nodes offers nvidia.com/gpu", "device plugin"),
    (orphan_queue, "problem", "queue q: its parent lost does not exist", "create Queue lost"),
    (orphan_queue, "warning", "queue q: its limit of gpu is 0", "spec.resources.gpu.limit"),
    (forbidden_queue, "warning", "nobody but administrators may use vip", "--verb=use"),
    (both_operators, "problem", "Grove's operator default/grove-operator runs beside ours", "--replicas=0"),
    (kai_alone, "note", "KAI's operator runs as default/kai-operator", "platform.enabled=false"),
]


@asynccontextmanager
async def embedded() -> AsyncIterator[Client]:
    """A cluster with our CRDs and nothing else."""
    async with laptop(Options(nodes=Profile(count=0), bare=True)) as running:
        await install_crds(running.client)
        yield running.client


@pytest.mark.parametrize(
    ("fault", "status", "text", "advice"), FAULTS, ids=lambda each: getattr(each, "__name__", None)
)
async def test_a_fault_is_named_with_what_to_do(fault: Fault, status: str, text: str, advice: str) -> None:
    """One line each: what is wrong, and what to do."""
    async with embedded() as client:
        await client.call("POST", "/api/v1/namespaces", body={"metadata": {"name": "here"}})
        await fault(client, "here")
        findings = await examined(client, "here")
    named = [each for each in findings if text in each.text]
    assert named, [each.text for each in findings]
    assert named[0].status == status
    assert advice in named[0].advice


@pytest.mark.parametrize("only", ["", "kai,default"])
async def test_leases_of_other_choices_of_backends_were_called_held_by_nobody(only: str) -> None:
    """One Deployment of backends, or several: what the choice before has left concerns nobody."""
    async with embedded() as client:
        await client.call("POST", "/api/v1/namespaces", body={"metadata": {"name": "here"}})
        backends = deployment("spinney-backends-a" if only else "spinney-backends", "spinney")
        if only:
            backends["spec"]["template"]["spec"]["containers"][0]["args"] = ["run", "backends", f"--only={only}"]
        await client.create(Deployment, backends, "here")
        for name in ("spinney-backends", "spinney-backends-default-kai", "spinney-backends-volcano"):
            spec = {"leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
            await client.create(Lease, {"metadata": {"name": name}, "spec": spec}, "here")
        findings = await examined(client, "here")
    subjects = [finding.text.split(":")[0] for finding in findings if finding.check == "leases"]
    assert subjects == [f"nobody holds Lease spinney-backends{'-default-kai' if only else ''}"]


async def test_who_may_read_little_hears_what_is_unknown(cluster: Cluster) -> None:
    """A user without rights gets no error: what he may not read is unknown."""
    namespace = await cluster.namespace()
    await install_crds(cluster.client())
    findings = await examined(cluster.client("nobody", ("system:authenticated",)), namespace)
    assert {finding.check for finding in findings if finding.status == "unknown"} >= {
        "crds",
        "webhooks",
        "nodes",
        "queues",
    }
    assert any(finding.text.startswith("Kubernetes v1.") for finding in findings)


async def test_the_command_tells_by_its_exit_code(cluster: Cluster) -> None:
    """1 where something is wrong; JSON has all findings."""
    namespace = await cluster.namespace()
    await install_crds(cluster.client())
    kubeconfig: Path = await cluster.kubeconfig()

    def run() -> tuple[int, str]:
        arguments = ["doctor", "--kubeconfig", str(kubeconfig), "-n", namespace, "-o", "json"]
        result = CliRunner().invoke(main, arguments)
        return result.exit_code, result.stdout

    code, printed = await asyncio.to_thread(run)
    answer = json.loads(printed)
    assert code == (0 if answer["healthy"] else 1)
    (clock,) = (finding for finding in answer["findings"] if finding["check"] == "clock")
    assert clock["status"] == "ok"

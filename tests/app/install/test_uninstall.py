"""Uninstallation on both worlds: running pods stay, nothing of ours does, and no finalizer stands in the way."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import yaml

from spinney.api import labels
from spinney.api.apiextensions import CustomResourceDefinition
from spinney.api.core import Pod, Secret, ServiceAccount
from spinney.api.crd import crds
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.kai import Config, Queue
from spinney.api.meta import Json
from spinney.api.owners import controller_reference
from spinney.api.rbac import ClusterRole
from spinney.api.untyped import untyped
from spinney.app.install.objects import definitions, namespace_object, objects
from spinney.app.install.uninstall import Uninstallation
from spinney.app.install.values import Values
from spinney.grove.admission.defaulting import with_defaults
from spinney.kube.client.client import Client
from spinney.kube.manifests import webhook_resource
from tests import make
from tests.waiting import object_until
from tests.worlds import Cluster

OURS = "app.kubernetes.io/part-of=spinney"
MANAGED = {labels.MANAGED_BY: labels.GROVE_OPERATOR, labels.PART_OF: "set"}


async def installed(cluster: Cluster, namespace: str) -> None:
    documents = [namespace_object(namespace), *definitions(), *objects(Values(), namespace, version("spinney"))]
    ran = await cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump_all(documents)
    )
    assert ran.code == 0, ran.err
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        # Nobody serves them here.
        await cluster.client().delete(webhook_resource(kind), "spinney-grove")


async def workload(client: Client, namespace: str) -> None:
    """A set whose operator is gone: with finalizers, a pod that runs and one that is held by a gate."""
    body = with_defaults(make.pcs("set", namespace).clique("a", 2, schedulerName="kai-scheduler").build())
    body["metadata"]["finalizers"] = [labels.SET_FINALIZER]
    pcs = await client.create(PodCliqueSet, body, namespace)
    spec = body["spec"]["template"]["cliques"][0]["spec"]
    metadata: Json = {"name": "set-0-a", "labels": MANAGED, "finalizers": [labels.CLIQUE_FINALIZER]}
    metadata["ownerReferences"] = [controller_reference(pcs)]
    clique = await client.create(PodClique, {"metadata": metadata, "spec": spec}, namespace)
    for name, gates in (("runs", []), ("waits", [{"name": labels.KAI_GATE}])):
        pod: Json = make.pod(name).build()
        pod["metadata"] = {"name": name, "labels": MANAGED, "ownerReferences": [controller_reference(clique)]}
        pod["spec"]["schedulingGates"] = gates
        await client.create(Pod, pod, namespace)
    account = {"metadata": {"name": "set-initc", "labels": MANAGED, "ownerReferences": [controller_reference(pcs)]}}
    await client.create(ServiceAccount, account, namespace)
    await client.create(Queue, {"metadata": {"name": "team"}, "spec": {"resources": {"gpu": {"limit": -1}}}})
    await client.create(Config, {"metadata": {"name": labels.KAI_CONFIG}, "spec": {"namespace": namespace}})


async def recorded_by_helm(client: Client, namespace: str) -> None:
    """What Helm leaves beside the objects of a release; with its record it would refuse to install again."""
    release = {"metadata": {"annotations": {"meta.helm.sh/release-name": "ours"}}}
    await client.patch(ServiceAccount, (namespace, "spinney-grove"), release)
    record = {"name": "sh.helm.release.v1.ours.v1", "labels": {"owner": "helm", "name": "ours"}}
    await client.create(Secret, {"metadata": record}, namespace)


async def uninstalled(cluster: Cluster, *, keep_crds: bool) -> str:
    """Install, create a workload, uninstall; the running pod is still there, in the namespace that is returned."""
    client, namespace, users = cluster.client(), cluster.unique("leaving"), await cluster.namespace()
    await installed(cluster, namespace)
    await workload(client, users)
    await recorded_by_helm(client, namespace)
    # Each uninstallation waited a minute for pods of services, which it had not stopped yet.
    marks = {"app": "binder", "app.kubernetes.io/part-of": "spinney"}
    await client.create(
        Pod, {**make.pod("binder", namespace).build(), "metadata": {"name": "binder", "labels": marks}}, namespace
    )
    running = await client.get(Pod, (users, "runs"))
    steps: list[str] = []
    await Uninstallation(client, namespace, steps.append).run(keep_crds=keep_crds)
    assert not [step for step in steps if "still there" in step]
    assert (await client.list(Secret, namespace, labels="owner=helm")).items == []
    assert (await client.get(Pod, (users, "runs"))).uid == running.uid
    assert (await client.list(ClusterRole, labels=OURS)).items == []
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert (await client.list(untyped(webhook_resource(kind)), labels=OURS)).items == []
    return users


async def test_sets_and_queues_can_be_kept(cluster: Cluster) -> None:
    """For the next installation; no finalizer keeps users from deleting them until then."""
    client, users = cluster.client(), await uninstalled(cluster, keep_crds=True)
    await object_until(client, Config, ("", labels.KAI_CONFIG), lambda config: config is None)
    await client.delete(PodCliqueSet, (users, "set"), propagation="Orphan")
    await object_until(client, PodCliqueSet, (users, "set"), lambda pcs: pcs is None)
    assert (await client.get(Queue, "team")).name == "team"
    await client.delete(Queue, "team")


# Others need the CRDs of the shared control plane; tests/cluster takes them away from one of its own.
@pytest.mark.parametrize("cluster", ["embedded"], indirect=True)
async def test_pods_run_on_and_nothing_of_ours_stays(cluster: Cluster) -> None:
    """Deleting CRDs would delete sets, and sets their pods; finalizers would keep all of it for ever."""
    client, users = cluster.client(), await uninstalled(cluster, keep_crds=False)
    for definition in crds():
        name = definition["metadata"]["name"]
        await object_until(client, CustomResourceDefinition, ("", name), lambda crd: crd is None)
    assert (await client.get(Pod, (users, "runs"))).metadata.owner_references == ()
    assert [pod.name for pod in (await client.list(Pod, users)).items] == ["runs"]
    accounts = (await client.list(ServiceAccount, users, labels=f"{labels.MANAGED_BY}={labels.GROVE_OPERATOR}")).items
    assert accounts == []

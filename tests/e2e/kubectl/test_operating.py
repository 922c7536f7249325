"""The real kubectl, on both worlds: scale, wait, roll out, delete, drain and ask for rights."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.e2e.kubectl.shell import DEPLOYMENT, MAP, PATIENCE, POD, Run, failing, seen
from tests.worlds import Cluster


async def test_scale(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """scale by number and with a precondition."""
    await ctl("create", "-f", "-", stdin=DEPLOYMENT)
    assert await ctl("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"
    assert await ctl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    ran = await failing(cluster, namespace, "scale", "deployment/web", "--replicas=1", "--current-replicas=9")
    assert "Expected replicas to be 9, was 3" in ran.err


async def test_label_and_annotate(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """label and annotate set, overwrite only when told, and remove."""
    await ctl("create", "-f", "-", stdin=MAP)
    assert await ctl("label", "cm", "settings", "tier=db") == "configmap/settings labeled\n"
    ran = await failing(cluster, namespace, "label", "cm", "settings", "tier=web")
    assert "--overwrite is false" in ran.err
    await ctl("label", "cm", "settings", "tier=web", "--overwrite")
    assert await ctl("label", "cm", "settings", "tier-") == "configmap/settings unlabeled\n"
    assert await ctl("annotate", "cm", "settings", "note=x") == "configmap/settings annotated\n"
    assert await ctl("get", "cm", "settings", "-o", "jsonpath={.metadata.annotations.note}") == "x"
    head, row = (await ctl("get", "cm", "settings", "-L", "app", "--show-labels")).splitlines()
    assert head.split()[-2:] == ["APP", "LABELS"]
    assert row.split()[-2:] == ["web", "app=web"]


async def test_wait(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """wait for a condition, a value, a deletion; it ends with an error when time is up."""
    await ctl("create", "-f", "-", stdin=POD)
    ran = await failing(cluster, namespace, "wait", "--for=condition=Ready", "pod/one", "--timeout=1s")
    assert ran.err == "error: timed out waiting for the condition on pods/one\n"
    patch = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    await ctl("patch", "pod", "one", "--subresource=status", "--type=merge", "-p", patch)
    assert await ctl("wait", "--for=condition=Ready", "pod/one", PATIENCE) == "pod/one condition met\n"
    assert "condition met" in await ctl("wait", "--for=jsonpath={.status.phase}=Running", "pod/one", PATIENCE)
    waiting = asyncio.create_task(ctl("wait", "--for=delete", "pod/one", PATIENCE))
    await ctl("delete", "pod", "one", "--wait=false", "--grace-period=0", "--force")
    assert await waiting in ("pod/one condition met\n", "")


async def test_rollout(ctl: Run) -> None:
    """rollout: pause, history, resume, and set image, which makes a new revision."""
    await ctl("apply", "-f", "-", stdin=DEPLOYMENT)
    await ctl("wait", "--for=jsonpath={.status.observedGeneration}=1", "deployment/web", PATIENCE)
    assert await ctl("set", "image", "deployment/web", "main=nginx:1.29") == "deployment.apps/web image updated\n"
    await ctl("wait", "--for=jsonpath={.status.observedGeneration}=2", "deployment/web", PATIENCE)
    assert "2         <none>" in await ctl("rollout", "history", "deployment/web")
    assert await ctl("rollout", "pause", "deployment/web") == "deployment.apps/web paused\n"
    assert await ctl("rollout", "resume", "deployment/web") == "deployment.apps/web resumed\n"


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
async def test_delete_cascade(ctl: Run, cascade: str) -> None:
    """delete in its three ways: the dependants follow, go first, or stay."""
    await ctl("apply", "-f", "-", stdin=DEPLOYMENT)
    await ctl("wait", "--for=jsonpath={.status.updatedReplicas}=2", "deployment/web", PATIENCE)
    gone = await ctl("delete", "deployment", "web", f"--cascade={cascade}", PATIENCE)
    assert gone.startswith('deployment.apps "web" deleted')
    if cascade == "orphan":
        assert "web-" in await ctl("get", "rs", "-o", "name")
        return
    for _ in range(300):
        left = await ctl("get", "rs,pods", "-l", "app=web", "-o", "name")
        if not left:
            return
        await asyncio.sleep(0.2)
    pytest.fail(f"still there: {left}")


async def test_delete(ctl: Run) -> None:
    """delete by file, by label, by name; what is not there is an error unless told otherwise."""
    await ctl("create", "-f", "-", stdin=f"{MAP}---\n{POD}")
    assert 'configmap "settings" deleted' in await ctl("delete", "cm", "-l", "app=web")
    assert "deleted" in await ctl("delete", "-f", "-", stdin=POD)
    assert await ctl("delete", "pod", "one", "--ignore-not-found") == ""


async def test_events(ctl: Run) -> None:
    """events of an object, oldest first."""
    await ctl("create", "-f", "-", stdin=POD)
    pod = await seen(ctl, "get", "pod", "one")
    about = {"apiVersion": "v1", "kind": "Pod", **{key: pod["metadata"][key] for key in ("name", "namespace", "uid")}}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one.1"},
        "involvedObject": about,
        "reason": "Noted",
        "message": "something was seen",
        "type": "Normal",
        "firstTimestamp": pod["metadata"]["creationTimestamp"],
        "lastTimestamp": pod["metadata"]["creationTimestamp"],
        "count": 1,
        "source": {"component": "test"},
    }
    await ctl("create", "-f", "-", stdin=json.dumps(event))
    text = await ctl("events", "--for", "pod/one")
    assert text.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "something was seen" in text
    assert "something was seen" in await ctl("describe", "pod", "one")
    assert "Noted" in await ctl("get", "events", "--field-selector=involvedObject.name=one")


async def test_auth(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """auth can-i and whoami; another user is refused in the server's words."""
    assert await ctl("auth", "can-i", "create", "pods") == "yes\n"
    assert "admin" in await ctl("auth", "whoami")
    ran = await cluster.kubectl("-n", namespace, "auth", "can-i", "create", "pods", "--as=ann")
    assert ran.out == "no\n"
    ran = await cluster.kubectl("-n", namespace, "get", "pods", user="ann")
    assert ran.err == (
        'Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods" '
        f'in API group "" in the namespace "{namespace}"\n'
    )


async def test_cordon_and_taint(ctl: Run, cluster: Cluster) -> None:
    """Nodes are cordoned, tainted and labelled."""
    name = cluster.unique("node")
    await ctl("create", "-f", "-", stdin=f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n")
    assert await ctl("cordon", name) == f"node/{name} cordoned\n"
    assert await ctl("taint", "node", name, "gpu=yes:NoSchedule") == f"node/{name} tainted\n"
    assert "SchedulingDisabled" in await ctl("get", "node", name)
    assert await ctl("uncordon", name) == f"node/{name} uncordoned\n"
    await ctl("delete", "node", name)


async def test_drain(ctl: Run, cluster: Cluster) -> None:
    """drain evicts the pods of a node that a controller will replace."""
    name = cluster.unique("drain")
    await ctl("create", "-f", "-", stdin=f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n")
    await ctl("create", "-f", "-", stdin=POD.replace('nodeSelector: {nowhere: "true"}', f"nodeName: {name}"))
    await ctl("patch", "pod", "one", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Succeeded"}}')
    text = await ctl("drain", name, "--force", PATIENCE)
    assert f"node/{name} drained" in text
    await ctl("delete", "node", name)


async def test_raw(ctl: Run) -> None:
    """get --raw reads any path."""
    assert json.loads(await ctl("get", "--raw", "/api"))["kind"] == "APIVersions"
    assert await ctl("get", "--raw", "/readyz") == "ok"


async def test_set_image_and_undo(ctl: Run) -> None:
    """A new image makes a revision, and undo brings the old one back."""
    await ctl("create", "-f", "-", stdin=DEPLOYMENT)
    image = ("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    await ctl("wait", "--for=jsonpath={.status.observedGeneration}=1", "deployment/web", PATIENCE)
    assert await ctl("set", "image", "deployment/web", "main=nginx:2") == "deployment.apps/web image updated\n"
    assert await ctl(*image) == "nginx:2"
    await ctl("wait", "--for=jsonpath={.status.observedGeneration}=2", "deployment/web", PATIENCE)
    assert (await ctl("rollout", "history", "deployment/web")).split()[-4:] == ["1", "<none>", "2", "<none>"]
    assert await ctl("rollout", "undo", "deployment/web") == "deployment.apps/web rolled back\n"
    assert await ctl(*image) == "nginx:1.27"


async def test_autoscale(ctl: Run) -> None:
    """An autoscaler is made for a workload, and shows its target."""
    await ctl("create", "-f", "-", stdin=DEPLOYMENT)
    await ctl("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu=50%")
    assert "Deployment/web" in await ctl("get", "hpa", "web")

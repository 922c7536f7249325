"""The real kubectl, on both worlds: what people type has to work and to look as they know it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.worlds import Cluster, Ran, kubectl

Run = Callable[..., Awaitable[str]]

# Far above what anything takes on a busy machine: only what never happens is to fail.
PATIENCE = "--timeout=180s"

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:1.27", ports: [{containerPort: 80}]}
"""
MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {color: red, size: big}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: one}}
spec:
  nodeSelector: {nowhere: "true"}
  containers: [{name: main, image: "busybox:1.36", command: [sleep, "100"]}]
"""


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    """A fresh namespace."""
    return await cluster.namespace()


@pytest.fixture
def ctl(cluster: Cluster, namespace: str) -> Run:
    """kubectl in the test's namespace; it has to succeed, and its output comes back."""

    async def run(*arguments: str, stdin: str = "") -> str:
        ran = await cluster.kubectl("-n", namespace, *arguments, stdin=stdin)
        assert ran.code == 0, f"kubectl {' '.join(arguments)}: {ran.err}"
        return ran.out

    return run


async def failing(cluster: Cluster, namespace: str, *arguments: str, stdin: str = "") -> Ran:
    """A kubectl that has to fail."""
    ran = await cluster.kubectl("-n", namespace, *arguments, stdin=stdin)
    assert ran.code != 0, ran.out
    return ran


async def seen(ctl: Run, *arguments: str, stdin: str = "") -> Any:
    """The object that kubectl prints as JSON."""
    return json.loads(await ctl(*arguments, "-o", "json", stdin=stdin))


async def test_version(ctl: Run) -> None:
    """kubectl sees a server of 1.35."""
    assert "Server Version: v1.35." in await ctl("version")


async def test_cluster_info(ctl: Run) -> None:
    """cluster-info finds the control plane."""
    assert "is running at" in await ctl("cluster-info")


async def test_api_resources(ctl: Run) -> None:
    """api-resources lists kinds with short names, scope and verbs."""
    lines = (await ctl("api-resources", "-o", "wide")).splitlines()
    pods = next(line for line in lines if line.startswith("pods "))
    assert pods.split()[1:5] == ["po", "v1", "true", "Pod"]
    names = (await ctl("api-resources", "--namespaced=false", "-o", "name")).split()
    assert {"nodes", "namespaces", "priorityclasses.scheduling.k8s.io"} <= set(names)


async def test_api_versions(ctl: Run) -> None:
    """api-versions lists what is served."""
    versions = (await ctl("api-versions")).split()
    assert {"v1", "apps/v1", "scheduling.k8s.io/v1alpha1", "policy/v1"} <= set(versions)


async def test_explain(ctl: Run) -> None:
    """explain shows fields and their descriptions from the server's schemas."""
    text = await ctl("explain", "pod.spec.containers")
    assert "KIND:       Pod" in text
    assert "image\t<string>" in text
    assert "FIELD: containers <[]Container>" in text
    assert "schedulingGates\t<[]PodSchedulingGate>" in await ctl("explain", "pod.spec")


async def test_explain_custom(ctl: Run, cluster: Cluster, tmp_path: Path) -> None:
    """explain knows custom resources too."""
    group = f"{cluster.unique('explain')}.example.com"
    await ctl("apply", "-f", "-", stdin=crd(group))
    await ctl("wait", "--for=condition=Established", f"crd/widgets.{group}", PATIENCE)
    for attempt in range(100):
        # kubectl remembers what a group looked like a moment after it was made: each attempt asks anew.
        ran = await cluster.kubectl("explain", f"widgets.{group}.spec", "--cache-dir", str(tmp_path / str(attempt)))
        if ran.code == 0:
            break
        await asyncio.sleep(0.2)
    assert "size\t<integer>" in ran.out
    assert "How big it is." in ran.out


def crd(group: str) -> str:
    """A CRD with columns, status and scale."""
    spec = {"type": "object", "properties": {"size": {"type": "integer", "description": "How big it is."}}}
    status = {"type": "object", "properties": {"size": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Wide", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        ],
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    return str(yaml.safe_dump({**document, "metadata": {"name": f"widgets.{group}"}}))


async def test_custom_resource(ctl: Run, cluster: Cluster) -> None:
    """Custom resources are applied, listed in their columns, scaled and deleted."""
    group = f"{cluster.unique('kubectl')}.example.com"
    await ctl("apply", "-f", "-", stdin=crd(group))
    await ctl("wait", "--for=condition=Established", f"crd/widgets.{group}", PATIENCE)
    widget = f"apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {{size: 3}}\n"
    for _ in range(100):
        ran = await cluster.kubectl("-n", "default", "get", f"widgets.{group}")
        if ran.code == 0:
            break
        await asyncio.sleep(0.2)
    assert await ctl("apply", "-f", "-", stdin=widget) == f"widget.{group}/a created\n"
    head, row = (await ctl("get", f"widgets.{group}")).splitlines()
    assert (head.split(), row.split()) == (["NAME", "SIZE"], ["a", "3"])
    assert (await ctl("get", f"widgets.{group}", "-o", "wide")).splitlines()[0].split() == ["NAME", "SIZE", "WIDE"]
    await ctl("scale", f"widgets.{group}/a", "--replicas=5")
    assert await ctl("get", f"widgets.{group}/a", "-o", "jsonpath={.spec.size}") == "5"
    assert "deleted" in await ctl("delete", f"widgets.{group}", "a")


async def test_create_and_get(ctl: Run) -> None:
    """create -f and get, as a table and by name."""
    assert await ctl("create", "-f", "-", stdin=MAP) == "configmap/settings created\n"
    head, row = (await ctl("get", "configmap", "settings")).splitlines()
    assert head.split() == ["NAME", "DATA", "AGE"]
    assert row.split()[:2] == ["settings", "2"]
    assert await ctl("get", "cm", "-l", "app=web", "-o", "name") == "configmap/settings\n"


async def test_get_wide(ctl: Run) -> None:
    """get -o wide shows the columns of lower priority."""
    await ctl("create", "-f", "-", stdin=POD)
    head, row = (await ctl("get", "pods", "-o", "wide")).splitlines()
    assert head.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "NOMINATED NODE" in head
    assert row.split()[:4] == ["one", "0/1", "Pending", "0"]


async def test_get_outputs(ctl: Run) -> None:
    """get as YAML, JSON, JSON path, custom columns and Go template."""
    await ctl("create", "-f", "-", stdin=MAP)
    assert yaml.safe_load(await ctl("get", "cm", "settings", "-o", "yaml"))["data"] == {"color": "red", "size": "big"}
    assert (await seen(ctl, "get", "cm", "settings"))["kind"] == "ConfigMap"
    assert await ctl("get", "cm", "settings", "-o", "jsonpath={.data.color}") == "red"
    listed = await ctl("get", "cm", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}")
    assert listed == "settings"
    text = await ctl("get", "cm", "settings", "-o", "custom-columns=NAME:.metadata.name,C:.data.color")
    assert text.split() == ["NAME", "C", "settings", "red"]
    assert await ctl("get", "cm", "settings", "-o", "go-template={{.data.size}}") == "big"


async def test_get_several(ctl: Run) -> None:
    """Several kinds at once, and all."""
    await ctl("create", "-f", "-", stdin=f"{MAP}---\n{POD}")
    text = await ctl("get", "cm,pods", "-l", "app in (web, one)")
    assert "configmap/settings" in text
    assert "pod/one" in text
    assert "pod/one" in await ctl("get", "all")


async def test_get_missing(cluster: Cluster, namespace: str, ctl: Run) -> None:
    """A missing object is said in the server's words; an empty list is none."""
    ran = await failing(cluster, namespace, "get", "pod", "missing")
    assert ran.err == 'Error from server (NotFound): pods "missing" not found\n'
    empty = await cluster.kubectl("-n", namespace, "get", "pods")
    assert empty.err == f"No resources found in {namespace} namespace.\n"
    assert await ctl("get", "pod", "missing", "--ignore-not-found") == ""


async def test_unknown_kind(cluster: Cluster, namespace: str) -> None:
    """A kind that is not served is said so."""
    ran = await failing(cluster, namespace, "get", "nothings")
    assert ran.err == 'error: the server doesn\'t have a resource type "nothings"\n'


async def test_get_watch(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """get -w prints a line for every change, until it is stopped."""
    await ctl("create", "-f", "-", stdin=MAP)
    process = await asyncio.create_subprocess_exec(
        kubectl(), "-n", namespace, "get", "cm", "-l", "app=web", "-w", "-o", "jsonpath={.data.color}{'\\n'}",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=await cluster.kubectl_environment(),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(180):
            assert await process.stdout.readline() == b"red\n"
            await ctl("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"color":"blue"}}')
            assert await process.stdout.readline() == b"blue\n"
    finally:
        process.terminate()
        await process.wait()


async def test_watch_table(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """get -w as a table shows a row for every change."""
    await ctl("create", "-f", "-", stdin=POD)
    process = await asyncio.create_subprocess_exec(
        kubectl(), "-n", namespace, "get", "pods", "-w",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=await cluster.kubectl_environment(),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(180):
            assert (await process.stdout.readline()).split()[:2] == [b"NAME", b"READY"]
            assert (await process.stdout.readline()).split()[:3] == [b"one", b"0/1", b"Pending"]
            await ctl("delete", "pod", "one", "--wait=false")
            assert (await process.stdout.readline()).split()[0] == b"one"
    finally:
        process.terminate()
        await process.wait()


async def test_describe(ctl: Run) -> None:
    """describe shows the object and its events."""
    await ctl("create", "-f", "-", stdin=POD)
    text = await ctl("describe", "pod", "one")
    for line in ("Name:             one", "Status:           Pending", "nowhere=true"):
        assert line in text
    assert "Image:      busybox:1.36" in text
    assert "Events:" in text
    await ctl("create", "-f", "-", stdin=MAP)
    assert "color:\n----\nred" in await ctl("describe", "cm", "settings")
    assert "Name:         default" in await ctl("describe", "namespace", "default")


async def test_describe_deployment(ctl: Run) -> None:
    """describe follows a deployment to its replica sets."""
    await ctl("apply", "-f", "-", stdin=DEPLOYMENT)
    await ctl("wait", "--for=jsonpath={.status.updatedReplicas}=2", "deployment/web", PATIENCE)
    text = await ctl("describe", "deployment", "web")
    assert "Replicas:               2 desired | 2 updated | 2 total" in text
    assert "StrategyType:           RollingUpdate" in text
    assert "NewReplicaSet:   web-" in text


async def test_apply(ctl: Run) -> None:
    """apply creates, says when nothing changed, configures, and removes what was dropped from the file."""
    assert await ctl("apply", "-f", "-", stdin=MAP) == "configmap/settings created\n"
    assert await ctl("apply", "-f", "-", stdin=MAP) == "configmap/settings unchanged\n"
    changed = MAP.replace("color: red, size: big", "color: blue")
    assert await ctl("apply", "-f", "-", stdin=changed) == "configmap/settings configured\n"
    assert (await seen(ctl, "get", "cm", "settings"))["data"] == {"color": "blue"}


async def test_apply_merges_lists(ctl: Run) -> None:
    """Client-side apply merges containers by name."""
    await ctl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert await ctl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    await ctl("apply", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1.27", "nginx:1.28"))
    image = await ctl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert image == "nginx:1.28"


async def test_apply_server_side(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """Server-side apply with managers, a conflict in kubectl's words, and force."""
    assert await ctl("apply", "--server-side", "-f", "-", stdin=MAP) == "configmap/settings serverside-applied\n"
    changed = MAP.replace("red", "blue")
    arguments = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    ran = await failing(cluster, namespace, *arguments, stdin=changed)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.color' in ran.err
    await ctl(*arguments, "--force-conflicts", stdin=changed)
    assert await ctl("get", "cm", "settings", "-o", "jsonpath={.data.color}") == "blue"


async def test_apply_to_server_side(ctl: Run) -> None:
    """What was applied client-side can be applied server-side after."""
    await ctl("apply", "-f", "-", stdin=MAP)
    await ctl("apply", "--server-side", "-f", "-", stdin=MAP.replace("red", "green"))
    assert await ctl("get", "cm", "settings", "-o", "jsonpath={.data.color}") == "green"


async def test_diff(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """diff shows what apply would change, with code 1."""
    await ctl("apply", "-f", "-", stdin=MAP)
    ran = await cluster.kubectl("-n", namespace, "diff", "-f", "-", stdin=MAP.replace("red", "blue"))
    assert ran.code == 1
    assert "-  color: red" in ran.out
    assert "+  color: blue" in ran.out


async def test_dry_run(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """--dry-run=server asks and leaves nothing."""
    assert "created (server dry run)" in await ctl("apply", "-f", "-", "--dry-run=server", stdin=MAP)
    await failing(cluster, namespace, "get", "cm", "settings")


async def test_validation(cluster: Cluster, namespace: str) -> None:
    """A typo is refused by strict validation, which kubectl asks for by default."""
    ran = await failing(
        cluster, namespace, "apply", "-f", "-", stdin=POD.replace("containers:", "contaners: 1\n  containers:")
    )
    assert 'strict decoding error: unknown field "spec.contaners"' in ran.err


async def test_create_commands(ctl: Run) -> None:
    """create makes kinds from flags."""
    assert await ctl("create", "configmap", "made", "--from-literal=k=v") == "configmap/made created\n"
    assert await ctl("create", "secret", "generic", "made", "--from-literal=k=v") == "secret/made created\n"
    assert await ctl("create", "serviceaccount", "made") == "serviceaccount/made created\n"
    assert (
        await ctl("create", "deployment", "made", "--image=nginx", "--replicas=0") == "deployment.apps/made created\n"
    )
    assert await ctl("create", "service", "clusterip", "made", "--tcp=80:8080") == "service/made created\n"
    assert await ctl("create", "job", "made", "--image=busybox") == "job.batch/made created\n"
    assert (
        await ctl("create", "cronjob", "made", "--image=busybox", "--schedule=0 0 1 1 *")
        == "cronjob.batch/made created\n"
    )
    assert (
        await ctl("create", "role", "made", "--verb=get", "--resource=pods")
        == "role.rbac.authorization.k8s.io/made created\n"
    )
    assert (
        await ctl("create", "rolebinding", "made", "--role=made", "--user=ann")
        == "rolebinding.rbac.authorization.k8s.io/made created\n"
    )
    assert (
        await ctl("create", "poddisruptionbudget", "made", "--selector=a=b", "--min-available=1")
        == "poddisruptionbudget.policy/made created\n"
    )
    assert (await ctl("create", "token", "made")).count(".") == 2


async def test_create_namespace(ctl: Run, cluster: Cluster) -> None:
    """Namespaces are created and deleted, and kubectl waits for the end."""
    name = cluster.unique("made")
    assert await ctl("create", "namespace", name) == f"namespace/{name} created\n"
    assert await ctl("delete", "namespace", name, PATIENCE) == f'namespace "{name}" deleted\n'


async def test_run(ctl: Run) -> None:
    """run makes a pod."""
    assert await ctl("run", "made", "--image=busybox", "--restart=Never", "--", "sleep", "1") == "pod/made created\n"
    assert await ctl("get", "pod", "made", "-o", "jsonpath={.spec.containers[0].args}") == '["sleep","1"]'


async def test_expose(ctl: Run) -> None:
    """expose makes a service for a deployment."""
    await ctl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert await ctl("expose", "deployment", "web", "--port=80") == "service/web exposed\n"
    assert await ctl("get", "service", "web", "-o", "jsonpath={.spec.selector.app}") == "web"


async def test_replace(ctl: Run, cluster: Cluster, namespace: str) -> None:
    """replace puts a whole object; an old version conflicts."""
    await ctl("create", "-f", "-", stdin=MAP)
    old = await seen(ctl, "get", "cm", "settings")
    assert await ctl("replace", "-f", "-", stdin=MAP.replace("red", "blue")) == "configmap/settings replaced\n"
    ran = await failing(cluster, namespace, "replace", "-f", "-", stdin=json.dumps({**old, "data": {"color": "x"}}))
    assert "the object has been modified" in ran.err
    assert "replaced" in await ctl("replace", "--force", "-f", "-", stdin=MAP)


# A kind that no controller writes to: kubectl compares the object before and after.
TEMPLATE = """
apiVersion: v1
kind: PodTemplate
metadata: {name: web}
template:
  metadata: {labels: {app: web}}
  spec:
    containers:
    - {name: main, image: "nginx:1.27"}
"""
PATCHES = {
    "strategic": ('{"template":{"spec":{"containers":[{"name":"main","image":"new"}]}}}', "new"),
    "merge": ('{"template":{"spec":{"containers":[{"name":"main","image":"newer"}]}}}', "newer"),
    "json": ('[{"op":"replace","path":"/template/spec/containers/0/image","value":"newest"}]', "newest"),
}


@pytest.mark.parametrize("kind", PATCHES)
async def test_patch(ctl: Run, kind: str) -> None:
    """patch in its three types."""
    patch, image = PATCHES[kind]
    await ctl("create", "-f", "-", stdin=TEMPLATE)
    assert await ctl("patch", "podtemplate", "web", f"--type={kind}", "-p", patch) == "podtemplate/web patched\n"
    assert await ctl("get", "podtemplate", "web", "-o", "jsonpath={..containers[0].image}") == image
    again = await ctl("patch", "podtemplate", "web", f"--type={kind}", "-p", patch)
    assert again == "podtemplate/web patched (no change)\n"


async def test_patch_status(ctl: Run) -> None:
    """patch --subresource=status."""
    await ctl("create", "-f", "-", stdin=POD)
    await ctl("patch", "pod", "one", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Running"}}')
    assert await ctl("get", "pod", "one", "-o", "jsonpath={.status.phase}") == "Running"


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

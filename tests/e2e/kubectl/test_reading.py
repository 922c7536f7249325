"""The real kubectl, on both worlds: what it shows has to look as people know it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from tests.e2e.kubectl.shell import DEPLOYMENT, MAP, PATIENCE, POD, Run, failing, seen
from tests.worlds import Cluster, kubectl


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

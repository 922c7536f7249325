"""The real kubectl, on both worlds: create, apply, replace and patch as people type it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.kubectl.shell import DEPLOYMENT, MAP, PATIENCE, POD, Run, failing, seen
from tests.worlds import Cluster


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

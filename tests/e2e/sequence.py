"""What a user sees, command by command, with the real kubectl: the contract's sequence, from apply to delete."""

from __future__ import annotations

import json
import os
from pathlib import Path

import yaml

from spinney.api.meta import Json
from tests import make
from tests.worlds import kubectl, run

RESOURCES = {"kai": "podgroups.scheduling.run.ai", "default": "workloads.scheduling.k8s.io"}
GATES = {"kai": "grove.io/podgang", "default": "scheduling.k8s.io/workload"}
SCHEDULERS = {"kai": "kai-scheduler", "default": ""}
EVERYTHING = "podcliquesets,podcliques,podgangs,pods,services,serviceaccounts,roles,rolebindings,secrets"
GANG = "train-0"
PATIENCE = "--timeout=120s"


class Shell:
    """kubectl in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str = "default") -> None:
        cache = kubeconfig.with_name("kubectl-cache")
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(cache)}
        self.namespace = namespace

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """The output of a command that must succeed."""
        ran = await run(kubectl(), *arguments, "--namespace", self.namespace, stdin=stdin, env=self._env)
        assert ran.code == 0, f"kubectl {' '.join(arguments)}: {ran.err}"
        return ran.out

    async def names(self, resources: str) -> set[str]:
        """The objects of some kinds, without what every namespace has."""
        printed = await self("get", resources, "-o", "name")
        return {name for name in printed.split() if not name.endswith(("/default", "/kubernetes"))}

    async def history(self, since: str, count: int) -> list[Json]:
        """What `kubectl get pods --watch` would have shown of so many new pods since a version of their list."""
        for seconds in (1, 5, 30):  # a busy server may not get around to all of it before it has to end the watch
            query = f"watch=1&resourceVersion={since}&timeoutSeconds={seconds}"
            lines = (await self("get", "--raw", f"/api/v1/namespaces/{self.namespace}/pods?{query}")).splitlines()
            events = [json.loads(line) for line in lines]
            added = [event["object"] for event in events if event["type"] == "ADDED"]
            if len(added) >= count:
                break
        return added


def training(backend: str, **spec: object) -> str:
    """The training example: one master, four workers of which three must run, twice."""
    named = {"schedulerName": SCHEDULERS[backend], **spec} if SCHEDULERS[backend] else spec
    pcs = make.pcs("train", "", replicas=2).clique("master", 1, **named).clique("workers", 4, 3, **named)
    for clique in pcs.object["spec"]["template"]["cliques"]:
        # The documents' manifests name a clique and leave the role out.
        del clique["spec"]["roleName"]
    return yaml.safe_dump(pcs.build())


async def apply_get_patch_delete(shell: Shell, backend: str, **spec: object) -> None:
    """From apply to Running, scaled from 2 to 3, deleted; the backend's objects come and go with the gangs."""
    version = json.loads(await shell("get", "--raw", f"/api/v1/namespaces/{shell.namespace}/pods"))["metadata"]
    assert "created" in await shell("apply", "-f", "-", stdin=training(backend, **spec))
    await shell("wait", "pcs/train", "--for=jsonpath={.status.ready}=2/2", PATIENCE)
    header, line = (await shell("get", "pcs")).splitlines()
    assert header.split()[:3] == ["NAME", "REPLICAS", "READY"]
    assert line.split()[:3] == ["train", "2", "2/2"]

    assert await shell.names("podgangs") == {f"podgang.scheduler.grove.io/train-{index}" for index in range(2)}
    path = "{.metadata.labels.grove\\.io/scheduler-backend}"
    assert await shell("get", "podgang", GANG, "-o", f"jsonpath={path}") == backend
    resources = await shell.names(RESOURCES[backend])
    assert len(resources) == 2
    # A set is ready with what it needs at least: the fourth worker may come later.
    await shell("wait", "pods", "--all", "--for=jsonpath={.status.phase}=Running", PATIENCE)
    born = await shell.history(version["resourceVersion"], 10)
    assert len(born) == 10
    assert all(_pending_behind(pod, GATES[backend]) for pod in born)
    pods = await shell("get", "pods", "-o", "jsonpath={range .items[*]}{.status.phase} {.spec.schedulingGates}{end}")
    assert pods == "Running " * 10

    await shell("patch", "pcs", "train", "--type=merge", "-p", '{"spec": {"replicas": 3}}')
    await shell("wait", "pcs/train", "--for=jsonpath={.status.ready}=3/3", PATIENCE)
    scaled = await shell.names(RESOURCES[backend])
    assert len(scaled) == 3
    assert resources < scaled

    await shell("delete", "pcs", "train", PATIENCE)
    for left in await shell.names(f"{EVERYTHING},{RESOURCES[backend]}"):
        await shell("wait", left, "--for=delete", PATIENCE)
    assert await shell.names(f"{EVERYTHING},{RESOURCES[backend]}") == set()


def _pending_behind(pod: Json, gate: str) -> bool:
    return bool(pod["status"]["phase"] == "Pending" and pod["spec"]["schedulingGates"] == [{"name": gate}])

"""What a user sees, command by command, with the real kubectl: the contract's sequence, for `kai` and `default`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from spinney.cli.laptop import Options, laptop
from spinney.embedded.nodes.profile import Profile
from tests import make
from tests.worlds import kubectl, run

GANG = "train-0"
RESOURCES = {"kai": "podgroups.scheduling.run.ai", "default": "workloads.scheduling.k8s.io"}
SCHEDULERS = {"kai": "kai-scheduler", "default": ""}
EVERYTHING = "podcliquesets,podcliques,podgangs,pods,services,serviceaccounts,roles,rolebindings,secrets"


class Shell:
    """kubectl in one namespace."""

    def __init__(self, kubeconfig: Path) -> None:
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """The output of a command that must succeed."""
        ran = await run(kubectl(), *arguments, stdin=stdin, env=self._env)
        assert ran.code == 0, f"kubectl {' '.join(arguments)}: {ran.err}"
        return ran.out

    async def names(self, resources: str) -> set[str]:
        """The objects of some kinds, without what every namespace has."""
        found = await self("get", resources, "-o", "name")
        return {name for name in found.split() if not name.endswith(("/default", "/kubernetes"))}


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """A cluster with everything in it, and the way into it."""
    kubeconfig = tmp_path / "kubeconfig"
    options = Options(nodes=Profile(count=4, racks=2), port=0, kubeconfig=kubeconfig)
    async with laptop(options):
        yield Shell(kubeconfig)


def training(backend: str) -> str:
    """The training example: one master, four workers of which three must run, twice."""
    spec = {"schedulerName": SCHEDULERS[backend]} if SCHEDULERS[backend] else {}
    pcs = make.pcs("train", replicas=2).clique("master", 1, **spec).clique("workers", 4, 3, **spec)
    for clique in pcs.object["spec"]["template"]["cliques"]:
        # The documents' manifests name a clique and leave the role out.
        del clique["spec"]["roleName"]
    return yaml.safe_dump(pcs.build())


@pytest.mark.parametrize("backend", RESOURCES)
async def test_apply_get_patch_delete(shell: Shell, backend: str) -> None:
    """From apply to Running, scaled from 2 to 3, deleted; the backend's objects come and go with the gangs."""
    assert "created" in await shell("apply", "-f", "-", stdin=training(backend))
    await shell("wait", "pcs/train", "--for=jsonpath={.status.ready}=2/2", "--timeout=120s")
    header, line = (await shell("get", "pcs")).splitlines()
    assert header.split()[:3] == ["NAME", "REPLICAS", "READY"]
    assert line.split()[:3] == ["train", "2", "2/2"]

    assert await shell.names("podgangs") == {f"podgang.scheduler.grove.io/train-{index}" for index in range(2)}
    path = "{.metadata.labels.grove\\.io/scheduler-backend}"
    assert await shell("get", "podgang", GANG, "-o", f"jsonpath={path}") == backend
    resources = await shell.names(RESOURCES[backend])
    assert len(resources) == 2
    pods = await shell("get", "pods", "-o", "jsonpath={range .items[*]}{.status.phase} {.spec.schedulingGates}{end}")
    assert pods == "Running " * 10

    await shell("patch", "pcs", "train", "--type=merge", "-p", '{"spec": {"replicas": 3}}')
    await shell("wait", "pcs/train", "--for=jsonpath={.status.ready}=3/3", "--timeout=120s")
    scaled = await shell.names(RESOURCES[backend])
    assert len(scaled) == 3
    assert resources < scaled

    await shell("delete", "pcs", "train", "--timeout=120s")
    for left in await shell.names(f"podgangs,pods,podcliques,{RESOURCES[backend]}"):
        await shell("wait", left, "--for=delete", "--timeout=120s")
    assert await shell.names(f"{EVERYTHING},{RESOURCES[backend]}") == set()

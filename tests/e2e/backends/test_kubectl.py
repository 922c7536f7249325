"""The contract's sequence with the real kubectl, on a laptop (on a real cluster: `test_kube_scheduler`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from spinney.app.laptop import Options, laptop
from spinney.embedded.nodes.profile import Profile
from tests.e2e.sequence import PATIENCE, RESOURCES, Shell, apply_get_patch_delete

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """A cluster with everything in it, and the way into it."""
    kubeconfig = tmp_path / "kubeconfig"
    options = Options(nodes=Profile(count=4, racks=2), port=0, kubeconfig=kubeconfig)
    async with laptop(options):
        yield Shell(kubeconfig)


@pytest.mark.parametrize("backend", RESOURCES)
async def test_apply_get_patch_delete(shell: Shell, backend: str) -> None:
    """From apply to Running, scaled from 2 to 3, deleted; the backend's objects come and go with the gangs."""
    await apply_get_patch_delete(shell, backend)


async def test_the_training_example_runs_as_it_is_written(shell: Shell) -> None:
    """GPUs under `requests` only, not preemptible by priority: accepted, and all of it runs in the default queue."""
    shell.namespace = "ml-workspace"
    folder = Path(__file__).parents[3] / "examples" / "training"
    await shell("apply", "-f", str(folder))
    await shell("wait", "pcs/ml-training", "--for=jsonpath={.status.ready}=2/2", PATIENCE)
    pods = (await shell("get", "pods", "--no-headers")).splitlines()
    assert len(pods) == 10
    assert all("Running" in pod for pod in pods)
    groups = "podgroups.scheduling.run.ai"
    await shell("wait", groups, "--all", "--for=jsonpath={.status.phase}=Running", PATIENCE)
    header, *rows = (await shell("get", groups)).splitlines()
    assert header.split() == ["NAME", "PHASE", "QUEUE", "MIN", "PRIORITY", "AGE"]
    assert [row.split()[1:5] for row in rows] == [["Running", "default-queue", "4", "high-priority"]] * 2


async def test_the_first_gang_of_the_guide_runs(shell: Shell) -> None:
    """What the guide tells to do after an installation: apply, wait, look; it needs no GPU and no set-up."""
    shell.namespace = "default"
    block = re.search(r"## Five commands\n\n```sh\n(.*?)```", (ROOT / "docs/users/install.md").read_text(), re.DOTALL)
    assert block is not None
    commands = [shlex.split(line.replace("examples/", f"{ROOT}/examples/")) for line in block[1].splitlines()]
    assert [command[0] for command in commands] == ["helm", *["kubectl"] * 4]
    apply, wait, look = commands[2:]
    await shell(*apply[1:])
    await shell(*wait[1:])
    shown = await shell(*look[1:])
    assert "podgang.scheduler.grove.io/first-0" in shown
    assert shown.count("pod/first-0-") == 3

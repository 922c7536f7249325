"""Verbs that ask and change, on a running `up`: what they print, what they change, and what --dry-run leaves alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from spinney.api.core import Node, Pod
from spinney.api.kai import Queue
from spinney.api.meta import Json, Resource
from spinney.api.rbac import ClusterRole
from spinney.app.laptop import Laptop, Options, laptop
from spinney.cli.main import main
from spinney.embedded.nodes.profile import Profile
from tests import make
from tests.waiting import until
from tests.worlds import kubectl

pytestmark = pytest.mark.asyncio(loop_scope="module")
JOB = Resource("batch/v1", "Job", "jobs")


@dataclass
class Up:
    """A running `up` with its kubeconfig."""

    laptop: Laptop
    kubeconfig: Path

    async def run(self, *arguments: str) -> Result:
        """A command of `spinney`, as a user types it."""
        command = [*arguments, "--kubeconfig", str(self.kubeconfig)]
        return await asyncio.to_thread(CliRunner().invoke, main, command)

    async def ok(self, *arguments: str) -> str:
        """What a command that succeeds prints."""
        result = await self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    async def kubectl(self, *arguments: str) -> str:
        """What kubectl prints."""
        command = [kubectl(), "--kubeconfig", str(self.kubeconfig), *arguments]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Up]:
    """One laptop cluster for all tests of this module: two nodes of eight GPUs."""
    path = tmp_path_factory.mktemp("up") / "kubeconfig"
    async with laptop(Options(nodes=Profile(count=2, racks=2), kubeconfig=path)) as running:
        yield Up(running, path)


def job(name: str, pods: int, gpus: int) -> Json:
    """A Job of our scheduler."""
    pod = make.pod(name).scheduler("kai-scheduler").gpus(gpus).build()["spec"]
    template = {
        "metadata": {"labels": {"kai.scheduler/queue": "default-queue"}},
        "spec": {**pod, "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


async def rows(up: Up) -> dict[str, Json]:
    """All workloads by name."""
    return {each["ref"]["name"]: each for each in json.loads(await up.ok("ls", "-o", "json"))["items"]}


async def test_a_job_is_listed_shown_and_explained(up: Up) -> None:
    """Every kind of question about one that runs and one that waits."""
    await up.laptop.client.create(JOB, job("runs", 1, 8), "default")
    await up.laptop.client.create(JOB, job("waits", 1, 64), "default")

    async def is_there() -> bool:
        by_name = await rows(up)
        return by_name["runs"]["phase"] == "Running" and (by_name["waits"]["why"] or {}).get("code") == "NoRoom"

    await until(is_there)
    table = await up.ok("ls", "job")
    assert table.splitlines()[0].split() == [
        "WORKLOAD",
        "QUEUE",
        "PRIORITY",
        "PODS",
        "GPUS",
        "PHASE",
        "AGE",
        "LINE",
        "START",
        "WHY",
    ]
    assert "no node is large enough for 64 GPUs" in table
    assert (await up.ok("ls", "-o", "name", "--phase", "waiting")).split() == ["job/waits"]
    assert "└── runs-" in await up.ok("status", "job/runs")
    assert "no node is large enough" in await up.ok("explain", "job/waits")
    assert "place 1 in the line" in (await up.ok("explain", "waits")).lower()
    assert "16 GPUs: 8 used, 8 idle" in await up.ok("capacity")
    assert "default-queue" in await up.ok("top", "--once")


async def test_a_wide_table_in_a_pipe_is_not_cut(up: Up) -> None:
    """The last column is whole, however long: nobody reads a pipe at 80 columns."""
    by_name = await rows(up)
    why = by_name["waits"]["why"]["text"]
    assert why in await up.ok("ls")


async def test_watch_without_a_terminal_prints(up: Up) -> None:
    """`spinney ls -w | head -1` shows a line and ends when its reader does."""
    command = [sys.executable, "-m", "spinney.cli", "ls", "-w", "--kubeconfig", str(up.kubeconfig)]
    watching = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert watching.stdout is not None
        assert (await watching.stdout.readline()).startswith(b"WORKLOAD")
    finally:
        watching.kill()
        await watching.wait()


async def test_watch_ends_when_its_reader_has_enough(up: Up) -> None:
    """`spinney ls -w -o json | head -1` waited for the next change of the cluster, which may never come."""
    command = [sys.executable, "-m", "spinney.cli", "ls", "-w", "-o", "json", "--kubeconfig", str(up.kubeconfig)]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: ASYNC220  # its pipe is closed by hand
    try:
        assert watching.stdout is not None
        assert await asyncio.to_thread(watching.stdout.readline) == b"{\n"
        watching.stdout.close()
        assert await asyncio.to_thread(watching.wait) in (0, 1)
    finally:
        watching.kill()


async def test_watch_shows_a_workload_whose_pods_are_refused(up: Up) -> None:
    """No pod of it ever changes."""
    command = [sys.executable, "-m", "spinney.cli", "ls", "-w", "-o", "name", "--kubeconfig", str(up.kubeconfig)]
    watching = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert watching.stdout is not None
        await watching.stdout.readline()
        refused = job("refused", 1, 1)
        refused["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
        await up.laptop.client.create(JOB, refused, "default")
        while (line := await watching.stdout.readline()) != b"job/refused\n":
            assert line
    finally:
        watching.kill()
        await watching.wait()
        await up.laptop.client.delete(JOB, ("default", "refused"))


async def test_queues_are_created_changed_moved_and_set_back(up: Up) -> None:
    """Each verb says what it did; --dry-run changes nothing; kubectl shows the numbers."""
    client = up.laptop.client
    assert "would create queue team" in await up.ok("queue", "create", "team", "--quota", "4", "--dry-run")
    assert await client.find(Queue, "team") is None
    assert "created queue team below default-parent-queue" in await up.ok(
        "queue", "create", "team", "--parent", "default-parent-queue", "--quota", "4"
    )
    assert "would change queue team" in await up.ok("queue", "set", "team", "--limit", "8", "--dry-run")
    await up.ok("queue", "set", "team", "--limit", "8", "--cpu-quota", "2")
    shares = (await client.get(Queue, "team")).spec.resources
    assert shares is not None
    assert (shares.gpu.quota, shares.gpu.limit, shares.cpu.quota) == (4, 8, 2000)
    assert "set queue team back" in await up.ok("undo", "queue/team")
    shares = (await client.get(Queue, "team")).spec.resources
    assert shares is not None
    assert (shares.gpu.limit, shares.cpu.quota) == (-1, -1)
    await up.ok("queue", "move", "team", "--parent", "")
    assert (await client.get(Queue, "team")).spec.parent_queue == ""
    header, *lines = (await up.kubectl("get", "queues")).splitlines()
    assert header.split()[-4:] == ["GPUS", "REQUESTED", "QUOTA", "LIMIT"]
    assert next(line for line in lines if line.startswith("team")).split()[-2:] == ["4", "-1"]


async def test_the_role_view_shows_gangs(up: Up) -> None:
    """Who had the role `view` in a namespace was refused PodCliqueSets, gangs and PodGroups."""

    async def shows_gangs() -> bool:
        rules = (await up.laptop.client.get(ClusterRole, "view")).rules
        seen = {resource for rule in rules for resource in rule.resources if "list" in rule.verbs}
        return {"podcliquesets", "podgangs", "podgroups"} <= seen

    await until(shows_gangs)


async def test_warnings_of_admission_are_printed(up: Up) -> None:
    """As kubectl prints them: a quota above the limit, a parent that does not exist."""
    result = await up.run("queue", "create", "odd", "--parent", "nowhere", "--quota", "8", "--limit", "4", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "warning: the quota of gpu (8) is above its limit of 4: the limit holds" in result.stderr
    assert "warning: parent queue nowhere does not exist" in result.stderr


async def test_a_workload_is_suspended_resumed_and_restarted(up: Up) -> None:
    """A suspended Job has no pods; a restarted one has new ones."""
    client = up.laptop.client
    await client.create(JOB, job("turns", 1, 1), "default")

    async def pods() -> list[str]:
        listed = await client.list(Pod, "default", labels="job-name=turns")
        return [pod.name for pod in listed.items if pod.metadata.deletion_timestamp is None]

    async def has_one() -> bool:
        return len(await pods()) == 1

    await until(has_one)
    assert "would suspend job/turns" in await up.ok("suspend", "job/turns", "--dry-run")
    assert len(await pods()) == 1
    assert "suspended job/turns (1 pod ends)" in await up.ok("suspend", "job/turns")

    async def has_none() -> bool:
        return not await pods()

    await until(has_none)
    assert (await rows(up))["turns"]["phase"] == "Suspended"
    assert "is so already" in await up.ok("suspend", "job/turns")
    assert "resumed job/turns" in await up.ok("resume", "job/turns")
    await until(has_one)
    (first,) = await pods()
    assert "would restart job/turns" in await up.ok("restart", "job/turns", "--dry-run")
    assert await pods() == [first]
    assert "restarted job/turns" in await up.ok("restart", "job/turns")

    async def is_new() -> bool:
        return await pods() not in ([], [first])

    await until(is_new)
    # It set the workload back to what it was before a change that came before the restart: suspended.
    undone = await up.run("undo", "job/turns")
    assert undone.exit_code == 1
    assert "nothing to undo (a restart cannot be taken back)" in undone.stderr
    refused = await up.run("undo", "job/nobody")
    assert refused.exit_code == 1


async def test_a_set_is_available_when_all_replicas_are(up: Up) -> None:
    """`kubectl wait --for=condition=Available` ends."""
    pcs = make.pcs("small").clique("w", 1, schedulerName="kai-scheduler").build()
    await up.laptop.client.create(Resource("grove.io/v1alpha1", "PodCliqueSet", "podcliquesets"), pcs, "default")
    assert "condition met" in await up.kubectl("wait", "--for=condition=Available", "pcs/small", "--timeout=60s")


async def test_nodes_come_and_go(up: Up) -> None:
    """Added under free names and served by the running kubelets; drained; removed."""
    client = up.laptop.client
    assert "would add node-02" in await up.ok("nodes", "add", "--nodes", "1", "--gpus", "4", "--dry-run")
    assert "added node-02" in await up.ok("nodes", "add", "--nodes", "1", "--gpus", "4")
    node = await client.get(Node, "node-02")
    assert node.status.allocatable["nvidia.com/gpu"] == "4"
    assert "would cordon node-02 and evict 0 pods" in await up.ok("nodes", "drain", "node-02", "--dry-run")
    await up.ok("nodes", "drain", "node-02")
    assert (await client.get(Node, "node-02")).spec.unschedulable
    assert "removed node-02" in await up.ok("nodes", "remove", "node-02")
    assert await client.find(Node, "node-02") is None


async def test_looking_for_nodes_added_simulated_ones_to_a_real_cluster(up: Up) -> None:
    """Pods of users were bound to them, and only seemed to run: beside real nodes, that has to be asked for."""
    client = up.laptop.client
    await client.create(Node, {"metadata": {"name": "real"}})
    try:
        refused = await up.run("nodes", "add", "--nodes", "1")
        assert refused.exit_code == 2
        assert "this cluster has real nodes, such as real" in refused.output
        assert "would add" in await up.ok("nodes", "add", "--nodes", "1", "--beside-real-nodes", "--dry-run")
    finally:
        await client.delete(Node, "real")


async def test_a_node_in_an_unknown_state_says_so(up: Up) -> None:
    """A state that nobody knows is not taken for one."""
    client = up.laptop.client
    await client.patch(Node, "node-01", {"metadata": {"annotations": {"spinney.dev/state": "Asleep"}}})

    async def says_so() -> bool:
        node = await client.get(Node, "node-01")
        return any("'Asleep'; it must be NotReady or Unreachable" in each.message for each in node.status.conditions)

    await until(says_so)
    await client.patch(Node, "node-01", {"metadata": {"annotations": {"spinney.dev/state": None}}})

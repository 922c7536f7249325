"""A user with role `view` in one namespace gets right or refused answers from every verb, never empty ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.api.batch import Job
from spinney.api.core import Pod
from spinney.api.rbac import Role, RoleBinding
from spinney.cli.main import main
from tests.waiting import object_until
from tests.worlds import Cluster

VIEW = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "view"}
READ = [
    {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]},
]
USER = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}


@pytest.fixture
async def place(cluster: Cluster) -> tuple[Path, str]:
    """The kubeconfig of a user who may view one namespace, and that namespace, with a pod in it."""
    client, namespace = cluster.client(), await cluster.namespace()
    await client.create(Role, {"metadata": {"name": "view"}, "rules": READ}, namespace)
    binding = {"metadata": {"name": "ann"}, "roleRef": VIEW, "subjects": [USER]}
    await client.create(RoleBinding, binding, namespace)
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "busybox"}]}
    await client.create(Pod, {"metadata": {"name": "waits"}, "spec": spec}, namespace)
    template = {"spec": {**spec, "restartPolicy": "Never"}}
    await client.create(Job, {"metadata": {"name": "train"}, "spec": {"template": template}}, namespace)
    await object_until(client, Pod, (namespace, "waits"), lambda pod: pod is not None)
    return await cluster.world.kubeconfig("ann", ()), namespace


async def run(place: tuple[Path, str], *arguments: str, everywhere: bool = False) -> Result:
    where = () if everywhere else ("-n", place[1])
    command = [*arguments, *where, "--kubeconfig", str(place[0])]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


@pytest.mark.parametrize("verb", [("ls",), ("status",), ("explain", "waits"), ("explain", "pod/waits")])
async def test_what_may_be_seen_is_shown(place: tuple[Path, str], verb: tuple[str, ...]) -> None:
    """The pod of the namespace, with what is known of it, and a note about what is left out."""
    result = await run(place, *verb)
    assert result.exit_code == 0, result.output
    assert "waits" in result.stdout
    assert "Scheduler nobody has said nothing about it yet." in result.stdout
    assert "you may not read Node, PodGroup, Queue and " in result.stderr


@pytest.mark.parametrize(
    "verb",
    [
        ("queues",),
        ("capacity",),
        ("top", "--once"),
        ("top",),
        ("ls", "-A"),
        ("ls", "-A", "-w"),
        ("status", "-A", "-w"),
        ("status", "-A"),
        ("evictions", "-A"),
        ("explain", "queue/team"),
        ("explain", "node/n1"),
        ("explain", "elsewhere"),
        ("snapshot", "save", "/dev/null"),
        ("whatif", "--add-nodes", "1x8gpu"),
        ("defrag",),
    ],
)
async def test_what_may_not_be_seen_is_refused(place: tuple[Path, str], verb: tuple[str, ...]) -> None:
    """With an exit code and a reason, not with an empty table."""
    result = await run(place, *verb, everywhere=True)
    assert result.exit_code == 1, result.output
    assert not result.stdout
    assert "may" in result.stderr or "needs to read" in result.stderr
    assert "forbidden" in result.stderr
    # One refusal says it: sixty of them hid what to ask for.
    assert len(result.stderr) < 500


async def test_a_minimum_that_may_not_be_read_is_not_taken_for_one(place: tuple[Path, str], cluster: Cluster) -> None:
    """A gang of three, whose PodGroup is not readable, was told to need one pod, of priority 0 and without GPUs."""
    client = cluster.client()
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "main", "image": "busybox"}]}
    metadata = {"name": "grouped", "annotations": {"pod-group-name": "pg", "gpu-memory": "20000"}}
    await client.create(Pod, {"metadata": metadata, "spec": spec}, place[1])
    listed = json.loads((await run(place, "ls", "-o", "json")).stdout)["items"]
    (grouped,) = [each for each in listed if each["ref"]["name"] == "grouped"]
    assert (grouped["minimum"], grouped["priority"], grouped["gpus"]) == (None, None, None)
    table = (await run(place, "ls")).stdout
    assert next(line for line in table.splitlines() if "pod/grouped" in line).split()[2:5] == ["?", "0/?/1", "?"]
    output = (await run(place, "explain", "pod/grouped")).stdout
    assert "priority unknown" in output
    assert "0 of 1 pod placed." in output
    assert "at least" not in (await run(place, "status", "pod/grouped")).stdout


async def test_doctor_says_what_it_may_not_look_at(place: tuple[Path, str]) -> None:
    """A check that is refused is unknown, never well."""
    result = await run(place, "doctor", "-o", "json", everywhere=True)
    findings = json.loads(result.stdout)["findings"]
    assert {"crds", "nodes", "queues", "webhooks"} <= {
        finding["check"] for finding in findings if finding["status"] == "unknown"
    }


async def test_what_may_not_be_read_does_not_get_into_the_answer(place: tuple[Path, str]) -> None:
    """Log lines about refused reads came before the JSON, which no program could read then."""
    result = await run(place, "backends", "-o", "json", everywhere=True)
    assert result.exit_code == 0, result.output
    backends = {each["name"]: each for each in json.loads(result.stdout)}
    assert backends["kai"]["runs"].startswith("unknown: leases.coordination.k8s.io")


async def test_moves_are_refused_as_a_whole(place: tuple[Path, str]) -> None:
    """Nothing is cordoned before it is known what may be read."""
    result = await run(place, "defrag", "--apply", everywhere=True)
    assert result.exit_code == 1
    assert "needs to read" in result.stderr


async def test_a_history_is_refused_before_its_file_is_touched(place: tuple[Path, str], tmp_path: Path) -> None:
    """A file without nodes and queues would replay as an empty cluster."""
    file = tmp_path / "history.jsonl"
    file.write_text("kept")
    result = await run(place, "record", str(file), "--for", "30s", everywhere=True)
    assert result.exit_code == 1, result.output
    assert "may not" in str(result.exception) or "forbidden" in str(result.exception) + result.stderr
    assert file.read_text() == "kept"


async def test_evictions_of_the_own_namespace(place: tuple[Path, str]) -> None:
    """There are none, and that is what it says."""
    result = await run(place, "evictions")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no evictions in namespace" in result.stderr


async def test_another_namespace_is_refused(place: tuple[Path, str]) -> None:
    """Not "no pod": the API server's own refusal."""
    result = await run((place[0], "other"), "explain", "pod/waits")
    assert result.exit_code == 1
    assert "you may not read Pod objects" in result.stderr


CHANGES = [
    ("suspend", "job/train"),
    ("resume", "job/train"),
    ("restart", "job/train"),
    ("undo", "job/train"),
    ("suspend", "job/train", "--dry-run"),
]
CLUSTER_CHANGES = [
    ("queue", "create", "mine", "--quota", "8"),
    ("queue", "set", "default-queue", "--quota", "8"),
    ("queue", "move", "default-queue", "--parent", ""),
    ("undo", "queue/default-queue"),
    ("nodes", "add", "--nodes", "1"),
    ("nodes", "drain", "n1"),
    ("nodes", "remove", "n1"),
    ("uninstall", "--yes"),
]


@pytest.mark.parametrize("verb", CHANGES)
async def test_a_workload_of_the_own_namespace_is_not_changed(place: tuple[Path, str], verb: tuple[str, ...]) -> None:
    """Who may only look is told so; `resume` and `undo` have nothing to do, and say that."""
    result = await run(place, *verb)
    output = result.output
    if verb[0] in ("resume", "undo"):
        assert "is so already" in output or "nothing to undo" in output
        return
    assert result.exit_code == 1, output
    assert "forbidden" in result.stderr or "may not" in result.stderr


@pytest.mark.parametrize("verb", CLUSTER_CHANGES)
async def test_what_belongs_to_the_cluster_is_not_changed(place: tuple[Path, str], verb: tuple[str, ...]) -> None:
    """The API server's own refusal, in one line."""
    result = await run(place, *verb, everywhere=True)
    assert result.exit_code == 1, result.output
    assert "forbidden" in result.stderr
    assert len(result.stderr.splitlines()) == 1

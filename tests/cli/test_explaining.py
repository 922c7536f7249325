"""`spinney explain`, `spinney queues` and `spinney snapshot run`, on a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spinney.cli.main import main
from spinney.scheduler.intake.snapshot import KINDS, Snapshot, read, write
from tests import make

Json = dict[str, Any]


def queue(name: str, parent: str = "", **gpu: float) -> Json:
    return make.queue(name, parent).metadata(uid=name).gpu(**gpu).build()


def member(name: str, group: str, gpus: int, node: str = "") -> Json:
    built = make.pod(name).scheduler("kai-scheduler").gpus(gpus).annotate("pod-group-name", group)
    pod = (built.on(node) if node else built).build()
    pod["metadata"]["uid"] = name
    pod["status"] = {"phase": "Running" if node else "Pending"}
    return pod


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One node of four GPUs: a gang of two runs, a gang of four waits, another is over its queue's limit."""
    groups = [
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"minMember": minimum, "queue": where},
        }
        for name, minimum, where in (("runs", 2, "team-a"), ("waits", 4, "team-a"), ("capped", 1, "team-b"))
    ]
    pods = [member(f"runs-{index}", "runs", 1, "n1") for index in range(2)]
    pods += [member(f"waits-{index}", "waits", 1) for index in range(4)]
    pods += [member("capped-0", "capped", 2)]
    pods += [make.pod("foreign").scheduler("default-scheduler").build(), member("early", "", 1)]
    objects = {
        "nodes": [make.node("n1", 4).build()],
        "queues": [queue("all"), queue("team-a", "all", quota=1), queue("team-b", "all", limit=1)],
        "podGroups": groups,
        "pods": pods,
    }
    path = tmp_path / "now.zip"
    path.write_bytes(write(Snapshot({KINDS[name].resource: items for name, items in objects.items()})))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_waiting_gang_is_told_what_it_lacks(file: Path) -> None:
    """The blocker, its numbers and what would help."""
    result = run("explain", "gang/waits", "--snapshot", str(file))
    assert result.exit_code == 0, result.output
    assert "0 of 4 pods placed, 4 needed together" in result.output
    assert "2 of 4 pods fit together: 1 node lacks free GPUs." in result.output
    assert "room for 2 more pods, each with 1 GPU on one node" in result.output


@pytest.mark.parametrize("kind", ["gang", "podgroup", "podgroup.scheduling.run.ai", "podgang.scheduler.grove.io"])
def test_kinds_may_be_named_as_kubectl_names_them(file: Path, kind: str) -> None:
    """What `kubectl get -o name` prints can be asked about."""
    assert run("explain", f"{kind}/waits", "--snapshot", str(file)).output.startswith("gang/waits ")


def test_a_gang_over_its_queues_limit_is_told_by_how_much(file: Path) -> None:
    """The limit to raise, and by how much."""
    result = run("explain", "pod/capped-0", "--snapshot", str(file))
    assert "Raise the limit of queue team-b by 1 GPU" in result.output


@pytest.mark.parametrize(
    ("pod_reference", "answer"),
    [
        ("pod/foreign", "Scheduler default-scheduler has said nothing about it yet."),
        ("early", "Pod early has no PodGroup yet."),
    ],
)
def test_a_pod_without_a_gang_says_what_it_waits_for(file: Path, pod_reference: str, answer: str) -> None:
    """A pod of another scheduler, or without a PodGroup, is not called missing."""
    result = run("explain", pod_reference, "--snapshot", str(file))
    assert result.exit_code == 0
    assert answer in result.output


def test_explanations_as_data(file: Path) -> None:
    """The blocker with its code, what is missing, and whether the advice was tried."""
    explained = json.loads(run("explain", "waits-0", "--snapshot", str(file), "-o", "json").output)
    assert (explained[0]["subject"], explained[0]["adviceTried"]) == ("pod/waits-0", True)
    assert (explained[0]["why"]["code"], explained[0]["why"]["missing"]) == ("NoRoom", {"gpu": 2})


def test_a_name_that_is_nothing_is_an_error(file: Path) -> None:
    """It says what was looked for and where."""
    result = run("explain", "nobody", "--snapshot", str(file))
    assert result.exit_code != 0
    assert "no workload, gang, pod, queue or node 'nobody' in namespace default" in result.output


def test_the_tree_of_queues(file: Path) -> None:
    """Children stand below their parent; what is beyond quota is borrowed."""
    reports = json.loads(run("queues", "--snapshot", str(file), "-o", "json").output)["items"]
    assert [report["name"] for report in reports] == ["all", "team-a", "team-b"]
    team = reports[1]
    assert (team["allocated"]["gpu"], team["borrowed"]["gpu"], team["requested"]["gpu"]) == (2, 1, 4)
    assert "team-a" in run("queues", "--snapshot", str(file)).output


def test_a_snapshot_can_be_planned_on(file: Path) -> None:
    """Nothing fits here, so nothing is done."""
    result = run("snapshot", "run", str(file), "-o", "json")
    assert json.loads(result.output)["decisions"] == []


def test_a_snapshot_survives_the_file(file: Path) -> None:
    """What is written is read back, and a file that is none says so."""
    taken = read(file.read_bytes())
    assert read(write(taken)) == taken
    file.write_text("hello")
    result = run("snapshot", "run", str(file))
    assert result.exit_code != 0
    assert "not a snapshot" in result.output


def test_a_gang_that_nodes_are_kept_for_is_told_so(file: Path) -> None:
    """Which nodes, since when, and how many pods are still on them; the file holds nothing else of config maps."""
    taken = read(file.read_bytes())
    kept = {"since": 0, "held": [{"job": "default/waits", "since": 4e9, "nodes": ["n1"]}]}
    data = {"reservations": json.dumps(kept), "decisions": "secret"}
    record = {"metadata": {"name": "kai-scheduler-record", "namespace": "kai"}, "data": data}
    taken.objects[KINDS["configMaps"].resource].append(record)
    taken.objects[KINDS["queues"].resource][1]["spec"]["resources"]["gpu"]["quota"] = 4
    file.write_bytes(write(taken))
    (stored,) = read(file.read_bytes()).objects[KINDS["configMaps"].resource]
    assert list(stored["data"]) == ["reservations"]
    result = run("explain", "gang/waits", "--snapshot", str(file))
    assert "kept nodes: n1; 2 pods on them have to end, 0 leave when that is enough." in result.output

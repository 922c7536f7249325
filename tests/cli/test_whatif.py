"""`spinney whatif` on a snapshot: the printed difference, JSON, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.cli.main import main
from spinney.scheduler.intake.snapshot import KINDS, Snapshot, write
from tests.answers.scene import Scene

NEW = """\
apiVersion: batch/v1
kind: Job
metadata: {name: new, labels: {kai.scheduler/queue: team}}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      schedulerName: kai-scheduler
      restartPolicy: Never
      containers: [{name: c, image: x, resources: {limits: {nvidia.com/gpu: 8}}}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two nodes of eight GPUs: one is taken by job `a`; job `b` waits for two."""
    return saved(Scene().nodes(2).queue("team").job("a", 1, 8, on="n0").job("b", 2, 8), tmp_path)


def saved(scene: Scene, tmp_path: Path) -> Path:
    """A scene as a file of `spinney snapshot save`."""
    lists = {
        kind.resource: [each for each in scene.objects if each["kind"] == kind.resource.kind] for kind in KINDS.values()
    }
    path = tmp_path / "now.zip"
    path.write_bytes(write(Snapshot(lists)))
    return path


def whatif(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["whatif", "--snapshot", str(file), *arguments])


def test_the_difference_is_printed(file: Path) -> None:
    """What starts and where, and the sum of it."""
    result = whatif(file, "--add-nodes", "1x8gpu")
    assert result.exit_code == 0, result.output
    assert "What if: add 1 node with 8 GPUs" in result.output
    assert "+ job/b" in result.output
    assert "2 pods, 16 GPUs   on n1, new-0" in result.output
    assert result.output.rstrip().endswith("1 workload would start.")


def test_several_changes_at_once_as_json_and_yaml(file: Path) -> None:
    """Both forms hold the same answer."""
    changes = ("--drain", "n0", "--add-nodes", "1x8gpu,rack=r1", "--set-limit", "team=8")
    answer = json.loads(whatif(file, *changes, "-o", "json").stdout)
    assert [each["to"] for each in answer["moved"]] == ["n1"]
    assert [each["workload"]["name"] for each in answer["stillWaiting"]] == ["b"]
    assert yaml.safe_load(whatif(file, *changes, "-o", "yaml").stdout) == answer


def test_workloads_of_a_file_are_expanded_as_their_controllers_would(file: Path, tmp_path: Path) -> None:
    """A Job becomes pods in a PodGroup; the one pod that fits starts, and the manifest is created nowhere."""
    manifest = tmp_path / "new.yaml"
    manifest.write_text(NEW)
    answer = json.loads(whatif(file, "-f", str(manifest), "-o", "json").stdout)
    assert [(each["workload"]["name"], each["pods"], each["nodes"]) for each in answer["starts"]] == [
        ("new", 1, ["n1"])
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what to change"),
        (("--set-quota", "nope=16"), "there is no queue nope; there are team"),
        (("--set-quota", "team=many"), "neither a number of GPUs"),
        (("--set-quota", "team=nan"), "neither a number of GPUs"),
        (("--set-quota", "team"), "write NAME=VALUE"),
        (("--drain", "nope"), "there is no node nope; there are n0, n1"),
        (("--add-nodes", "four"), "such as 4x8gpu"),
        (("--priority", "job/nope=5"), "there is no gang of job/nope in namespace default"),
        (("-f", "/nowhere.yaml"), "No such file"),
    ],
)
def test_mistakes_are_usage_errors(file: Path, arguments: tuple[str, ...], message: str) -> None:
    """The message says what there is, and the exit code is 2."""
    result = whatif(file, *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_wrong_manifests_are_refused(file: Path, tmp_path: Path) -> None:
    """As the API server would, with the object's name."""
    path = tmp_path / "wrong.yaml"
    path.write_text("apiVersion: x.example/v1\nkind: Wonder\nmetadata: {name: w}\n")
    result = whatif(file, "-f", str(path))
    assert result.exit_code == 2
    assert "wonder/w: kind Wonder is not known here" in result.output


def test_defrag_tells_moves_and_gains(tmp_path: Path) -> None:
    """The text names the moves and the largest gangs; `--apply` needs a cluster."""
    scene = Scene().nodes(2).queue("team").job("a", 1, 2, on="n0").job("b", 1, 2, on="n1")
    file = saved(scene, tmp_path)
    result = CliRunner().invoke(main, ["defrag", "--snapshot", str(file)])
    assert "~ default/a-0   job/a   2 GPUs   n0 → n1" in result.output
    assert "1 move would empty 1 node: 8 of 12 stranded GPUs would be together." in result.output
    assert CliRunner().invoke(main, ["defrag", "--apply", "--snapshot", str(file)]).exit_code == 2

"""`spinney backends` and `spinney render`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.api.meta import Json
from spinney.cli.backends import backends
from spinney.cli.render import render_set
from tests import make


def listed(*arguments: str) -> Result:
    """Run `spinney backends`."""
    return CliRunner().invoke(backends, arguments, catch_exceptions=False)


def test_backends_are_listed_with_gate_and_api() -> None:
    """In the order that settles ties."""
    found = json.loads(listed("--offline", "--kubernetes", "1.35", "-o", "json").stdout)
    assert [each["name"] for each in found] == ["default", "kai", "koordinator", "volcano", "yunikorn"]
    assert found[0]["writes"] == "scheduling.k8s.io/v1alpha1"
    assert found[1] == {
        "name": "kai",
        "scheduler": "kai-scheduler",
        "gate": "grove.io/podgang",
        "writes": "scheduling.run.ai/v2alpha2",
        "runs": "not looked at",
    }


def test_an_api_that_is_not_there_is_said_so() -> None:
    """Kubernetes 1.34 has no gangs."""
    assert "not served" in listed("--offline", "--kubernetes", "1.34").stdout


def test_the_capability_table_covers_every_version() -> None:
    """kube-scheduler has a column per release."""
    titles = [each["backend"] for each in json.loads(listed("--features", "-o", "json").stdout)]
    assert titles[:4] == ["default 1.35", "default 1.36", "default 1.37-flat", "default 1.37"]
    assert "| a queue |" in listed("--features", "-o", "markdown").stdout


def test_the_documentation_holds_the_table_as_it_is() -> None:
    """`docs/backends.md` carries the output of `spinney backends --features -o markdown`."""
    page = Path(__file__).resolve().parents[2] / "docs" / "backends.md"
    assert listed("--features", "-o", "markdown").stdout.strip() in page.read_text()


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """The training example of the contract, in a file."""
    path = tmp_path / "set.yaml"
    pcs = make.pcs("train").clique("master").clique("workers", 4, 3)
    path.write_text(yaml.safe_dump(pcs.build()))
    return path


def rendered(path: Path, *arguments: str) -> list[Json]:
    """The documents that `spinney render` prints."""
    result = CliRunner().invoke(render_set, ["-f", str(path), *arguments], catch_exceptions=False)
    return list(yaml.safe_load_all(result.stdout))


def test_a_set_is_rendered_whole(manifest: Path) -> None:
    """The gang, the scheduler's object, and every pod with its gate and links."""
    documents = rendered(manifest, "--backend", "kai")
    assert [document["kind"] for document in documents] == ["PodGang", "PodGroup"] + ["Pod"] * 5
    gang, group, pod = documents[:3]
    assert group["metadata"]["name"] == f"pg-train-0-{gang['metadata']['uid']}"
    assert (group["spec"]["minMember"], gang["metadata"]["labels"]["grove.io/scheduler-backend"]) == (4, "kai")
    assert pod["spec"]["schedulingGates"] == [{"name": "grove.io/podgang"}]
    assert pod["metadata"]["annotations"]["pod-group-name"] == group["metadata"]["name"]


@pytest.mark.parametrize(
    ("release", "kinds"),
    [
        ("1.35", ["Workload"]),
        ("1.36", ["Workload", "PodGroup"]),
        ("1.37", ["Workload", "CompositePodGroup", "PodGroup", "PodGroup"]),
    ],
)
def test_the_release_decides_what_kube_scheduler_gets(manifest: Path, release: str, kinds: list[str]) -> None:
    """Without a backend the set's own scheduler name chooses."""
    documents = rendered(manifest, "--kubernetes", release)
    assert [document["kind"] for document in documents if document["kind"] not in ("Pod", "PodGang")] == kinds


def test_all_shows_what_each_loses(manifest: Path) -> None:
    """Side by side, before the objects."""
    document = yaml.safe_load(manifest.read_text())
    document["spec"]["template"]["topologyConstraint"] = {"topologyName": "t", "pack": {"required": "rack"}}
    manifest.write_text(yaml.safe_dump(document))
    result = CliRunner().invoke(render_set, ["-f", str(manifest), "--all", "--kubernetes", "1.35"])
    assert "# default: schedulerName default-scheduler" in result.stdout
    assert "#   loses required topology for the gang (topology.kubernetes.io/rack)" in result.stdout
    assert "# kai: schedulerName kai-scheduler, gate grove.io/podgang\n#   writes PodGroup/pg-train-0-" in result.stdout


def test_a_binding_in_the_file_names_the_keys(manifest: Path) -> None:
    """Domain names become the binding's node label keys."""
    document = yaml.safe_load(manifest.read_text())
    document["spec"]["template"]["topologyConstraint"] = {"topologyName": "t", "pack": {"required": "rack"}}
    binding = {
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
    }
    manifest.write_text(yaml.safe_dump_all([document, binding]))
    group = rendered(manifest, "--backend", "kai")[1]
    assert group["spec"]["topologyConstraint"] == {"topology": "t", "requiredTopologyLevel": "example.com/rack"}


def test_mistakes_are_said_in_one_line(manifest: Path, tmp_path: Path) -> None:
    """An unknown backend, and a file without a set."""
    unknown = CliRunner().invoke(render_set, ["-f", str(manifest), "--backend", "slurm"])
    assert "no backend 'slurm' is registered" in unknown.stderr
    empty = tmp_path / "empty.yaml"
    empty.write_text("kind: Pod\n")
    assert "holds no PodCliqueSet" in CliRunner().invoke(render_set, ["-f", str(empty)]).stderr

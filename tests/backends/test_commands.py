"""`spinney backends` and `spinney render`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.api.meta import Json
from spinney.cli.main import main
from tests import make


def listed(*arguments: str) -> Result:
    """Run `spinney backends`."""
    return CliRunner().invoke(main, ["backends", *arguments], catch_exceptions=False)


def test_backends_are_listed_with_gate_and_api() -> None:
    """In the order that settles ties."""
    rows = json.loads(listed("--offline", "--kubernetes", "1.35", "-o", "json").stdout)
    assert [row["name"] for row in rows] == ["default", "kai", "koordinator", "volcano", "yunikorn"]
    assert rows[0]["writes"] == "scheduling.k8s.io/v1alpha1"
    assert rows[1] == {
        "name": "kai",
        "scheduler": "kai-scheduler",
        "gate": "grove.io/podgang",
        "writes": "scheduling.run.ai/v2alpha2",
        "runs": "not looked at",
        "problems": [],
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
    """`docs/users/schedulers/README.md` carries the output of `spinney backends --features -o markdown`."""
    page = Path(__file__).resolve().parents[2] / "docs/users/schedulers/README.md"
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
    result = CliRunner().invoke(main, ["render", "-f", str(path), *arguments], catch_exceptions=False)
    return list(yaml.safe_load_all(result.stdout))


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "examples").glob("*/*.yaml")), ids=lambda path: path.stem
)
def test_our_own_examples_ended_in_a_traceback(path: Path) -> None:
    """Amounts without quotes (`nvidia.com/gpu: 4`) are quantities, as for the API server."""
    holds_a_set = "kind: PodCliqueSet" in path.read_text()
    result = CliRunner().invoke(main, ["render", "-f", str(path)], catch_exceptions=False)
    assert (result.exit_code == 0) == holds_a_set, result.stderr


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
    result = CliRunner().invoke(main, ["render", "-f", str(manifest), "--all", "--kubernetes", "1.35"])
    assert "# default: schedulerName default-scheduler" in result.stdout
    assert "#   loses required topology for the gang (topology.kubernetes.io/rack)" in result.stdout
    assert "# kai: schedulerName kai-scheduler, gate grove.io/podgang\n#   writes PodGroup/pg-train-0-" in result.stdout


def test_a_binding_in_the_file_names_the_keys(manifest: Path) -> None:
    """Domain names become the binding's node label keys."""
    document = yaml.safe_load(manifest.read_text())
    document["spec"]["template"]["topologyConstraint"] = {"topologyName": "t", "pack": {"required": "rack"}}
    binding = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": "t"},
        "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
    }
    manifest.write_text(yaml.safe_dump_all([document, binding]))
    group = rendered(manifest, "--backend", "kai")[1]
    assert group["spec"]["topologyConstraint"] == {"topology": "t", "requiredTopologyLevel": "example.com/rack"}


def refusal(path: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a command that fails, and its one line."""
    result = CliRunner().invoke(main, ["render", "-f", str(path), *arguments], catch_exceptions=False)
    assert result.stdout == ""
    return result.exit_code, result.stderr.splitlines()[-1].removeprefix("Error: ")


def broken(change: Callable[[Json], object]) -> str:
    """The training example with a mistake in it."""
    document = make.pcs("train").clique("workers", 4, 3).build()
    change(document)
    return yaml.safe_dump(document)


def _pod(document: Json) -> Json:
    pod_spec: Json = document["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    return pod_spec


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (": [", 2, "not YAML: line 1: did not find expected key"),
        (b"\xc1\x00", 2, "not text: invalid start byte at byte 0"),
        ("kind: Pod\n", 2, "holds no PodCliqueSet"),
        ("kind: List\nitems: 5\n", 2, "holds no PodCliqueSet"),
        ("kind: PodCliqueSet\n", 1, "PodCliqueSet (without a name): metadata.name: Required value"),
        ("kind: PodCliqueSet\nmetadata: 7\n", 1, "PodCliqueSet (without a name): metadata.name: Required value"),
        (broken(lambda pcs: pcs.update(apiVersion="v1")), 1, "apiVersion is 'v1', use 'grove.io/v1alpha1'"),
        (broken(lambda pcs: pcs["metadata"].update(name="A_b")), 1, 'metadata.name: Invalid value: "A_b"'),
        (broken(lambda pcs: pcs.update(spec=None)), 1, "spec.template.cliques: Required value"),
        (broken(lambda pcs: pcs["spec"].update(replicas="many")), 1, "spec.replicas in body must be of type integer"),
        (broken(lambda pcs: pcs["spec"].update(replicas=-3)), 1, "spec.replicas: Invalid value: -3"),
        (broken(lambda pcs: pcs["spec"].update(replicas=20_000)), 1, "80000 pods are too many to print"),
        (broken(lambda pcs: pcs["spec"]["template"].update(cliques=5)), 1, "must be of type array"),
        (broken(lambda pcs: _pod(pcs).update(containers=5)), 1, "podSpec: Expected `array`, got `int`"),
        (broken(lambda pcs: _pod(pcs).pop("containers")), 1, "podSpec.containers: Required value"),
        (
            broken(lambda pcs: _pod(pcs)["containers"][0].update(resources={"limits": {"cpu": "lots"}})),
            1,
            "containers[0].resources.limits[cpu]: quantity 'lots' cannot be read",
        ),
        (
            broken(lambda pcs: _pod(pcs)["containers"][0].update(resources={"limits": {"cpu": {}}})),
            1,
            "containers[0].resources.limits",
        ),
        (
            broken(lambda pcs: pcs["spec"]["template"].update(topologyConstraint={"pack": {"required": "rack"}})),
            1,
            "spec.template.topologyConstraint.topologyName: Required value",
        ),
    ],
)
def test_what_the_cluster_would_refuse_is_refused_in_one_line(
    tmp_path: Path, text: str | bytes, code: int, words: str
) -> None:
    """Broken files are a wrong call (2); broken sets are answered as the API server or admission would (1)."""
    path = tmp_path / "set.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    exit_code, line = refusal(path)
    assert exit_code == code
    assert words in line


def test_a_backend_that_is_not_registered_is_a_wrong_call(manifest: Path) -> None:
    """The registered ones are named."""
    code, line = refusal(manifest, "--backend", "slurm")
    assert (code, "no backend 'slurm' is registered, only default, kai" in line) == (2, True)


def test_sets_in_a_list_are_found_and_unknown_fields_warned_of(manifest: Path) -> None:
    """As kubectl does."""
    document = yaml.safe_load(manifest.read_text())
    document["spec"]["bogus"] = 1
    manifest.write_text(yaml.safe_dump({"kind": "List", "items": [document]}))
    result = CliRunner().invoke(main, ["render", "-f", str(manifest)], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stderr == 'warning: PodCliqueSet train: unknown field "spec.bogus"\n'

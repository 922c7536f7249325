"""`spinney install`: what is printed, in which order, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.cli.main import main


def install(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["install", *arguments])


def test_definitions_come_before_controllers() -> None:
    """An upgrade changes CRDs before anybody runs that relies on them."""
    printed = install("--namespace", "here")
    assert printed.exit_code == 0, printed.output
    kinds = [document["kind"] for document in yaml.safe_load_all(printed.stdout)]
    last_definition = max(index for index, kind in enumerate(kinds) if kind == "CustomResourceDefinition")
    assert kinds[0] == "Namespace"
    assert set(kinds[1 : last_definition + 1]) == {"CustomResourceDefinition"}
    assert kinds.index("Deployment") > last_definition
    assert "CustomResourceDefinition" not in install("--no-crds").stdout


def test_monitors_are_for_clusters_that_serve_them() -> None:
    """The API server would refuse a kind that it does not know, and with it everything that follows."""
    assert "ServiceMonitor" not in install().stdout
    assert "kind: PrometheusRule" in install("--api-versions", "monitoring.coreos.com/v1").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [("replicas: [", "not YAML"), ("- a", "a map of values is expected"), ("replica: 2", "replica")],
)
def test_a_file_of_values_that_cannot_be_read_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    """Who mistypes a value hears which, before anything is applied."""
    file = tmp_path / "values.yaml"
    file.write_text(text)
    refused = install("-f", str(file))
    assert refused.exit_code != 0
    assert refused.stdout == ""
    assert message in str(refused.exception) + refused.stderr


def test_two_deployments_of_backends_have_a_lease_each() -> None:
    """`--only kai` and `--only volcano` beside each other: each leads its own backends, with their rights only."""
    chosen = "backends.deployments=[{name: a, only: [kai]}, {name: b, only: [volcano]}]"
    documents = [each for each in yaml.safe_load_all(install("--no-crds", "--set", chosen).stdout) if each]
    arguments = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]["args"]
        for each in documents
        if each["kind"] == "Deployment"
    }
    assert "--only=kai" in arguments["spinney-backends-a"]
    assert "--only=volcano" in arguments["spinney-backends-b"]
    rules = {each["metadata"]["name"]: str(each["rules"]) for each in documents if each["kind"] == "ClusterRole"}
    assert "scheduling.volcano.sh" in rules["spinney-backends-b"]
    assert "scheduling.volcano.sh" not in rules["spinney-backends-a"]

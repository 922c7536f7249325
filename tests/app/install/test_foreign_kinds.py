"""Objects for cert-manager and for Prometheus' operator, on servers that know their kinds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.meta import Json
from spinney.cli.main import main
from tests.app.install.foreign_kinds import DEFINITIONS, KINDS
from tests.app.install.helm import CHART, run_helm
from tests.worlds import Cluster

ASKED = ("--set", "certificates.mode=cert-manager", "--api-versions", "monitoring.coreos.com/v1")


def printed(namespace: str, *arguments: str) -> list[Json]:
    """What `spinney install` prints of those kinds."""
    ran = CliRunner().invoke(main, ["install", "--no-crds", "-n", namespace, *arguments])
    assert ran.exit_code == 0, ran.output
    return foreign(ran.stdout)


def templated(namespace: str, *arguments: str) -> list[Json]:
    """What `helm template` prints of those kinds."""
    command = ("template", "spinney", str(CHART), "--namespace", namespace, "--kube-version", "1.35.4")
    return foreign(run_helm(*command, *arguments))


def foreign(text: str) -> list[Json]:
    """The objects of the foreign kinds in a text."""
    return [each for each in yaml.safe_load_all(text) if each and each["kind"] in KINDS]


@pytest.fixture
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    """A namespace on a server that serves the foreign kinds, which it forgets afterwards."""
    definitions = yaml.safe_dump_all(DEFINITIONS)
    created = await cluster.kubectl("apply", "--server-side", "-f", "-", stdin=definitions)
    assert created.code == 0, created.err
    established = await cluster.kubectl("wait", "--for=condition=Established", "-f", "-", stdin=definitions)
    assert established.code == 0, established.err
    try:
        yield await cluster.namespace()
    finally:
        await cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=definitions)


def test_both_ways_to_install_print_them_when_they_are_asked_for() -> None:
    """Certificates by a value, monitors where the cluster serves their kinds; otherwise neither."""
    wanted = [("Issuer", "spinney"), ("Certificate", "spinney-grove"), ("ServiceMonitor", "spinney")]
    wanted += [("ServiceMonitor", "spinney-services"), ("PrometheusRule", "spinney")]
    for way in (printed, templated):
        assert sorted((each["kind"], each["metadata"]["name"]) for each in way("here", *ASKED)) == sorted(wanted)
        assert way("here") == []


@pytest.mark.parametrize("way", [printed, templated])
async def test_server_accepts_them_field_by_field_and_again(
    cluster: Cluster, namespace: str, way: Callable[..., list[Json]], tmp_path: Path
) -> None:
    """Every field is known and of its type; a second apply meets no conflict and changes nothing."""
    objects = way(namespace, *ASKED)
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    apply = ("apply", "--server-side", "--validate=strict", "-o", "json", "-f", str(file))
    first, second = await cluster.kubectl(*apply), await cluster.kubectl(*apply)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert _versions(first.out) == _versions(second.out)
    assert len(_versions(first.out)) == len(objects)


async def test_a_field_that_the_kind_does_not_have_is_refused(cluster: Cluster, namespace: str) -> None:
    """So the test above would notice a misspelt field."""
    monitor = next(each for each in printed(namespace, *ASKED) if each["kind"] == "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["tokenFile"] = "/token"
    refused = await cluster.kubectl(
        "apply", "--server-side", "--validate=strict", "-f", "-", stdin=yaml.safe_dump(monitor)
    )
    assert refused.code != 0
    assert "tokenFile" in refused.err


def _versions(said: str) -> dict[str, str]:
    items = json.loads(said).get("items", [])
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in items}

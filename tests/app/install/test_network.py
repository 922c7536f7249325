"""Pods of an installation and its NetworkPolicy: ours cover all of them, and let through what they serve and call."""

from __future__ import annotations

from itertools import pairwise

import pytest

from spinney.api.kaiconfig import ConfigSpec
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json, ObjectMeta, convert
from spinney.app.install.objects import objects
from spinney.app.install.values import read_values
from spinney.services.platform.deployments import plan_deployment
from spinney.services.platform.node_agents import plan_daemon_set, plan_exporter
from spinney.services.platform.processes import plan_processes, plan_scheduler
from tests.app.install.value_sets import VALUE_SETS

IMAGE = "registry.example.com/spinney:1"
# Other ports than the usual ones, and an agent on every node.
OWN_PORTS: Json = {
    "namespace": "here",
    "admission": {"webhook": {"targetPort": 9555, "metricsPort": 9556}},
    "scheduler": {"schedulerService": {"port": 9557, "targetPort": 9558}},
    "numaPlacementExporter": {"service": {"enabled": True}},
}


def chart_objects(name: str = "defaults") -> list[Json]:
    """The objects of a chart, for a choice of values."""
    return objects(read_values([VALUE_SETS[name]]), "here", "1")


def platform_objects(spec: Json) -> list[Json]:
    """What the platform deploys for a Config."""
    config = convert(ConfigSpec, spec)
    scheduler = plan_scheduler(SchedulingShard(metadata=ObjectMeta(name="default")), config)
    processes = [*plan_processes(config, IMAGE), *([scheduler] if scheduler else [])]
    planned = [each for process in processes for each in plan_deployment(process, config, IMAGE)]
    for exporter in plan_exporter(config, []):
        planned += plan_daemon_set(exporter, config, IMAGE)
    return planned


def templates(documents: list[Json]) -> dict[str, Json]:
    """The pod templates, by the names of their owners."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]
        for each in documents
        if each["kind"] in ("Deployment", "DaemonSet")
    }


def policy() -> Json:
    """The spec of the NetworkPolicy."""
    (document,) = (each for each in chart_objects() if each["kind"] == "NetworkPolicy")
    return dict(document["spec"])


ALL = {**templates(chart_objects()), **templates(platform_objects({})), **templates(platform_objects(OWN_PORTS))}


def is_selected(selector: Json, template: Json) -> bool:
    """Whether a selector of labels takes the pods of a template."""
    return selector.items() <= template["metadata"]["labels"].items()


@pytest.mark.parametrize("name", ALL)
def test_policy_covers_every_pod(name: str) -> None:
    """The platform's pods were left out once: ours did not isolate them, and a default-deny cut them off."""
    assert is_selected(policy()["podSelector"]["matchLabels"], ALL[name])


@pytest.mark.parametrize("own_ports", [{}, OWN_PORTS], ids=["usual", "own"])
def test_served_ports_are_let_through(own_ports: Json) -> None:
    """Whatever a component listens on can be reached, on whichever port Config puts it."""
    allowed = {each["port"] for rule in policy()["ingress"] for each in rule["ports"]}
    for name, template in {**templates(chart_objects()), **templates(platform_objects(own_ports))}.items():
        for container in template["spec"]["containers"]:
            ports = {each["containerPort"]: each["name"] for each in container.get("ports", ())}
            assert set(ports.values()) <= allowed, name
            assert _listened(container["args"]) <= set(ports), name


def test_calls_are_let_through_a_default_deny() -> None:
    """Nobody but the cluster knows where its API server and its DNS are: ours lets our pods call anyone."""
    assert "Egress" in policy()["policyTypes"]
    assert policy()["egress"] == [{}]


def test_metrics_of_a_pod_are_read_once() -> None:
    """The Service of our own metrics takes the chart's pods only: the platform's have Services of their own."""
    (service,) = (each for each in chart_objects() if each["metadata"]["name"] == "spinney-metrics")
    taken = {name for name, template in ALL.items() if is_selected(service["spec"]["selector"], template)}
    assert taken == set(templates(chart_objects()))


@pytest.mark.parametrize("name", ALL)
def test_pods_are_confined(name: str) -> None:
    """Every pod asks for what it needs, runs a pinned image under the runtime's seccomp profile and gains no rights."""
    spec = ALL[name]["spec"]
    for container in spec["containers"]:
        security = {**spec.get("securityContext", {}), **container["securityContext"]}
        assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
        assert not container["image"].endswith(":latest")
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert security["allowPrivilegeEscalation"] is False
        # The exporter reads the kubelet's files, which belong to root.
        assert security["runAsNonRoot"] is (name != "numa-placement-exporter")


def _listened(arguments: list[str]) -> set[int]:
    """The ports of all `--…-listen HOST:PORT`, given as one argument or as two."""
    words = " ".join(arguments).replace("=", " ").split()
    return {int(value.rpartition(":")[2]) for option, value in pairwise(words) if option.endswith("-listen")}

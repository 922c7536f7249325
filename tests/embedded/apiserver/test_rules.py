"""The pure rules of built-in kinds, as tables: normal form, defaults, checks, cells, selectors, usage."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from spinney.embedded.apiserver import resources
from spinney.embedded.apiserver.admission import quotas
from spinney.embedded.apiserver.calls import flag, number
from spinney.embedded.apiserver.errors import Refusal
from spinney.embedded.apiserver.resources import registry, selectable_fields
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.record import Resource
from spinney.embedded.apiserver.resources.registry import built_in
from spinney.embedded.apiserver.resources.validation import (
    containers,
    pod_placement,
    security_contexts,
)
from spinney.embedded.apiserver.resources.validation.pod_volumes import check_volumes
from spinney.embedded.apiserver.schema.conform import conform
from spinney.embedded.apiserver.schema.misfit import Misfit
from tests import make

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS: dict[str, Kind] = {kind.table: kind for kind in built_in()}


def test_every_record_is_served() -> None:
    """A record that is missing in the registry would be a kind that nobody can use."""
    modules = [import_module(f"{resources.__name__}.{info.name}") for info in iter_modules(resources.__path__)]
    values = [value for module in modules for value in vars(module).values()]
    records = {(value.group, value.plural) for value in values if isinstance(value, Resource) and value.kind}
    assert records <= {(resource.group, resource.plural) for resource in registry.BUILT_IN}
    assert len({(kind.group, kind.version, kind.plural) for kind in built_in()}) == len(list(built_in()))


def pod(**spec: Any) -> dict[str, Any]:
    """A pod with one container."""
    return make.pod("a", namespace="").spec(**spec).build()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"hostNetwork": False}, {}),
        ({"hostname": ""}, {}),
        ({"priority": 0}, {"priority": 0}),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": False}),
        ({"nodeSelector": {}}, {}),
        ({"nodeSelector": {"a": None}}, {"nodeSelector": {"a": ""}}),
        ({"tolerations": []}, {}),
        ({"overhead": {"cpu": "1000m"}}, {"overhead": {"cpu": "1"}}),
        ({"unknown": 1}, {}),
    ],
)
def test_normal_form(given: dict[str, Any], kept: dict[str, Any]) -> None:
    """Members that say nothing are left out, unless a pointer makes nothing something."""
    document, unknown = conform(pod(**given), "", "v1", "Pod")
    assert {key: value for key, value in document["spec"].items() if key != "containers"} == kept
    assert unknown == (["spec.unknown"] if "unknown" in given else [])


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"containers": "x"}, "spec.containers: expected an array, got a string"),
        ({"containers": [{"name": 1}]}, "spec.containers[0].name: expected a string, got a number"),
        ({"priority": "x"}, "spec.priority: expected an integer, got a string"),
        ({"priority": 2**31}, "spec.priority: 2147483648 does not fit into 32 bits"),
        ({"nodeSelector": [1]}, "spec.nodeSelector: expected an object, got an array"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead[cpu]: quantities must match the regular expression"),
    ],
)
def test_wrong_types(given: dict[str, Any], wrong: str) -> None:
    """A value of another type is refused with its field."""
    with pytest.raises(Misfit) as misfit:
        conform(pod(**given), "", "v1", "Pod")
    assert str(misfit.value).startswith(wrong)


@pytest.mark.parametrize(
    ("table", "document", "path", "value"),
    [
        ("/services", {"spec": {"ports": [{"port": 80}]}}, "spec.sessionAffinity", "None"),
        ("/secrets", {"stringData": {"a": "b"}}, "data", {"a": "Yg=="}),
        ("apps/deployments", {"spec": {}}, "spec.strategy.rollingUpdate.maxSurge", "25%"),
        ("apps/statefulsets", {"spec": {}}, "spec.podManagementPolicy", "OrderedReady"),
        ("batch/jobs", {"spec": {}}, "spec.completions", 1),
        ("batch/cronjobs", {"spec": {}}, "spec.concurrencyPolicy", "Allow"),
        ("storage.k8s.io/storageclasses", {}, "reclaimPolicy", "Delete"),
        ("networking.k8s.io/networkpolicies", {"spec": {"egress": [{}]}}, "spec.policyTypes", ["Ingress", "Egress"]),
    ],
)
def test_defaults(table: str, document: dict[str, Any], path: str, value: Any) -> None:
    """A kind has the defaults that its version documents."""
    document = {"metadata": {"name": "a"}, **document}
    KINDS[table].resource.default(document)
    node: Any = document
    for part in path.split("."):
        node = node[part]
    assert node == value


@pytest.mark.parametrize(
    ("volume", "fields_"),
    [
        ({"name": "v", "emptyDir": {}}, []),
        ({"name": "V", "emptyDir": {}}, ["volumes[0].name"]),
        ({"name": "v", "configMap": {}}, ["volumes[0].configMap.name"]),
        ({"name": "v", "hostPath": {"path": "/a/../b"}}, ["volumes[0].hostPath.path"]),
        ({"name": "v", "emptyDir": {"sizeLimit": "-1"}}, ["volumes[0].emptyDir.sizeLimit"]),
        ({"name": "v", "emptyDir": {}, "nfs": {}}, ["volumes[0].nfs"]),
    ],
)
def test_volumes(volume: dict[str, Any], fields_: list[str]) -> None:
    """A volume has one source, and what that needs."""
    assert [error.field for error in check_volumes([volume], "volumes", {})] == fields_


@pytest.mark.parametrize(
    ("container", "fields_"),
    [
        ({}, []),
        ({"image": ""}, ["c.image"]),
        ({"ports": [{"containerPort": 0, "protocol": "TCP"}]}, ["c.ports[0].containerPort"]),
        ({"env": [{"name": "a=b"}]}, ["c.env[0].name"]),
        ({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}, ["c.resources.requests"]),
        ({"livenessProbe": {"tcpSocket": {"port": 0}}}, ["c.livenessProbe.tcpSocket.port"]),
        ({"lifecycle": {"preStop": {}}}, ["c.lifecycle.preStop"]),
        ({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, ["c.volumeMounts[0].name"]),
    ],
)
def test_containers(container: dict[str, Any], fields_: list[str]) -> None:
    """A container is checked member by member."""
    found = containers.check_container({"name": "main", "image": "x", **container}, "c", {}, set())
    assert [error.field for error in found] == fields_


@pytest.mark.parametrize(
    ("affinity", "count"),
    [
        ({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}, 1),
        ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101}]}}, 1),
        ({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}, 0),
    ],
)
def test_affinity(affinity: dict[str, Any], count: int) -> None:
    """Terms need what they select by, and preferences a weight of 1 to 100."""
    assert len(pod_placement.check_affinity(affinity, "affinity")) == count


def test_security() -> None:
    """Users have numbers that are not below zero."""
    found = security_contexts.check_pod({"runAsUser": -1, "fsGroup": 5}, "spec.securityContext")
    assert [error.field for error in found] == ["spec.securityContext.runAsUser"]


@pytest.mark.parametrize(
    ("kind", "name", "kept"),
    [
        ("/pods", "spec.nodeName", "spec.nodeName"),
        ("/pods", "spec.nothing", ""),
        ("apps/replicasets", "status.replicas", ""),
        ("/configmaps", "metadata.name", "metadata.name"),
    ],
)
def test_selectable_fields(kind: str, name: str, kept: str) -> None:
    """A kind can be selected by the fields that Kubernetes indexes."""
    assert selectable_fields.stored_name(KINDS[kind], name) == kept


def test_usage() -> None:
    """A pod takes its place, and what its containers ask for; one that has ended counts only as an object."""
    resources = {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}}
    wanted = pod(containers=[{"name": "m", "resources": resources}])
    found = quotas.usage(KINDS["/pods"], wanted)
    assert (found["pods"], float(found["cpu"]), found["requests.nvidia.com/gpu"]) == (1, 0.5, 1)
    assert quotas.usage(KINDS["/pods"], {**wanted, "status": {"phase": "Succeeded"}}) == {"count/pods": 1}


@pytest.mark.parametrize("version", ["events.k8s.io/v1", "autoscaling/v1"])
def test_versions_there_and_back(version: str) -> None:
    """What is shown at another version and kept again is what it was."""
    target = {"type": "Utilization", "averageUtilization": 60}
    kept: dict[str, dict[str, Any]] = {
        "events.k8s.io/v1": {"involvedObject": {"name": "p"}, "message": "m", "count": 2, "reason": "R"},
        "autoscaling/v1": {
            "spec": {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]},
            "status": {"currentReplicas": 1},
        },
    }
    other = next(kind.other for kind in built_in() if kind.other and kind.api_version == version)
    assert other.to_stored(other.from_stored(dict(kept[version]))) == kept[version]


@pytest.mark.parametrize("table", KINDS)
def test_cells_fit_the_columns(table: str) -> None:
    """Every printer has a cell for every column, even of an object that says nothing."""
    shown = KINDS[table].resource.table
    document = {"metadata": {"name": "a"}, "spec": {}, "status": {}}
    assert len(shown.cells(document, NOW)) == len(shown.columns.split(","))


@pytest.mark.parametrize(("text", "yes"), [("true", True), ("1", True), ("x", True), ("false", False), ("0", False)])
def test_flags(text: str, yes: bool) -> None:
    """Whatever does not say no is a yes."""
    assert flag({"watch": text}, "watch") is yes
    assert not flag({}, "watch")


def test_numbers() -> None:
    """A number of a query is told apart from text."""
    assert (number(""), number("5")) == (0, 5)
    with pytest.raises(Refusal, match="invalid syntax"):
        number("x")

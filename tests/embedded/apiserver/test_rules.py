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
from spinney.embedded.apiserver.resources import registry
from spinney.embedded.apiserver.resources.kinds import Kind
from spinney.embedded.apiserver.resources.record import Resource
from spinney.embedded.apiserver.resources.registry import built_in
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
    ("written", "kept"),
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
def test_normal_form(written: dict[str, Any], kept: dict[str, Any]) -> None:
    """Members that say nothing are left out, unless a pointer makes nothing something."""
    document, unknown = conform(pod(**written), "", "v1", "Pod")
    assert {key: value for key, value in document["spec"].items() if key != "containers"} == kept
    assert unknown == (["spec.unknown"] if "unknown" in written else [])


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ({"containers": "x"}, "spec.containers: expected an array, got a string"),
        ({"containers": [{"name": 1}]}, "spec.containers[0].name: expected a string, got a number"),
        ({"priority": "x"}, "spec.priority: expected an integer, got a string"),
        ({"priority": 2**31}, "spec.priority: 2147483648 does not fit into 32 bits"),
        ({"nodeSelector": [1]}, "spec.nodeSelector: expected an object, got an array"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead[cpu]: quantities must match the regular expression"),
    ],
)
def test_wrong_types(written: dict[str, Any], wrong: str) -> None:
    """A value of another type is refused with its field."""
    with pytest.raises(Misfit) as misfit:
        conform(pod(**written), "", "v1", "Pod")
    assert str(misfit.value).startswith(wrong)


def test_usage() -> None:
    """A pod takes its place, and what its containers ask for; one that has ended counts only as an object."""
    resources = {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}}
    wanted = pod(containers=[{"name": "m", "resources": resources}])
    usage = quotas.usage(KINDS["/pods"], wanted)
    assert (usage["pods"], float(usage["cpu"]), usage["requests.nvidia.com/gpu"]) == (1, 0.5, 1)
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
    with pytest.raises(Refusal, match="not a number"):
        number("x")

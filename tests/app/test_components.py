"""Components and backends of other packages, and the flags that change a component's configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import convert
from spinney.app import components
from spinney.app.broken_backends import warn_of_broken_backends
from spinney.app.component_settings import choose_fallback, choose_parts, configured_components
from spinney.app.components import load, load_third_party, registered
from spinney.app.errors import UserError
from spinney.backends.registry import Registry
from spinney.cli.main import main
from spinney.grove.settings import Settings
from spinney.kube.runtime import Component, Runtime
from tests import make

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


async def idle(runtime: Runtime, config: Any) -> None:
    """Do nothing."""


EXTRA = Component(name="extra", summary="Somebody else's.", run=idle)
NOT_A_COMPONENT = object()


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Entry points as if another package had installed them beside ours."""
    # The help of these commands names the components that there are when they are imported.
    for command in ("installation.manifests", "run"):
        import_module(f"spinney.cli.{command}")
    others = [
        EntryPoint("extra", f"{__name__}:EXTRA", components.GROUP),
        EntryPoint("half", f"{__name__}:NOT_A_COMPONENT", components.GROUP),
        EntryPoint("broken", "no_such_package:COMPONENT", components.GROUP),
        EntryPoint("grove", f"{__name__}:EXTRA", components.GROUP),
    ]
    installed = [*others, *entry_points(group=components.GROUP)]
    monkeypatch.setattr(components, "entry_points", lambda group: installed)
    registered.cache_clear()
    yield
    registered.cache_clear()


def test_what_is_installed_is_what_the_project_declares() -> None:
    """Where this fails, the entry points have changed since the package was installed: run `make setup`."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    for group, names in declared.items():
        installed = {entry.name: entry.value for entry in entry_points(group=group)}
        assert {name: installed.get(name) for name in names} == names


@pytest.mark.usefixtures("third_party")
def test_another_package_brings_a_component() -> None:
    """It is found like ours, after ours, and cannot take the name of one of ours."""
    assert load("extra") is EXTRA
    assert list(registered())[-3:] == ["broken", "extra", "half"]
    assert load("grove").name == "grove"


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize(("name", "why"), [("broken", "ModuleNotFoundError"), ("half", "TypeError")])
def test_a_component_that_cannot_be_loaded_is_named(name: str, why: str) -> None:
    """`spinney run` ends with its entry point and the error; `spinney up` warns and goes on."""
    with pytest.raises(UserError, match=rf"component {name} \(.*\) cannot be loaded: {why}"):
        load(name)
    with capture_logs() as logged:
        assert load_third_party() == [EXTRA]
    assert [entry["entry_point"].partition(" = ")[0] for entry in logged] == ["broken", "half"]


def test_a_backend_that_cannot_be_loaded_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning with the entry point and the error, where a component uses backends."""
    entries = [*entry_points(group="spinney.backends"), EntryPoint("slurm", "no_such_package:BACKEND", "")]
    monkeypatch.setattr("spinney.backends.registry.entry_points", lambda group: entries)
    with capture_logs() as logged:
        warn_of_broken_backends(["scheduler"])
        assert logged == []
        warn_of_broken_backends(["grove", "backends"])
    (warning,) = logged
    assert warning["entry_point"] == "slurm = no_such_package:BACKEND"
    assert "No module named 'no_such_package'" in warning["error"]


def test_the_fallback_backend_is_configurable(tmp_path: Path) -> None:
    """By the operator's configuration file, and by a flag, which wins; a set that nobody claims goes there."""
    file = tmp_path / "grove.yaml"
    file.write_text("scheduler: {fallbackBackend: volcano}")
    pcs = convert(PodCliqueSet, make.pcs("a").clique("w", schedulerName="slurm").build())
    for flag, backend in (("", "volcano"), ("default", "default")):
        ((_, config),) = configured_components(["grove"], [str(file)], choose_fallback(flag))
        registry = Registry.load(fallback=Settings(config=config).fallback_backend)
        assert registry.choose(pcs).backend.name == backend


@pytest.mark.usefixtures("third_party")
def test_manifests_of_all_components_leave_out_what_cannot_be_loaded() -> None:
    """A broken component of another package is named, and the rest is printed."""
    printed = CliRunner().invoke(main, ["manifests", "--all"])
    assert printed.exit_code == 0
    assert "spinney-extra" in printed.stdout
    assert "warning: component broken" in printed.stderr


@pytest.mark.parametrize(
    ("names", "override", "why"),
    [
        (["grove"], choose_fallback("slurm"), "--fallback-backend: no fallback backend 'slurm' is registered"),
        (["backends"], choose_fallback("kai"), "--fallback-backend: none of these components chooses backends"),
        (["grove"], choose_parts("kai"), "--only: none of these components has parts"),
    ],
)
def test_a_flag_that_nobody_can_use_is_refused(names: list[str], override: Any, why: str) -> None:
    """Before anything starts."""
    with pytest.raises(UserError, match=why):
        configured_components(names, overrides=override)


def test_rights_follow_the_chosen_backends() -> None:
    """`--only kai` asks for no rights to Volcano's objects."""
    ((component, _),) = configured_components(["backends"], overrides=choose_parts("kai"))
    groups = {group for rule in component.rules for group in rule.groups}
    assert "scheduling.run.ai" in groups
    assert "scheduling.volcano.sh" not in groups
    names = [definition["metadata"]["name"] for definition in component.crds()]
    assert names == ["podgroups.scheduling.run.ai", "topologies.kai.scheduler"]

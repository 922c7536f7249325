"""The example of `docs/contributors/backends.md`: a third party's backend, in a package of its own."""

from __future__ import annotations

import importlib.util
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import convert
from spinney.backends import conformance
from spinney.backends.component import BackendsConfig, component
from spinney.backends.registry import Registry
from tests import make

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "backend-plugin"
SOURCE = FOLDER / "src" / "spinney_coscheduling.py"


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    """The package's module, as if it were installed."""
    spec = importlib.util.spec_from_file_location("spinney_coscheduling", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("check", conformance.CHECKS, ids=conformance.title)
def test_it_conforms(check: conformance.Check, plugin: ModuleType) -> None:
    """A third party's backend is held to the same rules as ours."""
    check(plugin.BACKEND)


def test_it_is_as_short_as_promised() -> None:
    """Write a backend in 50 lines, which the documentation shows as they are."""
    lines = SOURCE.read_text().splitlines()
    assert len(lines) <= 50
    page = FOLDER.parents[1] / "docs" / "contributors" / "backends.md"
    assert "\n".join(f"    {line}" if line else "" for line in lines) in page.read_text()


def test_it_imports_one_module_of_ours() -> None:
    """All that a backend needs is in `spinney.backends`."""
    imports = [line for line in SOURCE.read_text().splitlines() if line.startswith(("from ", "import "))]
    assert imports == ["from spinney import backends as kit"]


def test_what_it_needs_is_in_the_manifests(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spinney manifests backends --only coscheduling` gives a third party's backend its rights, and no others'."""
    registry = Registry([*Registry.load(), plugin.BACKEND])
    monkeypatch.setattr(Registry, "load", lambda: registry)
    chosen = component(BackendsConfig(only=("coscheduling",)))
    groups = {group for rule in chosen.rules for group in rule.groups}
    assert "scheduling.x-k8s.io" in groups
    assert "scheduling.volcano.sh" not in groups
    assert chosen.crds() == ()


def test_its_entry_point_registers_it(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set that names its scheduler is taken by it, beside ours and without an edit."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    entry = project["project"]["entry-points"]["spinney.backends"]["coscheduling"]
    assert entry == "spinney_coscheduling:BACKEND"
    registry = Registry([*Registry.load(), plugin.BACKEND])
    pcs = make.pcs("a").clique("w", schedulerName="scheduler-plugins-scheduler").build()
    assert registry.choose(convert(PodCliqueSet, pcs)).backend is plugin.BACKEND
    monkeypatch.setitem(__import__("sys").modules, "spinney_coscheduling", plugin)
    assert EntryPoint("coscheduling", entry, "spinney.backends").load() is plugin.BACKEND

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
    """Write your own backend in 60 lines."""
    assert len(SOURCE.read_text().splitlines()) <= 60


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

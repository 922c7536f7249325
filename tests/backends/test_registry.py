"""Which backend takes a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import convert
from spinney.backends.interface import Backend
from spinney.backends.kai import Kai
from spinney.backends.registry import MixedSchedulers, Registry, UnknownBackend
from tests import make


def sets(*schedulers: str, backend: str = "") -> PodCliqueSet:
    """A set with one clique per scheduler name."""
    builder = make.pcs("train")
    for index, name in enumerate(schedulers):
        builder.clique(f"c{index}", **({"schedulerName": name} if name else {}))
    if backend:
        builder.annotate("grove.io/scheduler-backend", backend)
    return convert(PodCliqueSet, builder.build())


class Rival(Kai):
    """A third party's backend that claims KAI's scheduler name too."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize(
    ("scheduler", "backend", "on_pods"),
    [
        ("", "default", "default-scheduler"),
        ("default-scheduler", "default", "default-scheduler"),
        ("kai-scheduler", "kai", "kai-scheduler"),
        ("grove-scheduler", "kai", "kai-scheduler"),
        ("koord-scheduler", "koordinator", "koord-scheduler"),
        ("batch-koord-2", "koordinator", "batch-koord-2"),
        ("volcano", "volcano", "volcano"),
        ("yunikorn", "yunikorn", "yunikorn"),
    ],
)
def test_the_scheduler_name_of_the_cliques_chooses(scheduler: str, backend: str, on_pods: str) -> None:
    """The table of the contract: scheduler name → backend, and the name that pods then carry."""
    choice = Registry.load().choose(sets(scheduler, scheduler))
    assert (choice.backend.name, choice.scheduler_name, choice.warnings) == (backend, on_pods, ())


def test_a_name_that_nobody_claims_falls_back_to_kai_with_a_warning() -> None:
    """The fall-back rewrites the pods' scheduler and says so."""
    choice = Registry.load().choose(sets("slurm"))
    assert (choice.backend.name, choice.scheduler_name) == ("kai", "kai-scheduler")
    assert "no backend claims schedulerName 'slurm'" in choice.warnings[0]


def test_an_empty_name_means_the_configured_default_profile() -> None:
    """A cluster whose default profile is KAI places unnamed sets with KAI."""
    assert Registry.load().choose(sets(""), default_profile="kai-scheduler").backend.name == "kai"


def test_the_annotation_overrides_and_sets_the_targets_scheduler() -> None:
    """A set for kube-scheduler goes to KAI when its annotation says so."""
    choice = Registry.load().choose(sets("default-scheduler", backend="kai"))
    assert (choice.backend.name, choice.scheduler_name) == ("kai", "kai-scheduler")


def test_an_annotation_with_an_unknown_backend_is_an_error_that_lists_the_known() -> None:
    """The message says what could have been written."""
    with pytest.raises(
        UnknownBackend, match=r"no backend 'slurm' is registered, only default, kai, koordinator, volcano, yunikorn"
    ):
        Registry.load().choose(sets("", backend="slurm"))


def test_cliques_with_different_schedulers_are_refused_by_name() -> None:
    """The error names the cliques behind each scheduler."""
    with pytest.raises(MixedSchedulers, match=r"'kai-scheduler' in c0, c2; 'volcano' in c1"):
        Registry.load().choose(sets("kai-scheduler", "volcano", "kai-scheduler"))


def test_two_claimers_are_settled_by_order_with_a_warning_that_names_both() -> None:
    """The backend registered first wins."""
    choice = Registry([Kai(), Rival("rival")]).choose(sets("kai-scheduler"))
    assert choice.backend.name == "kai"
    assert "claimed by kai and rival" in choice.warnings[0]


def test_a_choice_is_made_once() -> None:
    """The same question gives the same object."""
    registry = Registry.load()
    assert registry.choose(sets("kai-scheduler")) is registry.choose(sets("kai-scheduler", "kai-scheduler"))


def test_a_second_backend_of_a_name_is_reported_and_left_out() -> None:
    """Nobody can shadow a built-in backend."""
    registry = Registry([Kai(), Rival("kai")])
    assert registry.names == ("kai",)
    assert "taken by spinney.backends.kai.Kai" in registry.broken[0].why


class Entry:
    """An installed entry point."""

    def __init__(self, name: str, value: str, loaded: Any) -> None:
        self.name, self.value, self._loaded = name, value, loaded

    def load(self) -> Backend:
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded  # type: ignore[no-any-return]  # whatever a third party registers


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """Entry points as if packages had installed them."""
    entries: list[Entry] = []

    def installed_in(group: str) -> Sequence[Entry]:
        assert group == "spinney.backends"
        return entries

    monkeypatch.setattr("spinney.backends.registry.entry_points", installed_in)
    return entries


def test_ours_come_first_then_others_each_by_name(installed: list[Entry]) -> None:
    """The order that settles ties does not depend on the order of installation."""
    installed += [
        Entry("zeta", "zeta:BACKEND", Rival("zeta")),
        Entry("alpha", "alpha:BACKEND", Rival("alpha")),
        Entry("kai", "spinney.backends.kai:BACKEND", Kai()),
    ]
    assert Registry.load().names == ("kai", "alpha", "zeta")


def test_a_broken_plugin_is_listed_and_stops_nobody(installed: list[Entry]) -> None:
    """Import errors and half-written backends are reported with their reason."""
    installed += [
        Entry("kai", "spinney.backends.kai:BACKEND", Kai()),
        Entry("broken", "broken:BACKEND", ImportError("no module named slurm")),
        Entry("half", "half:BACKEND", object()),
    ]
    registry = Registry.load()
    assert registry.names == ("kai",)
    assert [(plugin.name, plugin.why.split(":")[0]) for plugin in registry.broken] == [
        ("broken", "ImportError"),
        ("half", "TypeError"),
    ]

"""Fixtures for all tests: `cluster` is one test's view of the embedded cluster, then of the real control plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
import structlog
from hypothesis import settings

from spinney.embedded import cluster as embedded_cluster
from spinney.embedded.apiserver.access.credentials import Authority
from spinney.kube.clock import SystemClock
from spinney.testing import build
from spinney.testing.controlplane import ControlPlane
from spinney.testing.golang import Unavailable
from tests import data, worlds
from tests.api_behaviour.known_differences import EMBEDDED

_numbers = count(1)

# Properties are tried on the same examples in every run; `--hypothesis-profile explore` looks for new ones.
settings.register_profile("steady", max_examples=60, derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("steady")


# Folders whose tests share one cluster; they take longest, and wait more than they compute.
_SHARING = ("cluster", "schedulers")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the embedded server is known to do differently; once it does as Kubernetes does, the test fails."""
    for item in items:
        if item.nodeid.removeprefix("tests/") in EMBEDDED:
            item.add_marker(pytest.mark.xfail(reason="known difference of the embedded server", strict=True))
    if hasattr(config, "workerinput"):
        _share_out(items)


def _share_out(items: list[pytest.Item]) -> None:
    """Keep each file, and each shared cluster, on one worker. What takes longest begins first."""
    groups = {item: _group(item) for item in items}
    sizes = Counter(groups.values())
    items.sort(key=lambda item: (groups[item] not in _SHARING, -sizes[groups[item]], groups[item]))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item]))


def _group(item: pytest.Item) -> str:
    file = item.path.relative_to(Path(__file__).parent)
    return file.parts[0] if file.parts[0] in _SHARING else str(file)


@pytest.fixture(autouse=True)
def own_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands configure the logs of their process: without this, those of later tests in the same process, too."""
    configure = structlog.configure

    def configure_uncached(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", configure_uncached)
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The real control plane with its controllers, started when the first test asks for it."""
    if not build.built() and "real" not in data.REQUIRED:
        data.unavailable("real", "the real control plane is not built: run `make controlplane`")
    try:
        plane = ControlPlane(tmp_path_factory.mktemp("controlplane"))
    except Unavailable as error:
        data.unavailable("real", f"the real control plane cannot be built: {error}")
        raise
    with plane:
        plane.start_controllers()
        yield plane


@pytest.fixture(params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[worlds.Cluster]:
    """A cluster to test against: every test that asks for it runs in both worlds."""
    async with AsyncExitStack() as stack:
        yield worlds.Cluster(await _world(request, stack), stack, next(_numbers))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["embedded", "real"])
async def lasting_cluster(request: pytest.FixtureRequest) -> AsyncIterator[worlds.Cluster]:
    """One cluster for all tests of a module, in both worlds; each test leaves it as it found it."""
    async with AsyncExitStack() as stack:
        yield worlds.Cluster(await _world(request, stack), stack, next(_numbers))


async def _world(request: pytest.FixtureRequest, stack: AsyncExitStack) -> worlds.World:
    if request.param == "real":
        real = worlds.Real(cast(ControlPlane, request.getfixturevalue("control_plane")))
        stack.push_async_callback(real.clear)
        return real
    authority = Authority(SystemClock().now())
    made = embedded_cluster.Cluster(ca_certificate=authority.bundle.trusted)
    return worlds.Embedded(await stack.enter_async_context(made), authority, stack)

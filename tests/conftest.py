"""Fixtures for all tests: `cluster` is one test's view of the embedded cluster, then of the real control plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, cast

import pytest
import pytest_asyncio
import structlog
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the embedded server is known to do differently; once it does as Kubernetes does, the test fails."""
    for item in items:
        if item.nodeid.removeprefix("tests/") in EMBEDDED:
            item.add_marker(pytest.mark.xfail(reason="known difference of the embedded server", strict=True))
    if hasattr(config, "workerinput"):
        _begin_with_the_longest(items)


# Folders whose tests share one cluster; they take longest, and wait more than they compute.
_SHARING = ("tests/cluster/", "tests/schedulers/")


def _begin_with_the_longest(items: list[pytest.Item]) -> None:
    """What shares a cluster comes first, then the files with the most tests, so that no worker is left over."""
    shares = {item: _share(item.nodeid) for item in items}
    sizes = Counter(shares.values())
    items.sort(key=lambda item: (shares[item] not in _SHARING, -sizes[shares[item]], shares[item]))


def _share(nodeid: str) -> str:
    """What runs on one worker: each file, and all tests that share a cluster."""
    return next((folder for folder in _SHARING if nodeid.startswith(folder)), nodeid.partition("::")[0])


class Shares(LoadScopeScheduling):
    """Gives the tests of one share to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _share(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Shares:
    """Share out the tests in the order in which they were collected."""
    config.option.loadscopereorder = False
    return Shares(config, log)


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

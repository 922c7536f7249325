"""The same stories for every real scheduler, on the real API server."""

from __future__ import annotations

import asyncio

import pytest

from spinney.kube.errors import ApiError
from spinney.testing import build as controlplane
from spinney.testing.schedulers.entries import ENTRIES, Entry
from spinney.testing.schedulers.homes import lacking
from tests import data
from tests.schedulers.stories import STORIES
from tests.schedulers.table import CANNOT, Refused
from tests.schedulers.telling import Outcome, tell

pytestmark = [pytest.mark.timeout(2400), pytest.mark.schedulers]


@pytest.fixture(scope="module", params=ENTRIES)
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """How the chosen stories ended with a scheduler; all of them are told side by side."""
    entry = ENTRIES[request.param]
    _available(entry)
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [each["name"] for each in parameters if each.get("outcomes") == entry.name]
    return asyncio.run(tell(entry, tmp_path_factory.mktemp(entry.name), chosen))


def _available(entry: Entry) -> None:
    if not controlplane.built(entry.kubernetes):
        data.unavailable(
            "real", f"Kubernetes {entry.kubernetes} is not built: run `make controlplane VERSION={entry.kubernetes}`"
        )
    missing = lacking(entry.program) if entry.program else ""
    if missing:
        # What only a checkout provides cannot be required.
        data.unavailable("kai" if entry.program == "kai" else "schedulers", missing)


@pytest.mark.parametrize("name", STORIES)
def test_story(outcomes: dict[str, Outcome], name: str, request: pytest.FixtureRequest) -> None:
    """The story ends as it should, or as the table of what a scheduler cannot do says."""
    error = outcomes[name].error
    instead = CANNOT.get((request.node.callspec.params["outcomes"], name))
    if isinstance(instead, Refused):
        assert isinstance(error, ApiError), error or "the set was not refused"
        assert instead.words in str(error)
    elif error is not None:
        raise error

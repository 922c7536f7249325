"""Logs: one line per event, readable by people or machines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from spinney.kube import logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    logging.basicConfig(handlers=handlers, level=level, force=True)


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """With JSON, each event is an object with its level, time and fields; libraries' lines too."""
    logs.configure("json", "info")
    structlog.get_logger("fresh").bind(controller="x").info("reconcile.done", seconds=1)
    logging.getLogger("library").warning("from %s", "elsewhere")
    ours, theirs = map(json.loads, capsys.readouterr().err.splitlines())
    assert (ours["message"], ours["level"], ours["controller"], ours["seconds"]) == ("reconcile.done", "info", "x", 1)
    assert "timestamp" in ours
    assert (theirs["message"], theirs["level"]) == ("from elsewhere", "warning")


def test_the_level_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """What is below the level is not written."""
    logs.configure("text", "warning")
    log = structlog.get_logger("fresh")
    log.info("quiet")
    log.warning("loud", name="a")
    written = capsys.readouterr().err
    assert "quiet" not in written
    assert "loud" in written
    assert "name=a" in written


@pytest.mark.parametrize("form", ["text", "json"])
def test_tracebacks_showed_the_secrets_on_their_way(form: logs.Format, capsys: pytest.CaptureFixture[str]) -> None:
    """An error is told with its place and message; what variables held stays out of the log."""
    logs.configure(form)
    token = "s3cr3t-token"
    try:
        raise ValueError(f"refused after {len(token)} letters")
    except ValueError:
        structlog.get_logger("fresh").exception("request.failed")
    written = capsys.readouterr().err
    assert "refused after 12 letters" in written
    assert "test_tracebacks_showed_the_secrets_on_their_way" in written
    assert "s3cr3t" not in written.replace('token = "s3cr3t-token"', "")

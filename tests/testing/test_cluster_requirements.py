"""What is said, in one line, where a machine cannot hold a cluster."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from spinney.testing.cluster import requirements
from spinney.testing.cluster.__main__ import main
from spinney.testing.golang import Unavailable
from tests import data


def test_not_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who is not root hears why root is needed."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["--build"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "no cluster: a real cluster on one machine needs root, for namespaces, mounts and control groups"


def test_not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other systems have no namespaces."""
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unavailable, match="needs Linux"):
        requirements.check()


def test_missing_packages_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the command that installs what is missing."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None if name in ("containerd", "ctr", "runc") else f"/bin/{name}")
    monkeypatch.setattr(requirements, "_NETWORK_PLUGINS", requirements.Path("/"))
    with pytest.raises(Unavailable, match=r"apt-get install containerd runc$"):
        requirements.check()


def test_number_of_nodes_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """A number of nodes that cannot be is refused before anything starts."""
    assert main(["--nodes", "0"]) == 1
    assert "--nodes is between 1 and 200" in capsys.readouterr().err


def test_skip_is_a_failure_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI a machine that cannot hold a cluster fails the tests instead of skipping them."""
    monkeypatch.setattr(data, "REQUIRED", frozenset({"cluster"}))
    with pytest.raises(pytest.fail.Exception, match="SPINNEY_REQUIRE=cluster: no root"):
        data.unavailable("cluster", "no root")

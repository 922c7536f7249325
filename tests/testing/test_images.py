"""Images built without a registry: their parts list, and what is said where they cannot be built."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spinney.testing.golang import Unavailable
from spinney.testing.images import buildah, spinney
from spinney.testing.images.__main__ import main
from spinney.testing.images.sbom import bill_of_materials

STATUS = """Package: libc6
Status: install ok installed
Version: 2.36-9+deb12u14

Package: gone
Status: deinstall ok config-files

"""
METADATA = "Metadata-Version: 2.4\nName: NumPy\nVersion: 2.4.6\nLicense-Expression: BSD-3-Clause\n\nName: no header\n"


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_parts_list_names_every_package(tmp_path: Path) -> None:
    """Python distributions and Debian packages, each with its package URL; the image itself is the subject."""
    _file(tmp_path / "var/lib/dpkg/status", STATUS)
    _file(tmp_path / "opt/spinney/lib/python3.11/site-packages/numpy-2.4.6.dist-info/METADATA", METADATA)
    bom = bill_of_materials(tmp_path, "localhost/spinney", "1.2.3")
    assert (bom["bomFormat"], bom["metadata"]["component"]["version"]) == ("CycloneDX", "1.2.3")
    debian, python = bom["components"]
    assert debian["purl"] == "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14"
    assert python["purl"] == "pkg:pypi/numpy@2.4.6"
    assert python["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]


def test_not_root_is_told_the_other_way(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who is not root hears in one line how to build with a daemon."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main([]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no image: ")
    assert "docker build -f deploy/Dockerfile" in line


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing on the machine is said by its package's name."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(buildah.shutil, "which", lambda _: None)
    with pytest.raises(Unavailable, match="apt-get install buildah mmdebstrap"):
        buildah.check()


def test_run_time_lock_holds_only_what_runs() -> None:
    """The image's lock has the extras of the image, and none of the tools of development."""
    root = Path(spinney.__file__).parents[4]
    names = {line.partition("==")[0] for line in (root / "deploy/requirements.lock").read_text().splitlines()}
    assert {"aiohttp", "numpy", "nvidia-ml-py", "grpclib"} <= names
    assert not names & {"pytest", "mypy", "ruff", "matplotlib"}

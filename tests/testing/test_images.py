"""Images built without a registry: their parts list, and what is said where they cannot be built."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from spinney.testing.golang import Unavailable
from spinney.testing.images import buildah, spinney
from spinney.testing.images.__main__ import main
from spinney.testing.images.sbom import Subject, bill_of_materials, image_of

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
    bom = bill_of_materials(tmp_path, Subject("localhost/spinney", "1.2.3", "sha256:1"))
    assert (bom["bomFormat"], bom["metadata"]["component"]["version"]) == ("CycloneDX", "1.2.3")
    assert image_of(bom) == "sha256:1"
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


def _locked(name: str) -> dict[str, set[str]]:
    versions: dict[str, set[str]] = {}
    for line in (Path(spinney.__file__).parents[4] / name).read_text().splitlines():
        package, equals, version = line.partition("==")
        if equals and not line.startswith((" ", "#")):
            versions.setdefault(package, set()).add(version.split()[0])
    return versions


def test_run_time_lock_holds_only_what_runs() -> None:
    """The image's lock has the extras of the image, and none of the tools of development."""
    locked = _locked("deploy/requirements.lock")
    assert {"aiohttp", "numpy", "nvidia-ml-py", "grpclib"} <= locked.keys()
    assert not locked.keys() & {"pytest", "mypy", "ruff", "matplotlib"}


def test_both_locks_agree() -> None:
    """The image holds every dependency in the version that was tested; `make lock` writes both."""
    image, tested = _locked("deploy/requirements.lock"), _locked("requirements.lock")
    assert {name: tested.get(name) for name in image} == image
    project = tomllib.loads((Path(spinney.__file__).parents[4] / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[^A-Za-z0-9-]", line)[0] for line in project["dependencies"]}
    assert needed <= image.keys()

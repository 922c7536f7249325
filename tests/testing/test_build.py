"""The builder of the control plane: where it puts things, and what it says when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.testing import build, golang, gomodules
from spinney.testing.gates import gang_api, gang_gates

pytestmark = pytest.mark.usefixtures("cache")


def test_folder(cache: Path) -> None:
    """Binaries lie by version in the user's cache folder."""
    assert build.folder("v1.36.3") == cache / "controlplane" / "v1.36.3"
    assert not build.built("v1.36.3")


def test_no_op(cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is built is not built again."""
    target = build.folder()
    target.mkdir(parents=True)
    for program in build.PROGRAMS:
        (target / program).touch()
    monkeypatch.setattr(gomodules, "find_go", lambda: pytest.fail("Go is not needed"))
    assert build.main([]) == 0
    assert capsys.readouterr().out.strip() == str(target)


def test_bad_version(capsys: pytest.CaptureFixture[str]) -> None:
    """A version that is none is one clear line and a failure."""
    assert build.main(["latest"]) == 1
    assert "Kubernetes version 'latest' is not of the form v1.35.4" in capsys.readouterr().err


def test_failed_build_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A build that fails says why, and leaves no folder that looks like a build."""
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\n[ $1 = env ] && exit 0\necho no such module >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr(gomodules, "find_go", lambda: str(go))
    with pytest.raises(golang.Unavailable, match="go build failed: no such module"):
        build.ensure("v1.35.4")
    assert not build.folder("v1.35.4").exists()


def test_old_go_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path) -> None:
    """A Go that is too old is not used: one is installed into the cache."""
    old = tmp_path / "bin" / "go"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho go1.19.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent))
    installed = cache / "go" / "go" / "bin" / "go"

    def install(target: Path) -> None:
        installed.parent.mkdir(parents=True)
        installed.touch()

    monkeypatch.setattr(golang, "_install", install)
    assert golang.find_go() == str(installed)


GANGS = {
    "v1.33.0": ("", ()),
    "v1.35.4": ("scheduling.k8s.io/v1alpha1", ("GenericWorkload=true", "GangScheduling=true")),
    "v1.36.3": (
        "scheduling.k8s.io/v1alpha2",
        (
            "GenericWorkload=true",
            "GangScheduling=true",
            "TopologyAwareWorkloadScheduling=true",
            "WorkloadAwarePreemption=true",
            "SchedulerPopFromBackoffQ=false",
        ),
    ),
}


@pytest.mark.parametrize("version", GANGS)
def test_gang_gates(version: str) -> None:
    """Each release gets the API and the gates that its gangs need; before 1.35 there are none."""
    assert (gang_api(version), gang_gates(version)["kube-scheduler"]) == GANGS[version]

"""`spinney demo`, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from spinney.api.core import Pod
from spinney.api.meta import convert
from spinney.app.gang_progress import Progress, stages_of
from spinney.kube.caches.cache import Change
from tests import make


def test_the_demo_ends_with_0_once_everything_runs(tmp_path: Path) -> None:
    """Three workloads run, and the one that cannot fit says why and what would help."""
    command = [sys.executable, "-m", "spinney.cli", "demo", "--exit", "--kubeconfig", str(tmp_path / "kubeconfig")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    for gang, pods in (("inference-0", "13/13"), ("evaluation-0", "4/4"), ("training", "2/2")):
        (line,) = (line for line in done.stdout.splitlines() if gang in line)
        assert line.rstrip().endswith(pods)
    why = done.stdout.split("$ spinney explain too-large\n")[1]
    assert "0 of 12 pods placed, 12 needed together" in why
    assert "12 pods must share one kubernetes.io/rack" in why
    assert "→ The largest kubernetes.io/rack holds 8 of 12 pods" in why


def test_the_stages_of_a_pod() -> None:
    """A pod's own state proves how far it is."""
    builder = make.pod("a").gate("grove.io/podgang")
    assert stages_of(convert(Pod, builder.build())) == ["created", "gated"]
    builder.object["spec"].pop("schedulingGates")
    assert stages_of(convert(Pod, builder.build())) == ["created", "released"]
    builder.on("node-1")
    assert stages_of(convert(Pod, builder.build())) == ["created", "released", "bound"]
    builder.object["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert stages_of(convert(Pod, builder.build()))[-1] == "running"


def test_a_stage_is_complete_when_the_last_pod_reaches_it() -> None:
    """And keeps the time at which it did."""
    seconds = iter([1.0, 2.0, 3.0])
    progress = Progress({"g": 2}, lambda: next(seconds))
    for name in ("a", "b"):
        progress.pod(Change(None, make.pod(name).label("grove.io/podgang", "g").typed(Pod)))
    progress.pod(Change(None, make.pod("c").label("grove.io/podgang", "other").typed(Pod)))

    assert progress.gangs["g"].complete == {"created": 2.0, "released": 2.0}
    assert not progress.done

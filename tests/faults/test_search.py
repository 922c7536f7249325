"""A slice of the fault search (`make faults`): no fault breaks a rule, and what is found can be replayed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.sim.faults.scenarios import SCENARIOS

_ROOT = Path(__file__).parents[2]


def faults(*arguments: str, code: int = 0) -> str:
    """The output of `spinney faults`, which is a process of its own: it forks, and this one has threads."""
    command = [sys.executable, "-m", "spinney.cli", "faults", *arguments]
    ran = subprocess.run(command, cwd=_ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stdout[-5000:] + ran.stderr[-2000:]
    return ran.stdout


@pytest.mark.parametrize(
    ("scenario", "every"),
    [("gang-kai", 9), ("reclaim", 12), ("claims", 5), ("volumes", 4), ("shard", 4)],
)
def test_a_fault_at_a_write_breaks_no_rule(scenario: str, every: int) -> None:
    """Crashes, lost answers, refusals and users at some of the writes: the scenario ends as it should."""
    (totals,) = json.loads(faults("--scenario", scenario, "--every", str(every), "-o", "json"))
    assert totals["violations"] == []
    assert totals["singleFaults"] >= (totals["writePoints"] + every - 1) // every * 3
    assert totals["checks"]["no_node_over_capacity"] > 0


def test_several_faults_of_a_seed_break_no_rule() -> None:
    """Twelve seeds draw every kind: faults of watches, writes, clocks, leaders, webhooks, kubelets, nodes and users."""
    (totals,) = json.loads(faults("--scenario", "gang-kai", "--every", "0", "--seeds", "12", "-o", "json"))
    assert totals["violations"] == []
    assert set(totals["faults"]) == {
        "broken",
        "clock jumped",
        "crashed",
        "delayed",
        "expired",
        "flap",
        "late",
        "refused",
        "replayed",
        "second leader",
        "unanswered",
        "user",
        "webhooks",
    }


def test_the_same_seed_tells_the_same_story_byte_for_byte() -> None:
    """Two processes with the same scenario and seed take the same steps at the same virtual times."""
    first, second = (faults("--scenario", "gang-kai", "--seed", "10") for _ in range(2))
    assert first == second
    assert "FAULT" in first
    assert "POST /api/v1/namespaces/default/pods 201" in first


def test_a_fault_at_one_write_is_told() -> None:
    """A replay names the write and what happened around it."""
    output = faults("--scenario", "gang-kai", "--write", "12", "--fault", "answer-lost")
    assert "answer-lost at write 12" in output
    assert "kept every rule" in output


def test_at_least_twenty_scenarios_are_listed() -> None:
    """Every scenario says in one line what happens in it."""
    listed = faults("--list").splitlines()[1:]
    assert [line.split()[0] for line in listed] == list(SCENARIOS)
    assert len(listed) >= 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scenario", "nothing"], "there is no 'nothing': see `spinney faults --list`"),
        (["--seed", "1"], "a replay needs exactly one --scenario"),
        (["--scenario", "gang-kai", "--write", "1", "--fault", "odd"], "'odd' is none of crash-before,"),
    ],
)
def test_a_wrong_option_is_explained(arguments: list[str], message: str) -> None:
    """What is wrong, and where to look."""
    command = [sys.executable, "-m", "spinney.cli", "faults", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert message in ran.stderr

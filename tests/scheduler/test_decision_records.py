"""The decision log: cycles are replayed byte for byte, within bounds, and differences are found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from spinney.api.batch import Job
from spinney.api.schedulerfile import DecisionLogSettings, SchedulerFile
from spinney.cli.main import main
from tests.answers.agreement import Arena, Situation, Work, arena


async def live(cluster: Arena) -> None:
    """Gangs of two queues that come, are evicted for one another, and end."""
    work = [Work(f"j{number}", 2, 4, "ab"[number % 2]) for number in range(6)]
    await cluster.set_up(Situation([8, 8], [("a", 16.0, -1.0), ("b", 0.0, -1.0)], work, []))
    await cluster.client.delete(Job, ("default", "j0"), propagation="Foreground")
    await asyncio.sleep(60)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log") / "decisions"
    settings = SchedulerFile(decision_log=DecisionLogSettings(folder=str(folder)))
    with arena(settings) as cluster:
        cluster.run(live(cluster))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["decisions", *map(str, arguments)])


def test_every_cycle_is_replayed_byte_for_byte(log: Path, tmp_path: Path) -> None:
    """The log holds changes only, and yet every plan is the one that was made."""
    result = run("replay", log, "--write", tmp_path / "again.jsonl")
    assert result.exit_code == 0, result.output
    assert result.output.endswith(" 0 differ\n")
    assert run("diff", log, tmp_path / "again.jsonl").output.endswith(" cycles are the same\n")


def test_cycles_are_shown(log: Path) -> None:
    """The first one holds the whole state."""
    lines = run("show", log).output.splitlines()
    assert "(whole state)" in lines[0]
    assert any(not line.endswith("0 bind, 0 wait, 0 evict") for line in lines)
    assert "has no cycle 99999" in run("show", log, "--cycle", 99999).output


def test_the_first_cycle_that_differs_is_found(log: Path, tmp_path: Path) -> None:
    """Another version would have bound a pod elsewhere."""
    lines = [msgspec.json.decode(line) for path in sorted(log.iterdir()) for line in path.read_bytes().splitlines()]
    changed = next(each for each in lines if each["decided"]["decisions"])
    changed["decided"]["decisions"][0][4] = "elsewhere"
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    result = run("diff", log, other)
    assert result.exit_code == 1
    assert f"cycle {changed['cycle']} differs" in result.output
    first = result.output.splitlines()[1]
    assert first.startswith("decision 1: allocate: bind ")
    assert first.endswith("on elsewhere")
    assert run("replay", other).exit_code == 1


def test_the_first_decision_of_another_configuration_is_found(log: Path, tmp_path: Path) -> None:
    """Without reclaim the cycle that evicted first decides otherwise; cycles before it are the same."""
    lines = run("show", log).output.splitlines()
    evicting = next(line for line in lines if not line.endswith(" 0 evict"))
    policy = tmp_path / "policy.yaml"
    policy.write_text("actions: allocate\n")
    result = run("diff", log, "--config", policy)
    assert result.exit_code == 1
    assert result.output.startswith(f"{evicting.partition(' at ')[0]} differs")
    assert "decision 1: reclaim: evict " in result.output
    assert run("diff", log).exit_code == run("diff", log, log, "--config", policy).exit_code == 2


def test_the_log_stays_within_its_bounds(tmp_path: Path) -> None:
    """Old files go, each file begins with a whole state, and only the owner may read them."""
    folder = tmp_path / "decisions"
    bounds = DecisionLogSettings(folder=str(folder), bytes=60_000, files=3)
    with arena(SchedulerFile(decision_log=bounds)) as cluster:
        cluster.run(live(cluster))
        cluster.run(cluster.empty())
        cluster.run(live(cluster))
    files = sorted(folder.iterdir())
    assert len(files) == 3
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert all(msgspec.json.decode(path.read_bytes().splitlines()[0])["whole"] for path in files)
    assert run("replay", folder).exit_code == 0


def test_other_files_are_refused(tmp_path: Path) -> None:
    """The error names the line."""
    (tmp_path / "x.jsonl").write_text("{}\n")
    assert "line 1 is no record of a cycle" in run("show", tmp_path / "x.jsonl").output


def test_a_log_of_decisions_was_written_into_a_file_that_all_could_read(tmp_path: Path) -> None:
    """A replay names gangs, pods and nodes as the log does."""
    log, ours = tmp_path / "log.jsonl", tmp_path / "ours.jsonl"
    log.write_text("")
    ours.write_text("")
    ours.chmod(0o644)
    result = run("replay", log, "--write", ours)
    assert result.exit_code == 0, result.output
    assert ours.stat().st_mode & 0o777 == 0o600

"""Replays: traces of several formats, what a policy makes of them, and the charts."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli.main import main
from spinney.scheduler.config import ALLOCATE, Config
from spinney.sim.loop import clock
from spinney.sim.replay.engine import Replay
from spinney.sim.replay.foresight import foresight
from spinney.sim.replay.reading import read_trace
from spinney.sim.replay.recording import record
from spinney.sim.replay.results import PolicyResult, result_of
from spinney.sim.replay.trace import Trace, TraceError
from tests import data
from tests.answers.agreement import Arena, Situation, Work, arena

GANGS = "task_id,job_count,replicas_nodes_each,ttl\nbig,1,32,2m\nhalf,2,16,2m\nsmall,4,8,1m\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,T4\nn1,64000,262144,2,V100\n"
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,1000,1024,2,1000,V100,LS,Running,100,200,100
b,1000,1024,1,500,,BE,Running,100,150,100
c,1000,1024,2,1000,V100,LS,Running,110,160,120
"""
KUEUE = """\
cohorts:
- className: cohort
  count: 1
  queuesSets:
  - className: cq
    count: 2
    nominalQuota: 50
    borrowingLimit: 50
    workloadsSets:
    - count: 10
      creationIntervalMs: 100
      workloads: [{className: small, runtimeMs: 200, priority: 50, request: 20}]
    - count: 2
      creationIntervalMs: 500
      workloads: [{className: large, runtimeMs: 1000, priority: 90, request: 50}]
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def replayed(trace: Trace, config: Config | None = None, every: float = 0.001) -> PolicyResult:
    return result_of("x", trace, Replay(trace, config or Config(), every).run())


def test_gangs_follow_one_another_without_a_gap(tmp_path: Path) -> None:
    """32 nodes: the big gang, then both halves, then the small ones at once."""
    result = replayed(read_trace(written(tmp_path, "gangs.csv", GANGS), 0))
    assert result.makespan == pytest.approx(300, abs=0.1)
    assert result.utilisation == pytest.approx(1.0, abs=0.001)
    assert result.by_size["9–64"].longest == pytest.approx(240, abs=0.1)


def test_openb_pods_wait_for_the_model_that_they_name(tmp_path: Path) -> None:
    """The second pod for V100 starts when the first ends; shares of a GPU run beside it."""
    written(tmp_path, "openb_node_list_gpu_node.csv", NODES)
    result = replayed(read_trace(written(tmp_path, "pods.csv", PODS), 0))
    assert result.by_queue["LS"].longest == pytest.approx(90, abs=0.01)
    assert result.by_queue["BE"].longest == pytest.approx(0, abs=0.01)
    assert result.waits.never_started == 0


def test_kueue_generators_are_queues_in_cohorts(tmp_path: Path) -> None:
    """Everything runs; without the right to evict nobody is evicted."""
    trace = read_trace(written(tmp_path, "generator.yaml", KUEUE), 0)
    assert [queue.name for queue in trace.queues] == ["cohort-0", "cohort-0-cq-0", "cohort-0-cq-1"]
    assert len(trace.nodes) == 1
    result = replayed(trace, Config(actions=(ALLOCATE,)))
    assert (result.waits.jobs, result.waits.never_started, result.evictions) == (24, 0, 0)
    assert 0.9 < result.fairness <= 1.0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "a,b\n1,2\n", "neither a list of openb pods nor of knavigator jobs"),
        ("x.csv", PODS, "openb_node_list_gpu_node.csv must be beside it"),
        ("x.yaml", "kind: Job\n", "neither a generator of Kueue's performance tests nor another trace"),
        ("x.jsonl", '{"at": "now"}\n', "line 1 is no line of a history"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    """The error says what was expected."""
    with pytest.raises(TraceError, match=message):
        read_trace(written(tmp_path, name, text), 0)


def test_a_file_that_is_no_text_is_told_in_plain_words(tmp_path: Path) -> None:
    """It was "'utf-8' codec can't decode byte"."""
    path = tmp_path / "noise"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="noise: not text: invalid start byte at byte 0"):
        read_trace(path, 0)


@pytest.mark.parametrize(
    ("text", "message"), [("a: " + "[" * 5_000, "more than 128 levels deep"), ("a: \x00", "character")]
)
def test_a_file_that_no_reader_of_yaml_takes_ended_in_a_traceback(tmp_path: Path, text: str, message: str) -> None:
    """A generator of Kueue's tests is read within the bounds of any other YAML."""
    with pytest.raises(TraceError, match=message):
        read_trace(written(tmp_path, "deep.yaml", text), 0)


def test_a_snapshot_with_a_quantity_that_is_none_ended_in_a_traceback(tmp_path: Path) -> None:
    """The quantity is told in one line."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}}
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as archive:
        archive.writestr("snapshot.json", json.dumps({"config": {}, "rawObjects": {"pods": [], "nodes": [node]}}))
    ran = CliRunner().invoke(main, ["replay", str(tmp_path / "odd.zip")])
    assert (ran.exit_code, "quantity 'x' cannot be read" in ran.output) == (1, True)


def test_policies_are_compared_in_a_table_and_charts(tmp_path: Path) -> None:
    """A column for each policy, and three charts."""
    trace = written(tmp_path, "generator.yaml", KUEUE)
    one = written(tmp_path, "one.yaml", "actions: allocate\n")
    two = written(tmp_path, "two.yaml", "actions: allocate,preempt\n")
    arguments = ["replay", str(trace), "--policy", str(one), "--policy", str(two)]
    result = CliRunner().invoke(main, [*arguments, "--charts", str(tmp_path / "charts")])
    assert result.exit_code == 0, result.output
    assert "ONE TWO mean wait, s" in " ".join(result.output.split())
    assert sorted(path.name for path in (tmp_path / "charts").iterdir()) == [
        "utilisation.svg",
        "waiting-by-queue.svg",
        "waiting-by-size.svg",
    ]
    answer = json.loads(CliRunner().invoke(main, [*arguments, "-o", "json"]).stdout)
    assert [each["policy"] for each in answer["policies"]] == ["one", "two"]


def test_a_recorded_history_is_replayed(tmp_path: Path) -> None:
    """Two Jobs that did not fit together then do not fit together in the replay."""
    lines: list[bytes] = []

    async def story(cluster: Arena) -> None:
        recording = asyncio.create_task(record(cluster.client, clock(), lines.append, None))
        work = [Work("a", 1, 8, "q"), Work("b", 1, 8, "q")]
        await cluster.set_up(Situation([8], [("q", 0.0, -1.0)], work, []))
        recording.cancel()
        await asyncio.gather(recording, return_exceptions=True)

    with arena() as cluster:
        cluster.run(story(cluster))
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(lines))
    assert b'"image"' not in path.read_bytes()
    trace = read_trace(path, 0)
    assert (len(trace.nodes), len(trace.jobs)) == (1, 2)
    result = replayed(trace)
    assert result.by_queue["q"].longest > 100


def test_expected_starts_are_met_where_run_times_are_known(tmp_path: Path) -> None:
    """At least nine of ten gangs that wait start within a fifth of the time that was told when they arrived."""
    result = foresight(read_trace(written(tmp_path, "gangs.csv", GANGS), 0), Config(), 0.001)
    assert result["waited"] == 6
    assert result["met"] >= 0.9


def test_knavigators_gangs_reach_the_perfect_makespan() -> None:
    """288 node slots of two minutes on 32 nodes take 18 minutes at best."""
    path = data.path("traces/knavigator/gang_scheduling_53_jobs.csv")
    assert replayed(read_trace(path, 0)).makespan == pytest.approx(1080, abs=1)


def test_expected_starts_of_knavigators_gangs_are_met() -> None:
    """Nine of ten start within a fifth of the time that was told when they arrived."""
    path = data.path("traces/knavigator/gang_scheduling_53_jobs.csv")
    result = foresight(read_trace(path, 0), Config(), 0.001)
    assert result["waited"] > 40
    assert result["met"] >= 0.9

"""Fragmentation-aware placement keeps GPUs usable for what usually comes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.cycle import Cycle
from spinney.scheduler.plugins.fragmentation import Fragments, Rule
from spinney.scheduler.state.specs import Constraint, GpuRequest, JobSpec, NodeSpec, TaskSpec, TopologySpec, gang
from tests.scheduler.clusters import Cluster, outcome

KEEP = Config(
    actions=("allocate",),
    plugins=(*(plugin for plugin in Config().plugins if plugin.name != "nodeplacement"), PluginConfig("fragmentation")),
)


def test_small_tasks_stay_off_nodes_that_large_ones_need() -> None:
    """Where tasks of four GPUs are typical, a single GPU goes to the node that cannot hold one anyway."""
    cluster = Cluster(4, 4, 3).queue("q", 100)
    for number in range(8):
        cluster.job(f"large{number}", "q", [""], gpus=4)
    cluster.job("small", "q", [""], priority=90)
    assert outcome(cluster.plan(config=KEEP))["small-0"][1] == "n2"


def test_parts_go_where_no_whole_gpu_is_broken() -> None:
    """Half a GPU joins a shared one, though another node is fuller."""
    cluster = Cluster(2, 2).queue("q", 100).job("r", "q", ["n1"], gpus=0.5).job("w", "q", ["n0"])
    for number in range(6):
        cluster.job(f"whole{number}", "q", [""], gpus=2)
    cluster.job("half", "q", [""], gpus=0.5, priority=90)
    assert outcome(cluster.plan(config=KEEP))["half-0"][1:] == ("n1", ("r-0-gpu",))


def test_gangs_are_still_whole() -> None:
    """The plugin only scores: gangs start together or not at all."""
    cluster = Cluster(2, 2).queue("q", 100).job("j", "q", [""] * 5)
    assert not cluster.plan(config=KEEP).decisions
    assert len(Cluster(2, 3).queue("q", 100).job("j", "q", [""] * 5).plan(config=replace(KEEP)).decisions) == 5


def _task(cluster: Cluster, name: str, cpu: float, gpu: GpuRequest, priority: int = 50) -> None:
    cluster.state.set_job(JobSpec(name, "q", priority, created=float(len(cluster.state.jobs)), tree=gang(1)))
    cluster.state.set_task(TaskSpec(name, name, request={"cpu": cpu, "memory": 1e9}, gpu=gpu))


def _node(cluster: Cluster, name: str, gpus: int, cpu: float, memory: int = 1000) -> None:
    amounts = {"cpu": cpu, "memory": 1e12, "gpu": float(gpus), "pods": 110.0}
    cluster.state.set_node(NodeSpec(name, amounts, {}, gpu_memory=memory, gpu_memory_known=True))


def test_processors_are_left_to_the_gpus_beside_them() -> None:
    """A task without GPUs goes where processors are plenty, though the next GPU task would fit beside it anywhere."""
    cluster = Cluster().queue("q", 100)
    _node(cluster, "a", 4, 40_000)
    _node(cluster, "b", 4, 80_000)
    for number in range(12):
        _task(cluster, f"gpu{number}", 10_000, GpuRequest(whole=1))
    _task(cluster, "plain", 20_000, GpuRequest(), priority=90)
    done = cluster.plan(config=KEEP)
    assert outcome(done)["plain"][1] == "b"
    assert sum(decision.task.startswith("gpu") for decision in done.decisions) == 8


def test_memory_of_a_gpu_is_a_part_of_it() -> None:
    """A task that asks for memory joins the GPU that it fills, where tasks of whole GPUs are typical."""
    cluster = Cluster(2, 2).queue("q", 100).job("r", "q", ["n1"], gpus=0.5)
    for number in range(6):
        cluster.job(f"whole{number}", "q", [""])
    _task(cluster, "half", 1000, GpuRequest(memory=500), priority=90)
    assert outcome(cluster.plan(config=KEEP))["half"][1:] == ("n1", ("r-0-gpu",))


def test_a_gang_stays_in_its_domain() -> None:
    """Scores choose among the nodes of one rack only, though another rack would be fragmented less."""
    cluster = Cluster().queue("q", 100)
    for name, rack, gpus in (("a", "r1", 4), ("b", "r1", 4), ("c", "r2", 2)):
        cluster.node(name, gpus, rack=rack)
    cluster.state.set_topology(TopologySpec("tree", (("rack", ""),)))
    for number in range(6):
        cluster.job(f"large{number}", "q", [""], gpus=4)
    cluster.job("gang", "q", [""] * 3, inside=Constraint("tree", required="rack"), priority=90)
    places = outcome(cluster.plan(config=KEEP))
    assert len({places[f"gang-{number}"][1] for number in range(3)} - {"c"}) == 1


SIZES = st.sampled_from([0.16, 0.32, 0.47, 0.81])
PLACED = st.lists(st.tuples(st.integers(0, 2), SIZES), max_size=3, unique_by=lambda placed: placed[0])
KINDS = st.lists(
    st.tuples(
        st.integers(0, 64),
        st.one_of(
            st.integers(0, 4).map(lambda whole: GpuRequest(whole=whole)),
            SIZES.map(lambda part: GpuRequest(portion=part)),
        ),
    ),
    min_size=1,
    max_size=6,
)


@given(placed=PLACED, kinds=KINDS)
def test_fragments_are_what_the_paper_says(
    placed: list[tuple[int, float]], kinds: list[tuple[int, GpuRequest]]
) -> None:
    """Under the paper's rule, a node's fragmentation is the mean of what each waiting task could not use there."""
    cluster = Cluster(2, 3, 4).queue("q", 100)
    for number, (node, size) in enumerate(placed):
        cluster.job(f"r{number}", "q", [f"n{node}"], gpus=size)
    for number, (cpu, gpu) in enumerate(kinds):
        _task(cluster, f"k{number}", 1000.0 * cpu, gpu)
    cycle = Cycle(cluster.state, KEEP, 0.0)
    fragments = Fragments(cycle, Rule(filled=0.0, by_size=False))
    tasks = fragments.typical
    for row in cycle.all_rows:
        free = fragments.free[row]
        expected = 0.0
        for kind in range(len(tasks.weight)):
            need, devices = tasks.portions[tasks.portion[kind]] - 1e-9, tasks.devices[kind]
            usable = [gpus for gpus in free if gpus >= need]
            fits = devices and len(usable) >= devices and fragments.cpu[row] >= tasks.cpu[kind]
            expected += tasks.weight[kind] * (sum(free) - (sum(usable) if fits else 0.0))
        assert fragments.now[row] == pytest.approx(expected)


def test_an_overcommitted_node_stops_no_plan() -> None:
    """A node whose tasks use more GPUs than it has, shared ones among them, has nothing free."""
    cluster = Cluster(2, 2).queue("q", 100).job("half", "q", ["n0", "n0"], gpus=0.5).job("large", "q", ["n0"], gpus=2)
    assert outcome(cluster.job("small", "q", [""]).plan(config=KEEP))["small-0"][1] == "n1"

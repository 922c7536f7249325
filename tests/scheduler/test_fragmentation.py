"""Fragmentation-aware placement keeps GPUs usable for what usually comes."""

from __future__ import annotations

from dataclasses import replace

from spinney.scheduler.config import Config, PluginConfig
from tests.scheduler.clusters import Cluster

KEEP = Config(
    actions=("allocate",),
    plugins=(*(one for one in Config().plugins if one.name != "nodeplacement"), PluginConfig("fragmentation")),
)


def test_small_tasks_stay_off_nodes_that_large_ones_need() -> None:
    """Where tasks of four GPUs are typical, a single GPU goes to the node that cannot hold one anyway."""
    cluster = Cluster(4, 4, 3).queue("q", 100)
    for number in range(8):
        cluster.job(f"large{number}", "q", [""], gpus=4)
    cluster.job("small", "q", [""], priority=90)
    assert cluster.plan(config=KEEP).outcome["small-0"][1] == "n2"


def test_parts_go_where_no_whole_gpu_is_broken() -> None:
    """Half a GPU joins a shared one, though another node is fuller."""
    cluster = Cluster(2, 2).queue("q", 100).job("r", "q", ["n1"], gpus=0.5).job("w", "q", ["n0"])
    for number in range(6):
        cluster.job(f"whole{number}", "q", [""], gpus=2)
    cluster.job("half", "q", [""], gpus=0.5, priority=90)
    assert cluster.plan(config=KEEP).outcome["half-0"][1:] == ("n1", ("r-0-gpu",))


def test_gangs_are_still_whole() -> None:
    """The plugin only scores: gangs start together or not at all."""
    cluster = Cluster(2, 2).queue("q", 100).job("j", "q", [""] * 5)
    assert not cluster.plan(config=KEEP).decisions
    assert len(Cluster(2, 3).queue("q", 100).job("j", "q", [""] * 5).plan(config=replace(KEEP)).decisions) == 5

"""`spinney status`: the tree says where each pod is and what everything waits for."""

from __future__ import annotations

from spinney.cli.status import look, render
from tests.grove.stage import Stage, sample
from tests.grove.virtual import play


def test_the_tree_shows_gangs_cliques_and_pods() -> None:
    """A set's tree has its gangs, their cliques with counts, and pods with state, node and rack."""

    async def scenario(stage: Stage) -> None:
        await stage.apply(*sample("e2e-yaml/workload2"))
        await stage.runs(10)
        (tree,) = await look(stage.client, "default", "workload2")
        assert (tree["ready"], tree["waitsFor"]) == ("1/1", "")
        assert [gang["name"] for gang in tree["gangs"]] == ["workload2-0", "workload2-0-sg-x-0"]
        clique = tree["gangs"][0]["cliques"][0]
        assert (clique["name"], clique["ready"], clique["replicas"], clique["minimum"]) == ("workload2-0-pc-a", 2, 2, 1)
        pod = clique["pods"][0]
        assert pod["state"] == "Ready"
        assert pod["node"].startswith("node-")
        assert pod["rack"].startswith("rack-")
        assert len(render([tree], "default").renderables) == 1

    play(scenario, nodes=10)


def test_the_tree_says_what_things_wait_for() -> None:
    """A gang without room has the scheduler's words, its pods do not repeat them; a scaled one waits for its base."""

    async def scenario(stage: Stage) -> None:
        await stage.cordon(10)
        await stage.apply(*sample("e2e-yaml/workload2"))
        await stage.settle(20)
        (tree,) = await look(stage.client, "default", "")
        base, scaled = tree["gangs"]
        assert "no room" in base["waitsFor"]
        assert {pod["waitsFor"] for clique in base["cliques"] for pod in clique["pods"]} == {""}
        assert "base gang" in scaled["waitsFor"]
        assert scaled["cliques"][0]["pods"][0]["state"] == "Gated"
        assert not await look(stage.client, "elsewhere", "")

    play(scenario, nodes=10)

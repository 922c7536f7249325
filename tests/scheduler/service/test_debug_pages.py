"""The scheduler's own pages: what it works on, in the format that both schedulers read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner

from spinney.api.core import Node, Pod
from spinney.api.crd import crds
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import convert
from spinney.api.schedulerfile import SchedulerFile
from spinney.cli.main import main
from spinney.embedded.apiserver.server import ApiServer
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import InProcess
from spinney.kube.clock import SystemClock
from spinney.scheduler.config import Config, PluginConfig
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.intake.snapshot import KINDS, read
from spinney.scheduler.result import Turn
from spinney.scheduler.service.component import COMPONENT
from spinney.scheduler.service.debug_pages import DebugPages
from spinney.scheduler.share.simulation import Question, simulate
from tests import make
from tests.scheduler.clusters import Cluster
from tests.services.stage import ADMIN, CRD

FILE = SchedulerFile(actions="allocate", partition_label_value="blue")
FREE = {"quota": 0, "limit": -1, "overQuotaWeight": 1}


@pytest.fixture
async def client() -> Client:
    """A small cluster of the pool `blue`: one pod waits for a node that has room."""
    server = ApiServer(SystemClock(), Chance(1))
    await server.start()
    filled = Client(InProcess(server, ADMIN), Chance(2))
    for crd in crds():
        await filled.create(CRD, crd)
    blue = {"kai.scheduler/node-pool": "blue"}
    await filled.create(Node, make.node("n1", 8).label(*next(iter(blue.items()))).build())
    await filled.patch(Node, "n1", {"spec": {"taints": None}})
    shares = {"cpu": FREE, "memory": FREE, "gpu": FREE}
    await filled.create(Queue, {"metadata": {"name": "q", "labels": blue}, "spec": {"resources": shares}})
    group = {"metadata": {"name": "g", "labels": blue}, "spec": {"minMember": 1, "queue": "q"}}
    await filled.create(PodGroup, group, "default")
    pod = make.pod("p").scheduler("kai-scheduler").gpus(1).annotate("pod-group-name", "g").build()
    await filled.create(Pod, pod, "default")
    return filled


async def test_the_order_of_gangs_can_be_asked_for(client: Client) -> None:
    """With `reflectjoborder`: all gangs, and those of each queue, in the order of their turn."""
    cluster = Cluster(1).queue("a", 1).queue("b", 1)
    cluster.job("a0", "a", [""], priority=10).job("a1", "a", [""], priority=90).job("b0", "b", ["", ""])
    plugins = (*Config().plugins, PluginConfig("reflectjoborder"))
    made = cluster.plan(config=Config(plugins=plugins))
    turns: list[tuple[Turn, ...] | None] = [None, made.turns]
    pages = DebugPages(client, FILE, Config(plugins=plugins), lambda: turns.pop(0))
    async with TestClient(TestServer(pages.application())) as asking:
        assert (await asking.get("/get-job-order")).status == 503
        order = await (await asking.get("/get-job-order")).json()
    assert [entry["id"] for entry in order["global_order"]] == ["a1", "a0", "b0"]
    assert order["queue_order"]["a"] == [{"id": "a1", "priority": 90}, {"id": "a0", "priority": 10}]
    assert cluster.plan().turns == ()


QUESTION = {
    "totalResource": {"GPU": 100, "CPU": 16000, "Memory": 32000000},
    "queues": [
        {"uid": name, "resourceShare": {"gpu": {"deserved": 10, "request": 100, "overQuotaWeight": weight}}}
        for name, weight in (("queue1", 3), ("queue2", 1))
    ],
}
ANSWER = {
    "queue1": {"gpu": 70, "cpu": 16000, "memory": 100000},
    "queue2": {"gpu": 30, "cpu": 16000, "memory": 100000},
}


async def test_shares_of_queues_that_do_not_exist(client: Client, tmp_path: Path) -> None:
    """Upstream's own example, asked of the scheduler and on the command line; nonsense is refused."""
    async with TestClient(TestServer(DebugPages(client, FILE, Config(), lambda: None).application())) as asking:
        assert await (await asking.post("/simulate", json=QUESTION)).json() == ANSWER
        assert (await asking.post("/simulate", json={"queues": 3})).status == 400
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(QUESTION))
    assert json.loads(CliRunner().invoke(main, ["fairshare", str(file)]).output) == ANSWER
    file.write_text("[]")
    assert CliRunner().invoke(main, ["fairshare", str(file)]).exit_code == 2


def test_a_department_divides_what_it_is_given() -> None:
    """Queues of one parent share its part; a parent that is not asked about counts as none."""
    gpu = {"gpu": {"deserved": 0}}
    queues = [{"uid": "one", "resourceShare": gpu}, {"uid": "two", "parentQueue": "absent", "resourceShare": gpu}]
    queues += [{"uid": name, "parentQueue": "one", "resourceShare": gpu} for name in ("a", "b")]
    shares_of = simulate(convert(Question, {"totalResource": {"GPU": 8}, "queues": queues}))
    assert {name: share["gpu"] for name, share in shares_of.items()} == {"one": 4, "two": 4, "a": 2, "b": 2}


async def test_a_snapshot_of_the_scheduler_can_be_planned_on(client: Client, tmp_path: Path) -> None:
    """It holds the objects, the configuration and the shard: `spinney snapshot run` decides what the service would."""
    async with TestClient(TestServer(DebugPages(client, FILE, from_file(FILE), lambda: None).application())) as asking:
        answer = await asking.get("/get-snapshot")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/zip")
        content = await answer.read()
    snapshot = read(content)
    assert [pod["metadata"]["name"] for pod in snapshot.objects[KINDS["pods"].resource]] == ["p"]
    assert snapshot.config["actions"] == "allocate"
    assert [plugin["name"] for plugin in snapshot.config["tiers"][0]["plugins"]] == [
        each.name for each in Config().plugins
    ]
    assert snapshot.parameters["partitionParams"]["NodePoolLabelValue"] == "blue"
    path = tmp_path / "now.zip"
    path.write_bytes(content)
    result = CliRunner().invoke(main, ["snapshot", "run", str(path)])
    assert "allocate: bind default/p on n1" in result.output


async def test_pages_answer_only_to_the_loopback_address(client: Client) -> None:
    """A name that was made to point here is refused: a web page elsewhere must not read the cluster."""
    async with TestClient(TestServer(DebugPages(client, FILE, Config(), lambda: None).application())) as asking:
        answer = await asking.get("/get-snapshot", headers={"host": "evil.example.com"})
        assert answer.status == 403


def test_a_snapshot_with_an_unknown_plugin_is_refused(tmp_path: Path) -> None:
    """The message says where the name stands."""
    path = tmp_path / "now.json"
    path.write_text('{"config": {"tiers": [{"plugins": [{"name": "magic"}]}]}, "rawObjects": {}}')
    result = CliRunner().invoke(main, ["snapshot", "run", str(path)])
    assert result.exit_code != 0
    assert "the configuration in the snapshot: plugin magic is unknown" in result.output


def test_the_scheduler_may_read_what_a_snapshot_holds() -> None:
    """Every kind is in its rules."""
    granted = {resource for rule in COMPONENT.rules for resource in rule.resources if "list" in rule.verbs}
    assert {kind.resource.plural for kind in KINDS.values()} <= granted

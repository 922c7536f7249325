"""Names that are taken: told with the object and the remedy, tried again seldom, nothing of others changed."""

from __future__ import annotations

import pytest

from spinney.api.core import Event, Service, ServiceAccount
from spinney.api.meta import Json, Object
from spinney.api.podgang import PodGang
from tests import make
from tests.grove.stage import Stage
from tests.grove.virtual import VirtualStage, play, played, unasked

KAI = {"schedulerName": "kai-scheduler"}
HEADLESS = {"spec": {"clusterIP": "None"}}
GANG = {"spec": {"podgroups": [{"name": "theirs", "minReplicas": 1, "podReferences": []}]}}
TAKEN: dict[str, tuple[type[Object], str, Json]] = {
    "the Service of a replica": (Service, "svc-0", HEADLESS),
    "the account of init containers": (ServiceAccount, "svc", {}),
    "the gang of a replica": (PodGang, "svc-0", GANG),
}
# The gang says so itself, where there is one.
HELD = {"ReconcileError": True}
# Attempts wait for a minute at most; each is one request that is refused and one look.
SELDOM = 25


async def requests(stage: VirtualStage, seconds: float) -> int:
    """How many writes the operator attempts in a while, refused ones included."""
    transport = stage.operator.transport
    send, requests = transport.send, []

    async def counting(request):  # type: ignore[no-untyped-def]  # as the transport's own
        if request.method != "GET" and "coordination.k8s.io" not in request.path:
            requests.append(request)
        return await send(request)

    transport.send = counting  # type: ignore[method-assign]  # put back below
    await stage.settle(seconds)
    transport.send = send  # type: ignore[method-assign]  # as it was
    return len(requests)


async def told(stage: Stage, pcs: str) -> str:
    """What a set says went wrong; an event says the same, once."""
    (error,) = (await stage.pcs(pcs)).status.last_errors
    events = [event for event in await stage.list(Event) if event.reason == "ReconcileError"]
    assert [(event.count, error.description in event.message) for event in events] == [(1, True)]
    return error.description


@pytest.mark.parametrize("case", TAKEN)
def test_a_name_that_another_holds_is_told_and_left_alone(case: str) -> None:
    """The set names the object and what to do; once the name is free everything comes."""
    kind, name, body = TAKEN[case]

    async def scenario(stage: VirtualStage) -> None:
        theirs = await stage.client.create(kind, {"metadata": {"name": name}, **body}, "default")
        await stage.apply(make.pcs("svc").clique("a", **KAI).build())
        await stage.settle(60)
        words = f"{kind.resource.kind} default/{name} exists and belongs to someone else; delete or rename it"
        assert words in await told(stage, "svc")
        if kind is Service:
            gang = await stage.gang("svc-0")
            assert {c.reason: words in c.message for c in gang.status.conditions if c.type == "Scheduled"} == HELD
        assert await requests(stage, 600) < SELDOM
        theirs_now = await stage.client.get(kind, ("default", name))
        assert (theirs_now.metadata.labels, theirs_now.metadata.generation) == ({}, theirs.metadata.generation)
        await stage.delete(kind, name)
        await stage.runs(1)
        await stage.settle(60)
        assert not (await stage.pcs("svc")).status.last_errors

    play(scenario, nodes=2)


@played(nodes=3)
async def test_one_set_does_not_take_the_gang_of_another(stage: VirtualStage) -> None:
    """A scaled gang of set x is called as the base gang of set x-0-g: the one who came first keeps it."""
    await stage.apply(make.pcs("x").clique("a", **KAI).group("g", ["a"], 2).build())
    await stage.runs(2)
    await stage.apply(make.pcs("x-0-g").clique("b", **KAI).build())
    await stage.settle(60)
    assert "PodGang default/x-0-g-0 exists and belongs to someone else" in await told(stage, "x-0-g")
    assert (await stage.gang("x-0-g-0")).metadata.labels["app.kubernetes.io/part-of"] == "x"
    assert await requests(stage, 600) < SELDOM


@played(nodes=3, admission=unasked)
async def test_a_set_whose_own_names_clash_is_told(stage: VirtualStage) -> None:
    """Where no webhook refused it, a clique that is called as a group's member waits for one of them to be renamed."""
    await stage.apply(make.pcs("svc").clique("a", **KAI).clique("g-0-a", **KAI).group("g", ["a"], 2).build())
    await stage.settle(60)
    assert "two PodCliques of PodCliqueSet default/svc would be called svc-0-g-0-a" in await told(stage, "svc")
    assert await requests(stage, 600) < SELDOM

"""PodGangs that someone else makes, without a set, have a status as ours have."""

from __future__ import annotations

from spinney.api.core import Pod
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from tests import make
from tests.grove.stage import Stage
from tests.grove.virtual import play


def gang() -> Json:
    """A gang of two pods that belongs to nobody."""
    built = make.gang("theirs").backend("kai").build()
    built["metadata"].pop("uid", None)
    references = [{"namespace": "default", "name": name} for name in ("p0", "p1")]
    built["spec"]["podgroups"] = [{"name": "workers", "minReplicas": 2, "podReferences": references}]
    return built


def pod(name: str) -> Json:
    """A pod that says which gang it is of."""
    return make.pod(name).scheduler("kai-scheduler").label("grove.io/podgang", "theirs").build()


def test_a_gang_without_a_set_tells_how_it_is() -> None:
    """Missing pods, waiting, running and losing a pod are told in phase and conditions, and nothing else is done."""

    async def scenario(stage: Stage) -> None:
        await stage.cordon(2)
        await stage.client.create(PodGang, gang(), "default")
        await stage.sees(lambda: told(stage), ("Pending", "False", "WaitingForPods"))
        for name in ("p0", "p1"):
            await stage.client.create(Pod, pod(name), "default")
        await stage.sees(lambda: told(stage), ("Pending", "False", "WaitingForScheduler"))
        await stage.cordon(0)
        await stage.sees(lambda: told(stage), ("Running", "True", "PodsScheduled"))
        assert (await stage.gang("theirs")).status.placement_score == 1.0
        await stage.cordon(2)
        await stage.delete(Pod, "p1")
        await stage.sees(lambda: told(stage), ("Pending", "False", "WaitingForPods"))
        conditions = {c.type: c.status for c in (await stage.gang("theirs")).status.conditions}
        assert conditions["Unhealthy"] == "True"
        assert [left.name for left in await stage.pods()] == ["p0"]

    async def told(stage: Stage) -> tuple[str, str, str]:
        status = (await stage.gang("theirs")).status
        scheduled = next((c for c in status.conditions if c.type == "Scheduled"), None)
        return status.phase, scheduled.status if scheduled else "", scheduled.reason if scheduled else ""

    play(scenario, nodes=2)

"""What the wide search has found, one by one: the moment at which a crash left something behind."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.kai import PodGroup
from spinney.api.podgang import PodGang
from spinney.sim.loop import run_virtual
from tests.faults.processes import World, installation
from tests.faults.scenarios import NODES, Step, change, create, serve
from tests.faults.wire import Accident


async def left(world: World) -> set[str]:
    """Which set replicas something is left of."""
    found = set()
    for kind in (PodGang, PodClique, PodCliqueScalingGroup, PodGroup, Service):
        found |= {
            each.metadata.labels.get(labels.SET_REPLICA_INDEX, "")
            for each in (await world.held.client.list(kind, "default")).items
            if each.name != "kubernetes"
        }
    return found


def crashed(step: Step, writes: int, *, replicas: int) -> set[str]:
    """Of what something is left when the operator ends right after so many writes of a step."""

    async def main() -> set[str]:
        async with installation(NODES) as world:
            await create(PodCliqueSet, serve(labels.KAI_SCHEDULER, replicas=replicas))(world)
            await world.settled()
            world.road.counting = True
            Accident(writes, done=True).arrange(world.road)
            await step(world)
            await world.settled()
            assert world.road.struck.startswith("grove: "), world.road.writes
            return await left(world)

    return run_virtual(main())


def test_a_removed_replica_was_left_when_its_pods_had_gone() -> None:
    """The operator ends after the four pods of a replica: the next one takes the gang, cliques and service as well."""
    assert crashed(change(PodCliqueSet, "serve", {"spec": {"replicas": 1}}), 4, replicas=2) == {"0"}

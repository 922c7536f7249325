"""What happens to gangs that run: scaled, repaired, updated, deleted."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.grove import PodCliqueScalingGroup, PodCliqueSet
from spinney.api.pod import Pod
from tests.schedulers.place import Place
from tests.schedulers.stories.starting import NO_ROOM
from tests.schedulers.story import story


@story("a set is scaled up and down: one gang comes, one goes")
async def scaled_sets(place: Place) -> None:
    """The first replica's pods stay where they are."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("serve", 2))
    await place.runs("serve-0", 2)
    kept = {pod.uid for pod in place.living("serve-0")}
    await place.client.patch(PodCliqueSet, (place.namespace, "serve"), {"spec": {"replicas": 2}})
    await place.runs("serve-1", 2)
    await place.client.patch(PodCliqueSet, (place.namespace, "serve"), {"spec": {"replicas": 1}})
    await place.until("the second gang is gone", lambda: not place.pods("serve-1") and place.gang("serve-1") is None)
    assert {pod.uid for pod in place.living("serve-0")} == kept


@story("a scaling group is scaled up and down; a replica without room waits whole")
async def scaled_groups(place: Place) -> None:
    """Replicas beyond the minimum are gangs of their own; the fourth finds room for none of its pods."""
    await place.nodes(2, gpus=3)
    pcs = place.set("serve")
    place.role(pcs, "leader", 1)
    place.role(pcs, "workers", 1)
    pcs.group("model", ["leader", "workers"], replicas=1, min_available=1)
    await place.apply(pcs)
    await place.until("the group runs", lambda: len(place.running()) == 2)
    group = (place.namespace, "serve-0-model")
    for replicas in (2, 3):
        await place.client.patch(PodCliqueScalingGroup, group, {"spec": {"replicas": replicas}})
        await place.until("one replica more runs", lambda pods=2 * replicas: len(place.running()) == pods)
    await place.client.patch(PodCliqueScalingGroup, group, {"spec": {"replicas": 4}})
    await place.until("one more waits and says why", lambda: len(_waiting_gangs(place)) == 1)
    assert place.ever_bound(_waiting_gangs(place)[0]) == []
    await place.client.patch(PodCliqueScalingGroup, group, {"spec": {"replicas": 1}})
    await place.until("all but the first are gone", lambda: len(place.pods()) == 2 and len(place.running()) == 2)


@story("a pod that is lost is replaced")
async def replaced(place: Place) -> None:
    """The replacement joins the gang that runs."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("train", 4))
    await place.runs("train-0", 4)
    lost = place.living()[0]
    await place.client.delete(Pod, lost.key, grace_seconds=0)
    await place.until("it is gone", lambda: lost.uid not in {pod.uid for pod in place.pods()})
    await place.runs("train-0", 4)


@story("pods beyond the minimum that are lost are replaced, and pods of the minimum with them")
async def replaced_surplus(place: Place) -> None:
    """One pod of each kind is lost at once."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("serve", 4, 2))
    await place.runs("serve-0", 4)
    by_index = sorted(place.living(), key=lambda pod: int(pod.metadata.labels[labels.POD_INDEX]))
    lost = [by_index[0], by_index[-1]]
    for pod in lost:
        await place.client.delete(Pod, pod.key, grace_seconds=0)
    gone = {pod.uid for pod in lost}
    await place.until("both are gone", lambda: not gone & {pod.uid for pod in place.pods()})
    await place.runs("serve-0", 4)


@story("a rolling update replaces every pod")
async def rolling_update(place: Place) -> None:
    """On a cluster that the gang fills, so that a pod finds room only where one has left."""
    await place.nodes(2, gpus=2)
    await place.apply(place.workers("serve", 4))
    await place.runs("serve-0", 4)
    await replace_all_pods(place, 4)


@story("a rolling update keeps its nodes although others are free")
async def update_keeps_nodes(place: Place) -> None:
    """New pods take the places of those that they replace."""
    await place.nodes(1, gpus=4)
    await place.apply(place.workers("serve", 4))
    await place.runs("serve-0", 4)
    await place.nodes(2, gpus=4)
    before = {pod.spec.node_name for pod in place.living()}
    await replace_all_pods(place, 4)
    assert {pod.spec.node_name for pod in place.living()} == before


@story("deleting a set leaves nothing behind")
async def deleted(place: Place) -> None:
    """No gang, no pod, no object of the scheduler, running or waiting."""
    await place.nodes(1, gpus=2)
    await place.apply(place.workers("runs", 2))
    await place.runs("runs-0", 2)
    await place.apply(place.workers("waits", 3))
    await place.until("it waits", lambda: bool(place.reason("waits-0")))
    await place.delete("runs")
    await place.delete("waits")
    await place.until("nothing is left", lambda: not place.pods())
    await place.stage.nothing_left(place.namespace)


def _waiting_gangs(place: Place) -> list[str]:
    """The gangs whose pods all exist and that say why they wait for room."""
    gangs = {pod.metadata.labels[labels.PODGANG] for pod in place.living() if not pod.spec.node_name}
    return [name for name in gangs if place.waits_for(name, *NO_ROOM)]


async def replace_all_pods(place: Place, count: int) -> None:
    """Give the set a new image, and wait until just pods with it run."""
    old = {pod.uid for pod in place.pods()}
    pcs = await place.client.get(PodCliqueSet.resource, (place.namespace, "serve"))
    template = pcs["spec"]["template"]
    template["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "busybox:2"
    await place.client.patch(PodCliqueSet, (place.namespace, "serve"), {"spec": {"template": template}})
    await place.until(
        "all pods are new and run",
        lambda: len(place.running()) == count and not old & {pod.uid for pod in place.pods()},
    )

"""Topology: pods together in one domain where required, and where possible when preferred."""

from __future__ import annotations

from spinney.api import labels
from spinney.api.core import Node
from tests import make
from tests.schedulers.place import Place
from tests.schedulers.story import story
from tests.schedulers.topology import BLOCK, HOST, RACK, constraint


async def racks(place: Place) -> None:
    """Two blocks of two racks of two nodes with two GPUs each."""
    for block in "ab":
        for rack in "12":
            await place.nodes(2, gpus=2, rack=f"rack-{block}{rack}", block=f"block-{block}")


async def domains(place: Place, key: str, role: str = "") -> set[str]:
    """The domains of a level that the bound pods, or those of one role, are in."""
    named = {node.name: node.metadata.labels for node in (await place.client.list(Node)).items}
    pods = [pod for pod in place.living() if role in pod.name]
    return {named[pod.spec.node_name].get(key, "") for pod in pods if pod.spec.node_name}


def packed(place: Place, name: str, pods: int, least: int | None = None, **levels: str) -> make.SetBuilder:
    """A set of one role that is packed as a whole."""
    pcs = place.workers(name, pods, least)
    pcs.object["spec"]["template"]["topologyConstraint"] = constraint(**levels)
    return pcs


@story("required topology: the gang lies in one rack")
async def required_rack(place: Place) -> None:
    """Four pods fill a rack."""
    await racks(place)
    await place.apply(packed(place, "train", 4, required="rack"))
    await place.runs("train-0", 4)
    assert len(await domains(place, RACK)) == 1


@story("required topology: the gang lies in one block")
async def required_block(place: Place) -> None:
    """Six pods are more than a rack holds."""
    await racks(place)
    await place.apply(packed(place, "train", 6, required="block"))
    await place.runs("train-0", 6)
    assert len(await domains(place, BLOCK)) == 1


@story("required topology: the gang lies on one host")
async def required_host(place: Place) -> None:
    """Two pods fill a node."""
    await racks(place)
    await place.apply(packed(place, "train", 2, required="host"))
    await place.runs("train-0", 2)
    assert len(await domains(place, HOST)) == 1


@story("required topology: beyond the largest domain nothing is bound, and the gang says why")
async def beyond_the_largest_rack(place: Place) -> None:
    """Five pods, racks of four GPUs."""
    await racks(place)
    await place.apply(packed(place, "train", 5, required="rack"))
    await place.until("the PodGang says why", lambda: place.waits_for("train-0", *REFUSED))
    assert place.ever_bound() == []


@story("required topology with pods beyond the minimum")
async def required_with_surplus(place: Place) -> None:
    """Six pods, two needed, in racks of four GPUs: those that run are in one rack."""
    await racks(place)
    await place.apply(packed(place, "train", 6, 2, required="rack"))
    await place.until("the gang runs", lambda: len(place.running()) >= 2 and place.holds("train-0", "Scheduled"))
    await place.until("the rack is full", lambda: len(place.running()) == 4)
    assert len(await domains(place, RACK)) == 1


@story("required topology of one role")
async def required_role(place: Place) -> None:
    """The workers share a rack, whatever the router does."""
    await racks(place)
    pcs = place.set("serve")
    place.role(pcs, "router", 1)
    place.role(pcs, "workers", 4)["topologyConstraint"] = constraint(required="rack")
    await place.apply(pcs)
    await place.runs("serve-0", 5)
    assert len(await domains(place, RACK, "workers")) == 1


@story("required topology of one role beyond the largest domain holds back the whole gang")
async def role_beyond_the_largest_rack(place: Place) -> None:
    """Five workers in racks of four GPUs: their router is not bound either."""
    await racks(place)
    pcs = place.set("serve")
    place.role(pcs, "router", 1)
    place.role(pcs, "workers", 5)["topologyConstraint"] = constraint(required="rack")
    await place.apply(pcs)
    await place.until("the PodGang says why", lambda: place.waits_for("serve-0", *REFUSED))
    assert place.ever_bound() == []


@story("required topology of two levels: a role in one rack, the gang in its block")
async def required_two_levels(place: Place) -> None:
    """Five pods are more than a rack holds; Volcano finds no place for workers that fill one beside routers."""
    await racks(place)
    pcs = place.set("serve")
    pcs.object["spec"]["template"]["topologyConstraint"] = constraint(required="block")
    place.role(pcs, "router", 3)
    place.role(pcs, "workers", 2)["topologyConstraint"] = constraint(required="rack")
    await place.apply(pcs)
    await place.runs("serve-0", 5)
    assert len(await domains(place, RACK, "workers")) == 1
    assert len(await domains(place, BLOCK)) == 1


@story("preferred topology: in one rack where one has room")
async def preferred_rack(place: Place) -> None:
    """Four pods fill a rack, and a gang of six runs across racks."""
    await racks(place)
    await place.apply(packed(place, "train", 4, preferred="rack"))
    await place.runs("train-0", 4)
    assert len(await domains(place, RACK)) == 1


@story("preferred topology: across racks where none has room")
async def preferred_beyond(place: Place) -> None:
    """A preference holds nothing back."""
    await racks(place)
    await place.apply(packed(place, "train", 6, preferred="rack"))
    await place.runs("train-0", 6)


@story("what a scheduler lacks, a set may go without: Downgraded says what was lost")
async def downgraded(place: Place) -> None:
    """Topology for a group of roles, which only ours can express."""
    await racks(place)
    pcs = place.set("serve")
    pcs.annotate(labels.ALLOW_DOWNGRADE, "true")
    place.role(pcs, "leader", 1)
    place.role(pcs, "workers", 2)
    pcs.group("model", ["leader", "workers"])
    pcs.object["spec"]["template"]["podCliqueScalingGroups"][0]["topologyConstraint"] = constraint(required="rack")
    await place.apply(pcs)
    await place.runs("serve-0", 3)
    if place.entry.backend == "kai":
        assert not place.holds("serve-0", "Downgraded")
        assert len(await domains(place, RACK)) == 1
        return
    await place.until("Downgraded is told", lambda: place.holds("serve-0", "Downgraded"))
    assert "required topology for a group of roles" in place.told("serve-0", "Downgraded")


# Schedulers name the level, the domain, or just the lack of nodes.
REFUSED = ("rack", "topology", "hypernode", "insufficient", "no nodes", "not enough", "unschedulable")

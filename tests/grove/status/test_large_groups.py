"""The statuses of a scaling group of many replicas cost as much as it has replicas, not their square."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from spinney.api.core import Node
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet, ReplicaUpdate, SetUpdateProgress
from spinney.api.meta import Json, Object, convert
from spinney.api.podgang import PodGang
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.model.cliques import new_clique
from spinney.grove.model.layout import lay_out
from spinney.grove.model.topology import NO_LEVELS
from spinney.grove.model.view import View
from spinney.grove.status.plan import plan_status
from spinney.sim.loop import START
from tests import make
from tests.calls import calls

T = TypeVar("T", bound=Object)


class Nodes(list[Node]):
    """Nodes that count how often they are gone through."""

    passes = 0

    def __iter__(self):  # type: ignore[no-untyped-def]  # as list has it
        self.passes += 1
        return super().__iter__()


def stored(kind: type[T], body: Json) -> T:
    """An object with a UID, as the API server returns it."""
    return convert(kind, {**body, "metadata": {**body["metadata"], "uid": f"uid-{body['metadata']['name']}"}})


def updated(replicas: int) -> View:
    """A replica whose cliques are stored, while its set is updated."""
    pcs = convert(PodCliqueSet, with_defaults(make.pcs("s").clique("a").group("g", ["a"], replicas).build()))
    progress = SetUpdateProgress(currently_updating=(ReplicaUpdate(replica_index=0),))
    pcs = replace(pcs, status=replace(pcs.status, update_progress=progress))
    view = View(lay_out(pcs, 0, {}), NO_LEVELS)
    group = stored(PodCliqueScalingGroup, {"metadata": {"name": "s-0-g", "namespace": "default"}})
    view.put(group)
    for clique in view.layout.cliques:
        view.put(stored(PodClique, new_clique(view.layout, clique, group).body))
    return view


def test_an_update_looked_at_all_replicas_of_a_group_for_each_of_them() -> None:
    """Whether the group is being updated is found out once."""
    few, many = (calls(partial(plan_status, updated(replicas), "", (), START)) for replicas in (100, 200))
    assert many < 2.5 * few


def test_all_nodes_were_gone_through_for_each_gang_that_requires_a_topology() -> None:
    """One table of the nodes serves all gangs."""
    view = updated(5)
    for gang in view.layout.gangs:
        view.put(make.gang(gang.name).packed(required="rack").typed(PodGang))
    nodes = Nodes()
    plan_status(view, "", nodes, START)
    assert nodes.passes == 1

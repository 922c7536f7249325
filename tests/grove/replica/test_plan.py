"""The plan of a set replica is data: what it creates, in which order, and what it leaves alone."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest

from spinney.api import reasons
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Condition, convert
from spinney.api.podgang import PodGang
from spinney.backends.registry import Registry
from spinney.backends.served import Served
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.model.changes import Change, Create, Delete, RemoveGates
from spinney.grove.model.layout import lay_out
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.topology import NO_LEVELS
from spinney.grove.model.view import View
from spinney.grove.replica.facts import Facts
from spinney.grove.replica.plan import plan_replica
from spinney.kube.writer import NameTaken
from spinney.sim.loop import START
from tests import make


def replica(set_: make.SetBuilder) -> tuple[View, Facts]:
    """Replica 0 of a set, of which nothing is stored yet."""
    pcs = convert(PodCliqueSet, with_defaults(set_.build()))
    ordinals = count()
    names = PodNames(lambda clique: f"{clique}-{next(ordinals)}")
    facts = Facts(Registry.load().choose(pcs, ""), Served(), "image", frozenset(), names, START)
    return View(lay_out(pcs, 0, {}), NO_LEVELS), facts


def stored(change: Create, uid: str) -> Any:
    """What the API server would return for a creation."""
    return convert(change.kind, {**change.body, "metadata": {**change.body["metadata"], "uid": uid, "generation": 1}})


def applied(view: View, facts: Facts) -> list[Change]:
    """All changes of a plan, with what they create put into the view."""
    changes: list[Change] = []
    for step in plan_replica(view, facts):
        for change in step.changes:
            if isinstance(change, Create):
                view.put(stored(change, f"uid-{len(changes)}"))
            changes.append(change)
    return changes


def test_owners_come_before_what_they_own_and_gangs_before_pods() -> None:
    """A new replica is created from the top: scaling groups, cliques, gangs, then pods with the gang's names."""
    view, facts = replica(make.pcs("s").clique("a", 2).clique("b").group("g", ["b"]))
    changes = applied(view, facts)
    assert [(c.kind.resource.kind, c.body["metadata"]["name"]) for c in changes if isinstance(c, Create)] == [
        ("PodCliqueScalingGroup", "s-0-g"),
        ("PodClique", "s-0-a"),
        ("PodClique", "s-0-g-0-b"),
        ("PodGang", "s-0"),
        ("Pod", "s-0-a-0"),
        ("Pod", "s-0-a-1"),
        ("Pod", "s-0-g-0-b-2"),
    ]
    group = view.groups["s-0-g"]
    assert view.cliques["s-0-g-0-b"].metadata.owner_references[0].uid == group.uid


def test_the_service_follows_when_all_pods_exist() -> None:
    """Pods end a plan; the next one has the Service, which may wait for the gates of other replicas."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    steps = [step for step in plan_replica(view, facts) if step.changes]
    assert [type(change) for step in steps for change in step.changes] == [Create]
    assert steps[0].postponable is not None
    assert not steps[0].postponable.ungated


def test_gates_come_off_when_the_backend_is_ready() -> None:
    """All pods of the gang lose their gate in one step."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    ready = Condition(type=reasons.BACKEND_READY, status="True", reason="", message="", observed_generation=1)
    gang = view.gangs["s-0"]
    view.put(msgspec.structs.replace(gang, status=msgspec.structs.replace(gang.status, conditions=(ready,))))
    released = [change for change in applied(view, facts) if isinstance(change, RemoveGates)]
    assert [(change.pod.name, change.gates) for change in released] == [
        ("s-0-a-0", (facts.choice.backend.gate,)),
        ("s-0-a-1", (facts.choice.backend.gate,)),
    ]


def test_a_clique_that_is_scaled_in_loses_its_highest_ordinal() -> None:
    """Among equal pods the last goes first."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    clique = view.cliques["s-0-a"]
    view.put(msgspec.structs.replace(clique, spec=msgspec.structs.replace(clique.spec, replicas=1)))
    deleted = [change.stored.name for change in applied(view, facts) if isinstance(change, Delete)]
    assert deleted == ["s-0-a-1"]


def test_no_gate_comes_off_where_the_services_name_is_taken() -> None:
    """The plan fails before it, with the name."""
    view, facts = replica(make.pcs("s").clique("a"))
    applied(view, facts)
    view.service_name_taken = True
    with pytest.raises(NameTaken, match="Service default/s-0"):
        applied(view, facts)


def test_what_is_as_wanted_is_left_alone() -> None:
    """A plan of a finished replica asks for nothing but its Service."""
    view, facts = replica(make.pcs("s").clique("a", 2).clique("b").group("g", ["b"]))
    applied(view, facts)
    kinds = {change.kind for change in applied(view, facts) if isinstance(change, Create)}
    assert kinds.isdisjoint({Pod, PodClique, PodGang})

"""The plan of a set replica is data: what it creates, in which order, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest

from spinney.api import labels, reasons
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueSet
from spinney.api.meta import Condition, convert
from spinney.api.podgang import PodGang
from spinney.backends.registry import Registry
from spinney.backends.served import Served
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.model.changes import Change, Confirm, Create, Delete, Patch, RemoveGates
from spinney.grove.model.layout import lay_out
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.topology import NO_LEVELS
from spinney.grove.model.view import View
from spinney.grove.replica.facts import Facts
from spinney.grove.replica.plan import plan_replica
from spinney.kube.writer import NameTaken
from spinney.sim.loop import START
from tests import make
from tests.calls import calls


def replica(set_: make.SetBuilder) -> tuple[View, Facts]:
    """Replica 0 of a set, of which nothing is stored yet."""
    pcs = convert(PodCliqueSet, with_defaults(set_.build()))
    ordinals = count()
    names = PodNames(lambda clique: f"{clique}-{next(ordinals)}")
    facts = Facts(Registry.load().choose(pcs, ""), Served(), "image", frozenset(), names, START)
    return View(lay_out(pcs, 0, {}), NO_LEVELS), facts


def stored(change: Create, uid: str) -> Any:
    """What the API server would return for a creation."""
    server_made = {"uid": uid, "generation": 1, "resourceVersion": "1"}
    return convert(change.kind, {**change.body, "metadata": {**change.body["metadata"], **server_made}})


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


def large(replicas: int) -> tuple[View, Facts]:
    """A replica with a scaling group of so many replicas, of which all but the Service is stored."""
    view, facts = replica(make.pcs("s").clique("a").group("g", ["a"], replicas))
    applied(view, facts)
    return view, facts


def being_deleted(replicas: int) -> tuple[View, Facts]:
    """The same, with all cliques still terminating."""
    view, facts = large(replicas)
    view.terminating += view.cliques.values()
    view.cliques.clear()
    return view, facts


@pytest.mark.parametrize("state", [large, being_deleted])
def test_a_plan_compared_each_gang_of_a_group_with_each_pod(state: Callable[[int], tuple[View, Facts]]) -> None:
    """Twice as many replicas of a scaling group take twice the work, not four times."""
    few, many = (calls(partial(list, plan_replica(*state(replicas)))) for replicas in (100, 200))
    assert many < 2.5 * few


def another_operator() -> PodNames:
    """The names of an operator that has chosen none of those that are stored."""
    return PodNames(lambda clique: f"{clique}-another")


def referenced(view: View) -> list[str]:
    """The pods that the replica's gang references."""
    return [pod.name for group in view.gangs["s-0"].spec.podgroups for pod in group.pod_references]


def lost(view: View, name: str) -> Pod:
    """Take a pod out of the view, as if its deletion had been seen or its creation had not."""
    (owned,) = view.pods.values()
    pod = next(pod for pod in owned if pod.name == name)
    owned.remove(pod)
    return pod


def test_another_operator_chose_other_names_for_pods_that_were_still_to_come() -> None:
    """It creates the pods that the gang references, and finds them there if the first operator did so as well."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    lost(view, "s-0-a-1")
    changes = applied(view, replace(facts, pod_names=another_operator()))
    assert [type(change) for change in changes] == [Confirm, Confirm, Create]
    assert changes[2].body["metadata"]["name"] == "s-0-a-1"  # type: ignore[union-attr]  # a Create, as asserted


def test_a_pod_that_is_gone_is_replaced_in_its_place() -> None:
    """A name is not used twice; its successor has the same place in the gang, and so the same ordinal."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    applied(view, facts)
    lost(view, "s-0-a-0")
    changes = applied(view, facts)
    (patch,) = (change for change in changes if isinstance(change, Patch))
    assert patch.guarded
    names = [pod["name"] for pod in patch.patch["spec"]["podgroups"][0]["podReferences"]]
    assert names == ["s-0-a-2", "s-0-a-1"]


def test_an_operator_that_saw_pods_late_put_old_names_back_into_the_gang() -> None:
    """The gang says which pods are to be; one that it no longer names is deleted."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    gang = view.gangs["s-0"]
    group = gang.spec.podgroups[0]
    newer = msgspec.structs.replace(group.pod_references[0], name="s-0-a-newer")
    spec = msgspec.structs.replace(
        gang.spec, podgroups=(msgspec.structs.replace(group, pod_references=(newer, group.pod_references[1])),)
    )
    view.put(msgspec.structs.replace(gang, spec=spec))
    late = replace(facts, pod_names=another_operator())
    created = [change.body["metadata"]["name"] for change in applied(view, late) if isinstance(change, Create)]
    assert created == ["s-0-a-newer"]
    assert referenced(view) == ["s-0-a-newer", "s-0-a-1"]
    assert [change.stored.name for change in applied(view, late) if isinstance(change, Delete)] == ["s-0-a-0"]


def test_two_pods_of_one_ordinal_stayed() -> None:
    """The one without a node goes, although no more pods exist than the clique is to have."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    first, twin = lost(view, "s-0-a-0"), lost(view, "s-0-a-1")
    view.put(msgspec.structs.replace(first, spec=msgspec.structs.replace(first.spec, node_name="node-1")))
    own_labels = {**twin.metadata.labels, labels.POD_INDEX: "0"}
    view.put(msgspec.structs.replace(twin, metadata=msgspec.structs.replace(twin.metadata, labels=own_labels)))
    assert [change.stored.name for change in applied(view, facts) if isinstance(change, Delete)] == ["s-0-a-1"]


def test_what_a_deletion_follows_from_is_read_again() -> None:
    """Before a clique is scaled in: an operator whose caches are late may not know that it was scaled out again."""
    view, facts = replica(make.pcs("s").clique("a", 2))
    applied(view, facts)
    clique = view.cliques["s-0-a"]
    view.put(msgspec.structs.replace(clique, spec=msgspec.structs.replace(clique.spec, replicas=1)))
    changes = [change for change in applied(view, facts) if isinstance(change, Confirm | Delete)]
    assert [(type(change), change.stored.name) for change in changes] == [(Confirm, "s-0-a"), (Delete, "s-0-a-1")]

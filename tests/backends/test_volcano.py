"""Volcano: one PodGroup per gang, with a subgroup policy per role."""

from __future__ import annotations

import json

import pytest

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.api.podgang import PodGang
from spinney.api.volcano import PodGroup
from spinney.backends.interface import Cluster
from spinney.backends.served import Served
from spinney.backends.volcano import BACKEND
from spinney.kube.difference import without_none
from tests import make

SERVED = Served(frozenset({PodGroup.resource}))


def written(gang: make.GangBuilder) -> Json:
    """The spec of its PodGroup."""
    (wanted,) = BACKEND.translate(gang.typed(PodGang), Cluster(SERVED)).objects
    spec: Json = without_none(wanted.body["spec"])
    return spec


def test_the_queue_is_written_only_where_the_user_named_one() -> None:
    """Volcano's webhook may put the namespace's queue where none is given; that is not fought over."""
    assert "queue" not in written(make.gang("a-0").group("w", 1))
    gang = make.gang("a-0").annotate("scheduling.grove.io/volcano-queue", "team").group("w", 1)
    assert written(gang)["queue"] == "team"
    pcs = make.pcs("a").annotate("scheduling.grove.io/volcano-queue", "team").clique("w").build()
    assert BACKEND.gang_annotations(convert(PodCliqueSet, pcs), {}) == {"scheduling.grove.io/volcano-queue": "team"}


def test_a_pod_names_its_group_twice_and_its_role() -> None:
    """The scheduler reads the old annotation; integrations write the new one."""
    pod = make.pod("p").label("grove.io/podclique", "a-0-w").build()
    prepared = BACKEND.prepare(pod, make.gang("a-0").group("w", 1).typed(PodGang), SERVED)
    assert prepared["spec"]["schedulerName"] == "volcano"
    assert prepared["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "a-0",
        "scheduling.volcano.sh/group-name": "a-0",
        "volcano.sh/task-spec": "a-0-w",
    }


BINDING = convert(
    ClusterTopologyBinding,
    {"metadata": {"name": "t"}, "spec": {"levels": [{"domain": "block", "key": "b"}, {"domain": "rack", "key": "r"}]}},
)


RACKS: Json = {"metadata": {"name": "rack-0"}, "spec": {"tierName": "rack", "tier": 1}}


def configuration(*plugins: str) -> Json:
    """Volcano's ConfigMap with a tier of these plugins."""
    tiers = [{"plugins": [{"name": name} for name in plugins]}]
    data = {"volcano-scheduler.conf": json.dumps({"actions": "allocate", "tiers": tiers})}
    return {"metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}, "data": data}


@pytest.mark.parametrize(
    ("nodes", "config", "missing"),
    [
        ([RACKS], configuration("gang", "network-topology-aware"), ""),
        ([RACKS], None, ""),
        ([], None, "no HyperNode has the tier name rack (found: none)"),
        ([{"metadata": {"name": "b"}, "spec": {"tierName": "block", "tier": 2}}], None, "(found: block)"),
        ([RACKS], configuration("gang", "binpack"), "does not switch on the plugin network-topology-aware"),
    ],
    ids=["set up", "configuration unreadable", "no HyperNodes", "none of that tier", "plugin off"],
)
@pytest.mark.parametrize("level", ["gang", "role"])
def test_topology_that_volcano_would_ignore_is_lost_and_told(
    nodes: list[Json], config: Json | None, missing: str, level: str
) -> None:
    """A required level was ignored without a word: the gang went across racks and seemed to be placed well."""
    gang = make.gang("a-0").group("x", 1, required="rack" if level == "role" else "").group("y", 1)
    gang = gang.packed(required="rack") if level == "gang" else gang
    settings = {BACKEND.settings[0]: config} if config else {}
    losses = BACKEND.translate(gang.typed(PodGang), Cluster(SERVED, nodes, settings=settings)).losses
    assert len(losses) == (1 if missing else 0)
    assert all(missing in loss.missing and not loss.bearable for loss in losses)
    assert bool(BACKEND.setup_problems(Cluster(SERVED, nodes, settings=settings))) == (
        missing != "" and "block" not in missing
    )


def test_a_preference_that_volcano_would_ignore_is_told_and_holds_nobody() -> None:
    """It is lost, and the gang is placed all the same."""
    gang = make.gang("a-0").packed(preferred="rack").group("x", 1).typed(PodGang)
    (loss,) = BACKEND.translate(gang, Cluster(SERVED, [])).losses
    assert loss.bearable


@pytest.mark.parametrize(
    ("queues", "beginning"),
    [
        ([{"metadata": {"name": "team"}, "status": {"state": "Open"}}], ""),
        (None, ""),
        ([{"metadata": {"name": "default"}}], "there is no Queue 'team' (there are: default)"),
        ([{"metadata": {"name": "team"}, "status": {"state": "Closed"}}], "Queue 'team' is Closed"),
    ],
)
def test_a_queue_that_takes_no_gangs_is_told(queues: list[Json] | None, beginning: str) -> None:
    """Volcano says so in its log only."""
    gang = make.gang("a-0").annotate("scheduling.grove.io/volcano-queue", "team").group("x", 1).typed(PodGang)
    message = BACKEND.missing_queue(gang, Cluster(SERVED, queues=queues))
    assert message.startswith(beginning)
    assert bool(message) == bool(beginning)


@pytest.mark.parametrize(
    ("tiers", "drift"),
    [
        ({"b": 2, "r": 1}, ""),
        ({"b": 2}, "no HyperNode has the tier name r (found: b)"),
        ({"b": 1, "r": 2}, "the HyperNode tiers of b, r are [1, 2]; broader levels must have higher tiers"),
        ({}, "no HyperNode has the tier name b, r (found: none)"),
    ],
)
def test_hypernodes_must_cover_every_level(tiers: dict[str, int], drift: str) -> None:
    """Tier names are the node label keys, and narrower levels have lower tiers."""
    nodes = [{"metadata": {"name": name}, "spec": {"tierName": name, "tier": tier}} for name, tier in tiers.items()]
    assert BACKEND.topology(BINDING) is None
    assert BACKEND.topology_drift(BINDING, "t", nodes) == drift

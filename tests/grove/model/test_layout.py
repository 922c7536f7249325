"""Base and scaled gangs: which cliques a replica has, and which are placed together."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spinney.api.grove import ClusterTopologyBinding, PodCliqueSet
from spinney.api.meta import Json, convert
from spinney.backends.registry import Registry
from spinney.grove.admission.defaulting import with_defaults
from spinney.grove.model import gangs, startup_order, topology
from spinney.grove.model.layout import Gang, Layout, lay_out
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.view import View
from spinney.kube.difference import without_none
from tests import data, make

KEYS = {"zone": "kubernetes.io/zone", "block": "kubernetes.io/block", "rack": "kubernetes.io/rack"}
BINDING = convert(
    ClusterTopologyBinding,
    {
        "metadata": {"name": "grove-topology"},
        "spec": {
            "levels": [{"domain": d, "key": k} for d, k in {**KEYS, "host": "kubernetes.io/hostname"}.items()],
        },
    },
)
LEVELS = topology.levels_of(BINDING)


def sample(name: str) -> PodCliqueSet:
    """A PodCliqueSet of the samples, with its defaults."""
    for document in yaml.safe_load_all(Path(data.path(f"samples/grove/{name}.yaml")).read_text()):
        if document and document["kind"] == "PodCliqueSet":
            return convert(PodCliqueSet, with_defaults(document))
    raise AssertionError(f"{name} holds no PodCliqueSet")


def body(layout: Layout, gang: Gang, levels: topology.Levels) -> Json:
    """A gang as it should be stored, before it or its pods exist."""
    choice = Registry.load().choose(layout.pcs, "")
    wanted = gangs.wanted_gang(View(layout, levels), gang, choice, PodNames(lambda clique: f"{clique}-new"), set())
    return without_none(wanted.body)


def shape(layout: Layout) -> dict[str, tuple[int, int]]:
    """Gang → pod groups and the sum of their minimums."""
    return {gang.name: (len(gang.cliques), sum(c.min_available for c in gang.cliques)) for gang in layout.gangs}


EXPECTED = [
    ("e2e-yaml/workload1", {"workload1-0": (5, 10)}),
    ("e2e-yaml/workload2", {"workload2-0": (3, 3), "workload2-0-sg-x-0": (2, 2)}),
    ("e2e-yaml/workload-ondelete", {"workload-ondelete-0": (5, 9)}),
    ("e2e-yaml/tas-hierarchy", {"tas-hierarchy-0": (4, 8)}),
    (
        "e2e-yaml/tas-large-scale",
        {"tas-large-scale-0": (3, 6), **{f"tas-large-scale-0-workers-{k}": (1, 2) for k in range(7)}},
    ),
    (
        "e2e-yaml/tas-pcs-multi-pcsg-multi-replica",
        {
            "tas-pcs-multi-pcsg-0": (5, 6),
            "tas-pcs-multi-pcsg-0-decoder-0": (2, 2),
            "tas-pcs-multi-pcsg-0-prefill-0": (2, 2),
        },
    ),
    (
        "e2e-yaml/tas-pcsg-scale",
        {
            "tas-pcsg-scale-0": (1, 2),
            "tas-pcsg-scale-0-inference-group-0": (1, 2),
            "tas-pcsg-scale-0-inference-group-1": (1, 2),
        },
    ),
    ("e2e-yaml/auto-mnnvl/mnnvl-comprehensive-mix", {"mnnvl-mix-0": (12, 12)}),
    (
        "samples/user-guide/01_core-concepts/multi-node-disaggregated",
        {"multinode-disaggregated-0": (4, 8), "multinode-disaggregated-0-prefill-0": (2, 5)},
    ),
    (
        "samples/user-guide/02_pod-and-resource-naming-conventions/multinode-disaggregated-with-frontend",
        {"mn-disagg-0": (5, 9), "mn-disagg-0-prefill-0": (2, 4)},
    ),
]


@pytest.mark.parametrize(("name", "expected"), EXPECTED, ids=[name for name, _ in EXPECTED])
def test_samples_have_the_gangs_they_should(name: str, expected: dict[str, tuple[int, int]]) -> None:
    """Upstream's manifests give the gangs, groups and minimums that are documented for them."""
    assert shape(lay_out(sample(name), 0, {})) == expected


def parsed(built: dict[str, object]) -> PodCliqueSet:
    """A typed set with its defaults."""
    return convert(PodCliqueSet, with_defaults(built))


def test_scaling_a_group_adds_gangs_and_leaves_the_base_alone() -> None:
    """Each replica beyond minAvailable is a gang of its own, counted from zero."""
    pcs = parsed(make.pcs("s").clique("a").clique("b").group("g", ["b"], 1, 1).build())
    before, after = lay_out(pcs, 1, {}), lay_out(pcs, 1, {"s-1-g": 3})
    assert after.base_gang == before.base_gang
    assert [gang.name for gang in after.gangs] == ["s-1", "s-1-g-0", "s-1-g-1"]
    assert [clique.name for clique in after.cliques] == ["s-1-a", "s-1-g-0-b", "s-1-g-1-b", "s-1-g-2-b"]
    assert after.cliques[-1].base_gang == "s-1"


def test_a_group_below_its_minimum_asks_for_no_missing_members() -> None:
    """A group scaled below minAvailable leaves only the replicas it has in the base gang."""
    pcs = parsed(make.pcs("s").clique("b").group("g", ["b"], 2, 2).build())
    assert shape(lay_out(pcs, 0, {"s-0-g": 1})) == {"s-0": (1, 1)}


def test_a_gang_carries_topology_at_every_level() -> None:
    """TAS8: domains become label keys on the gang, on scaling-group replicas and on pod groups."""
    layout = lay_out(sample("e2e-yaml/tas-hierarchy"), 0, {})
    spec = body(layout, layout.base_gang, LEVELS)["spec"]
    assert spec["topologyConstraint"] == {"packConstraint": {"required": "kubernetes.io/block"}}
    assert [config["name"] for config in spec["topologyConstraintGroupConfigs"]] == [
        "tas-hierarchy-0-inference-group-0",
        "tas-hierarchy-0-inference-group-1",
    ]
    assert spec["topologyConstraintGroupConfigs"][0]["podGroupNames"] == [
        "tas-hierarchy-0-inference-group-0-prefill",
        "tas-hierarchy-0-inference-group-0-decode",
    ]
    assert spec["podgroups"][0]["topologyConstraint"] == {"packConstraint": {"required": "kubernetes.io/hostname"}}


def test_preferred_topology_reaches_base_and_scaled_gangs() -> None:
    """TAS23: a scaled gang takes its scaling group's constraint, the base gang the set's."""
    layout = lay_out(sample("e2e-yaml/tas-preferred-pack"), 0, {})
    base, scaled = (body(layout, gang, LEVELS)["spec"] for gang in layout.gangs)
    assert base["topologyConstraint"]["packConstraint"] == {
        "required": "kubernetes.io/block",
        "preferred": "kubernetes.io/rack",
    }
    assert scaled["topologyConstraint"]["packConstraint"] == {"preferred": "kubernetes.io/hostname"}
    assert "topologyConstraintGroupConfigs" not in scaled


def test_without_its_binding_a_gang_has_no_constraint() -> None:
    """TAS20: a vanished binding leaves the gang unconstrained and without the topology's name."""
    layout = lay_out(sample("e2e-yaml/tas-hierarchy"), 0, {})
    gang = body(layout, layout.base_gang, topology.NO_LEVELS)
    assert "topologyConstraint" not in gang["spec"]
    assert "grove.io/topology-name" not in gang["metadata"]["annotations"]
    assert topology.missing_domains(layout.pcs, topology.NO_LEVELS) == ["block", "rack", "host"]


def test_a_gang_takes_the_users_labels_but_not_kubectls_notes() -> None:
    """Labels and annotations of the set go to its gangs, except grove.io's and kubectl's."""
    built = make.pcs("s").clique("a").label("team", "x").annotate("kubectl.kubernetes.io/last-applied", "{}").build()
    layout = lay_out(parsed(built), 0, {})
    metadata = body(layout, layout.base_gang, topology.NO_LEVELS)["metadata"]
    assert metadata["labels"]["team"] == "x"
    assert metadata["labels"]["grove.io/scheduler-backend"] == "default"
    assert metadata["labels"]["grove.io/scheduler-name"] == "default-scheduler"
    assert metadata["annotations"] == {}


@pytest.mark.parametrize(
    ("set_class", "clique_class", "expected"), [("high", "low", "high"), ("", "low", "low"), ("", "", "")]
)
def test_a_gangs_priority(set_class: str, clique_class: str, expected: str) -> None:
    """A gang has the template's priority class, else that of the first clique that names one."""
    built = make.pcs("s").clique("a").clique("b", priorityClassName=clique_class).build()
    built["spec"]["template"]["priorityClassName"] = set_class
    layout = lay_out(parsed(built), 0, {})
    spec = body(layout, layout.base_gang, topology.NO_LEVELS)["spec"]
    assert spec.get("priorityClassName", "") == expected


def waits(layout: Layout) -> dict[str, list[str]]:
    """Clique → the cliques it waits for."""
    return {clique.name: [parent.name for parent in startup_order.parents(layout, clique)] for clique in layout.cliques}


def test_cliques_start_in_order_inside_their_gang() -> None:
    """SO2: in the base gang each waits for the one before; in a scaled gang only for members of the same replica."""
    assert waits(lay_out(sample("e2e-yaml/workload4"), 0, {})) == {
        "workload4-0-pc-a": [],
        "workload4-0-sg-x-0-pc-b": ["workload4-0-pc-a"],
        "workload4-0-sg-x-0-pc-c": ["workload4-0-sg-x-0-pc-b"],
        "workload4-0-sg-x-1-pc-b": [],
        "workload4-0-sg-x-1-pc-c": ["workload4-0-sg-x-1-pc-b"],
    }


def test_a_parent_in_a_scaling_group_means_all_its_base_replicas() -> None:
    """SO3: in the base gang a child waits for every base replica of its parent, in its own group as well."""
    waits_for = waits(lay_out(sample("e2e-yaml/workload5"), 0, {}))
    assert waits_for["workload5-0-sg-x-0-pc-c"] == ["workload5-0-pc-a"]
    assert waits_for["workload5-0-sg-x-1-pc-b"] == ["workload5-0-sg-x-0-pc-c", "workload5-0-sg-x-1-pc-c"]

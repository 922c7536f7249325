"""Which PodCliqueSets are refused, and that each refusal names the field and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.grove.admission import sets, topology_bindings
from spinney.grove.admission.defaulting import with_defaults
from tests import make
from tests.grove.admission.paths import GONE, changed

MNNVL = "grove.io/mnnvl-group"
CLIQUES = "spec.template.cliques"
GROUPS = "spec.template.podCliqueScalingGroups"
CLUSTER = sets.ClusterFacts(bindings={"dc": ("zone", "block", "rack", "host"), "other": ("zone", "rack")})
CLAIM = {"name": "nic", "templateSpec": {"spec": {"devices": {"requests": [{"name": "nic"}]}}}}
METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def base() -> dict[str, Any]:
    """A valid set: router alone, leader and worker in a scaling group."""
    built = make.pcs("svc").clique("router", 2).clique("leader").clique("worker", 3, 2)
    return with_defaults(built.group("sg", ["leader", "worker"], 2, 1).build())


def pack(required: str = "", preferred: str = "", topology: str = "dc") -> dict[str, Any]:
    """A topology constraint."""
    domains = {"required": required, "preferred": preferred}
    return {"topologyName": topology, "pack": {k: v for k, v in domains.items() if v}}


def refusal(changes: dict[str, Any], cluster: sets.ClusterFacts = CLUSTER) -> str:
    """What admission says to the base set with some fields changed."""
    return sets.check_create(changed(base(), changes), cluster).text()


INVALID: list[tuple[dict[str, Any], str, str]] = [
    ({"metadata.name": "Svc_1"}, "metadata.name", "lower case"),
    ({"spec.replicas": -1}, "spec.replicas", "greater than or equal to 0"),
    ({"spec.replicas": 10_001}, "spec.replicas", "100010 pods, at most 100000"),
    ({"spec.updateStrategy": {"type": "Surge"}}, "spec.updateStrategy.type", '"OnDelete", "RollingRecreate"'),
    ({"spec.template.cliqueStartupType": ""}, "spec.template.cliqueStartupType", "use one of"),
    ({"spec.template.cliqueStartupType": "Any"}, "spec.template.cliqueStartupType", "supported values"),
    ({"spec.template.terminationDelay": "0s"}, "spec.template.terminationDelay", "greater than 0"),
    ({"spec.template.terminationDelay": "-1m"}, "spec.template.terminationDelay", "greater than 0"),
    ({"spec.template.terminationDelay": "soon"}, "spec.template.terminationDelay", "30s, 10m or 4h"),
    ({CLIQUES: [], GROUPS: []}, CLIQUES, "at least one PodClique"),
    ({f"{CLIQUES}[0].name": ""}, f"{CLIQUES}[0].name", "unique"),
    ({f"{CLIQUES}[0].name": "Router"}, f"{CLIQUES}[0].name", "lower case"),
    ({f"{CLIQUES}[0].name": "leader"}, f"{CLIQUES}[1].name", "Duplicate value"),
    ({f"{CLIQUES}[0].name": "r" * 43}, f"{CLIQUES}[0].name", "at most 45"),
    ({f"{GROUPS}[0].name": "g" * 37}, f"{CLIQUES}[1].name", "shorten one"),
    ({f"{CLIQUES}[0].spec.roleName": ""}, f"{CLIQUES}[0].spec.roleName", "clique's name"),
    ({f"{CLIQUES}[0].spec.roleName": "leader"}, f"{CLIQUES}[1].spec.roleName", "unique"),
    ({f"{CLIQUES}[0].spec.replicas": -2}, f"{CLIQUES}[0].spec.replicas", "greater than 0"),
    ({f"{CLIQUES}[0].spec.minAvailable": 0}, f"{CLIQUES}[0].spec.minAvailable", "greater than 0"),
    ({f"{CLIQUES}[0].spec.minAvailable": -1}, f"{CLIQUES}[0].spec.minAvailable", "greater than 0"),
    ({f"{CLIQUES}[0].spec.minAvailable": 3}, f"{CLIQUES}[0].spec.minAvailable", "replicas (2)"),
    ({f"{CLIQUES}[0].labels": {"a b": "c"}}, f"{CLIQUES}[0].labels", "not a label key"),
    ({f"{CLIQUES}[0].labels": {"a": "b c"}}, f"{CLIQUES}[0].labels[a]", "not a label value"),
    ({f"{CLIQUES}[0].labels": {"a": "x" * 64}}, f"{CLIQUES}[0].labels[a]", "at most 63"),
    ({f"{CLIQUES}[0].annotations": {"/": "b"}}, f"{CLIQUES}[0].annotations", "not an annotation key"),
    ({f"{CLIQUES}[0].spec.autoScalingConfig": {"minReplicas": 2}}, "autoScalingConfig.maxReplicas", "Required"),
    (
        {f"{CLIQUES}[0].spec.autoScalingConfig": {"minReplicas": 1, "maxReplicas": 4}},
        f"{CLIQUES}[0].spec.autoScalingConfig.minReplicas",
        "minAvailable (2)",
    ),
    (
        {f"{CLIQUES}[0].spec.autoScalingConfig": {"minReplicas": 5, "maxReplicas": 4}},
        f"{CLIQUES}[0].spec.autoScalingConfig.maxReplicas",
        "minReplicas (5)",
    ),
    (
        {f"{CLIQUES}[0].spec.autoScalingConfig": {"minReplicas": 2, "maxReplicas": 1}},
        f"{CLIQUES}[0].spec.autoScalingConfig.maxReplicas",
        "replicas (2)",
    ),
    ({f"{CLIQUES}[0].rollingUpdate": {"maxUnavailable": 0}}, "rollingUpdate.maxUnavailable", "at least 1"),
    ({f"{CLIQUES}[0].rollingUpdate": {"maxUnavailable": "x"}}, "rollingUpdate.maxUnavailable", "25%"),
    ({f"{CLIQUES}[0].rollingUpdate": {"maxUnavailable": "120%"}}, "rollingUpdate.maxUnavailable", "25%"),
    ({f"{CLIQUES}[0].rollingUpdate": {"progressDeadline": "0"}}, "rollingUpdate.progressDeadline", "greater than 0"),
    ({f"{GROUPS}[0].rollingUpdate": {"maxUnavailable": "0%"}}, f"{GROUPS}[0].rollingUpdate.maxUnavailable", "25%"),
    ({f"{CLIQUES}[0].spec.podSpec.containers": []}, f"{CLIQUES}[0].spec.podSpec.containers", "at least one container"),
    ({f"{CLIQUES}[0].spec.podSpec.nodeName": "n1"}, "podSpec.nodeName", "nodeSelector"),
    ({f"{CLIQUES}[0].spec.podSpec.topologySpreadConstraints": [{}]}, "topologySpreadConstraints", "topologyConstraint"),
    (
        {f"{CLIQUES}[0].spec.podSpec.containers[0].env": [{"name": "A=B", "value": "1"}]},
        f"{CLIQUES}[0].spec.podSpec.containers[0].env[0].name",
        "without '='",
    ),
    (
        {f"{CLIQUES}[0].spec.podSpec.containers[0].env": [{"name": "A"}, {"name": "A"}]},
        f"{CLIQUES}[0].spec.podSpec.containers[0].env[1].name",
        "remove one",
    ),
    (
        {f"{CLIQUES}[0].spec.podSpec.initContainers": [{"name": "i", "env": [{"name": ""}]}]},
        f"{CLIQUES}[0].spec.podSpec.initContainers[0].env[0].name",
        "rename it",
    ),
    ({f"{GROUPS}[0].name": ""}, f"{GROUPS}[0].name", "unique"),
    ({f"{GROUPS}[0].name": "SG"}, f"{GROUPS}[0].name", "lower case"),
    ({f"{GROUPS}[0].name": "router"}, f"{GROUPS}[0].name", "rename one"),
    ({f"{GROUPS}[0].cliqueNames": []}, f"{GROUPS}[0].cliqueNames", "at least one clique"),
    ({f"{GROUPS}[0].cliqueNames": ["leader", "wrkr"]}, f"{GROUPS}[0].cliqueNames[1]", "leader, router, worker"),
    ({f"{GROUPS}[0].cliqueNames": ["leader", "leader"]}, f"{GROUPS}[0].cliqueNames[1]", "at most one"),
    (
        {GROUPS: [{"name": "a", "cliqueNames": ["leader"]}, {"name": "b", "cliqueNames": ["leader"]}]},
        f"{GROUPS}[1].cliqueNames[0]",
        "already in scaling group a",
    ),
    (
        {GROUPS: [{"name": "a", "cliqueNames": ["leader"]}, {"name": "a", "cliqueNames": ["worker"]}]},
        f"{GROUPS}[1].name",
        "Duplicate value",
    ),
    ({f"{GROUPS}[0].replicas": 0}, f"{GROUPS}[0].replicas", "greater than 0"),
    ({f"{GROUPS}[0].minAvailable": 0}, f"{GROUPS}[0].minAvailable", "greater than 0"),
    ({f"{GROUPS}[0].minAvailable": 3}, f"{GROUPS}[0].minAvailable", "replicas (2)"),
    (
        {f"{GROUPS}[0].minAvailable": 2, f"{GROUPS}[0].scaleConfig": {"minReplicas": 1, "maxReplicas": 3}},
        f"{GROUPS}[0].scaleConfig.minReplicas",
        "minAvailable (2)",
    ),
    ({f"{GROUPS}[0].scaleConfig": {"minReplicas": 1, "maxReplicas": 1}}, "scaleConfig.maxReplicas", "replicas (2)"),
    (
        {f"{CLIQUES}[1].spec.autoScalingConfig": {"minReplicas": 1, "maxReplicas": 3, "metrics": [METRIC]}},
        f"{GROUPS}[0].cliqueNames[0]",
        "scaleConfig",
    ),
    ({"spec.template.resourceClaimTemplates": [{**CLAIM, "name": ""}]}, "resourceClaimTemplates[0].name", "name"),
    ({"spec.template.resourceClaimTemplates": [CLAIM, CLAIM]}, "resourceClaimTemplates[1].name", "Duplicate value"),
    ({"spec.template.resourceClaimTemplates": [{"name": "a"}]}, "devices.requests", "at least one device"),
    ({"spec.template.resourceSharing": [{"scope": "AllReplicas"}]}, "resourceSharing[0].name", "name a claim"),
    ({"spec.template.resourceSharing": [{"name": "a", "scope": "Some"}]}, "resourceSharing[0].scope", "PerReplica"),
    (
        {"spec.template.resourceSharing": [{"name": "a", "scope": "AllReplicas"}] * 2},
        "spec.template.resourceSharing[1].name",
        "once per list",
    ),
    (
        {
            "spec.template.resourceClaimTemplates": [CLAIM],
            "spec.template.resourceSharing": [{"name": "nic", "namespace": "x", "scope": "AllReplicas"}],
        },
        "spec.template.resourceSharing[0].namespace",
        "leave the namespace out",
    ),
    (
        {"spec.template.resourceSharing": [{"name": "a", "scope": "AllReplicas", "filter": {}}]},
        "spec.template.resourceSharing[0].filter",
        "remove the filter",
    ),
    (
        {
            "spec.template.resourceSharing": [
                {"name": "a", "scope": "AllReplicas", "filter": {"childCliqueNames": ["x"]}}
            ]
        },
        "spec.template.resourceSharing[0].filter.childCliqueNames[0]",
        "no such child",
    ),
    (
        {
            f"{GROUPS}[0].resourceSharing": [
                {"name": "a", "scope": "AllReplicas", "filter": {"childCliqueNames": ["router"]}}
            ]
        },
        f"{GROUPS}[0].resourceSharing[0].filter.childCliqueNames[0]",
        "leader, worker",
    ),
    (
        {
            f"{CLIQUES}[0].resourceSharing": [
                {"name": "a", "scope": "AllReplicas", "filter": {"childCliqueNames": ["router"]}}
            ]
        },
        f"{CLIQUES}[0].resourceSharing[0].filter",
        "remove the filter",
    ),
    ({"spec.template.topologyConstraint": {"topologyName": "dc"}}, "topologyConstraint", "must specify pack"),
    ({"spec.template.topologyConstraint": pack()}, "topologyConstraint.pack", "at least one of required or preferred"),
    (
        {"spec.template.topologyConstraint": {**pack("rack"), "packDomain": "rack"}},
        "spec.template.topologyConstraint",
        "must not set both pack.required and deprecated packDomain",
    ),
    (
        {"spec.template.topologyConstraint": {"topologyName": "dc", "packDomain": "rack"}},
        "spec.template.topologyConstraint.packDomain",
        "packDomain is deprecated and cannot be used on new workloads; use pack.required",
    ),
    ({"spec.template.topologyConstraint": pack("rack", topology="")}, "topologyConstraint.topologyName", "Required"),
    ({"spec.template.topologyConstraint": pack("rack", topology="x")}, "topologyConstraint.topologyName", "create it"),
    ({f"{CLIQUES}[0].topologyConstraint": pack("row")}, f"{CLIQUES}[0].topologyConstraint.pack.required", "use one of"),
    (
        {"spec.template.topologyConstraint": pack("rack"), f"{CLIQUES}[0].topologyConstraint": pack("zone")},
        f"{CLIQUES}[0].topologyConstraint.pack.required",
        "narrower",
    ),
    (
        {f"{GROUPS}[0].topologyConstraint": pack("host"), f"{CLIQUES}[1].topologyConstraint": pack("rack")},
        f"{CLIQUES}[1].topologyConstraint.pack.required",
        "use host or a narrower domain",
    ),
    (
        {
            "spec.template.topologyConstraint": pack("zone"),
            f"{CLIQUES}[0].topologyConstraint": pack("rack", topology="other"),
        },
        f"{CLIQUES}[0].topologyConstraint.topologyName",
        "a set uses one topology",
    ),
    ({f"metadata.annotations.{MNNVL.replace('.', '~')}": "x"}, f"metadata.annotations[{MNNVL}]", "autoMNNVLEnabled"),
    ({f"{CLIQUES}[0].annotations": {MNNVL: "not ok"}}, f"{CLIQUES}[0].annotations[{MNNVL}]", '"none" to opt out'),
]


@pytest.mark.parametrize(
    ("changes", "field", "remedy"), INVALID, ids=[f"{at}-{f}" for at, (_, f, _) in enumerate(INVALID)]
)
def test_an_invalid_set_is_refused_with_field_and_remedy(changes: dict[str, Any], field: str, remedy: str) -> None:
    """A refusal names the field that is wrong and says what to do."""
    text = refusal(_dotted(changes))
    assert field in text
    assert remedy in text


def _dotted(changes: dict[str, Any]) -> dict[str, Any]:
    # The annotation's name has a dot of its own.
    if any("~" in path for path in changes):
        (value,) = changes.values()
        return {"metadata.annotations": {MNNVL: value}}
    return changes


def test_the_base_set_is_accepted() -> None:
    """What the table of invalid sets starts from is valid."""
    assert not sets.check_create(base(), CLUSTER)


def test_all_problems_are_told_at_once() -> None:
    """A user sees every problem of a set in one answer."""
    text = refusal({"spec.replicas": -1, f"{CLIQUES}[0].spec.replicas": -1})
    assert "spec.replicas" in text
    assert f"{CLIQUES}[0].spec.replicas" in text


EXPLICIT = {"spec.template.cliqueStartupType": "CliqueStartupTypeExplicit"}
ORDERS: list[tuple[dict[str, Any], str, str]] = [
    ({f"{CLIQUES}[0].spec.startsAfter": [""]}, f"{CLIQUES}[0].spec.startsAfter[0]", "remove the entry"),
    ({f"{CLIQUES}[0].spec.startsAfter": ["router"]}, f"{CLIQUES}[0].spec.startsAfter[0]", "after itself"),
    ({f"{CLIQUES}[0].spec.startsAfter": ["x"]}, f"{CLIQUES}[0].spec.startsAfter[0]", "leader, worker"),
    ({f"{CLIQUES}[0].spec.startsAfter": ["worker"] * 2}, f"{CLIQUES}[0].spec.startsAfter[1]", "once"),
    (
        {
            f"{CLIQUES}[0].spec.startsAfter": ["leader"],
            f"{CLIQUES}[1].spec.startsAfter": ["worker"],
            f"{CLIQUES}[2].spec.startsAfter": ["router"],
        },
        CLIQUES,
        "remove one startsAfter entry",
    ),
]


@pytest.mark.parametrize(("changes", "field", "remedy"), ORDERS)
def test_an_impossible_start_order_is_refused(changes: dict[str, Any], field: str, remedy: str) -> None:
    """Explicit start-up order must name other cliques of the set, each once, without a loop."""
    text = refusal({**EXPLICIT, **changes})
    assert field in text
    assert remedy in text


def test_start_order_does_not_matter_without_explicit() -> None:
    """startsAfter is only looked at with the Explicit start-up type."""
    assert not refusal_found({f"{CLIQUES}[0].spec.startsAfter": ["nowhere"]})


def refusal_found(changes: dict[str, Any], cluster: sets.ClusterFacts = CLUSTER) -> bool:
    """Whether admission refuses the changed base set."""
    return bool(sets.check_create(changed(base(), changes), cluster))


def test_topology_is_refused_where_it_is_switched_off() -> None:
    """Without topology-aware scheduling no constraint is accepted."""
    off = sets.ClusterFacts(topology_aware=False)
    assert "enable topologyAwareScheduling" in refusal({"spec.template.topologyConstraint": pack("rack")}, off)


def test_preferred_only_and_inherited_topology_are_accepted() -> None:
    """A constraint may only prefer a domain, and inherits the topology's name from above."""
    inherited = {"pack": {"preferred": "host"}}
    assert not refusal_found(
        {"spec.template.topologyConstraint": pack("block", "rack"), f"{CLIQUES}[0].topologyConstraint": inherited}
    )


def test_a_useless_preference_is_a_warning() -> None:
    """Preferring a broader domain than is required has no effect, and is said so."""
    problems = sets.check_create(changed(base(), {"spec.template.topologyConstraint": pack("rack", "zone")}), CLUSTER)
    assert not problems
    assert "broader" in problems.warnings[0]


def test_mnnvl_groups_are_accepted_where_enabled_and_none_always() -> None:
    """A group needs the feature; opting out does not."""
    group = {"metadata.annotations": {MNNVL: "train"}}
    assert not refusal_found(group, sets.ClusterFacts(mnnvl=True))
    assert not refusal_found({"metadata.annotations": {MNNVL: "none"}})


IMMUTABLE: list[tuple[dict[str, Any], str]] = [
    ({"spec.template.cliqueStartupType": "CliqueStartupTypeInOrder"}, "spec.template.cliqueStartupType"),
    ({f"{CLIQUES}[0].name": "front"}, CLIQUES),
    ({f"{CLIQUES}[0].spec.roleName": "front"}, f"{CLIQUES}[0].spec.roleName"),
    ({f"{CLIQUES}[0].spec.minAvailable": 1}, f"{CLIQUES}[0].spec.minAvailable"),
    ({f"{CLIQUES}[0].spec.startsAfter": ["leader"]}, f"{CLIQUES}[0].spec.startsAfter"),
    ({f"{CLIQUES}[0].spec.podSpec.schedulerName": "volcano"}, f"{CLIQUES}[0].spec.podSpec.schedulerName"),
    (
        {f"{CLIQUES}[0].resourceSharing": [{"name": "a", "scope": "AllReplicas"}]},
        f"{CLIQUES}[0].resourceSharing",
    ),
    ({f"{CLIQUES}[0].annotations": {MNNVL: "none"}}, f"{CLIQUES}[0].annotations[{MNNVL}]"),
    ({f"{CLIQUES}[0].topologyConstraint": pack("rack")}, f"{CLIQUES}[0].topologyConstraint"),
    ({f"{GROUPS}[0].name": "other"}, GROUPS),
    ({f"{GROUPS}[0].cliqueNames": ["worker", "leader"]}, f"{GROUPS}[0].cliqueNames"),
    ({f"{GROUPS}[0].minAvailable": 2}, f"{GROUPS}[0].minAvailable"),
    ({"spec.template.resourceClaimTemplates": [CLAIM]}, "spec.template.resourceClaimTemplates"),
    ({"spec.template.resourceSharing": [{"name": "a", "scope": "AllReplicas"}]}, "spec.template.resourceSharing"),
    ({"spec.template.topologyConstraint": pack("rack")}, "spec.template.topologyConstraint"),
    ({"metadata.annotations": {MNNVL: "none"}}, f"metadata.annotations[{MNNVL}]"),
]


@pytest.mark.parametrize(("changes", "field"), IMMUTABLE, ids=[field for _, field in IMMUTABLE])
def test_what_may_not_change(changes: dict[str, Any], field: str) -> None:
    """A change of an immutable field is refused with the way around."""
    text = sets.check_update(base(), changed(base(), changes), CLUSTER).text()
    assert field in text
    assert "create it anew" in text


def test_clique_order_is_fixed_where_it_means_something() -> None:
    """Cliques may be listed in another order only if they start in any order."""
    turned = changed(base(), {CLIQUES: list(reversed(base()["spec"]["template"]["cliques"]))})
    assert not sets.check_update(base(), turned, CLUSTER)
    ordered = {"spec.template.cliqueStartupType": "CliqueStartupTypeInOrder"}
    text = sets.check_update(changed(base(), ordered), changed(turned, ordered), CLUSTER).text()
    assert "order cannot be changed" in text


MUTABLE: list[dict[str, Any]] = [
    {"spec.replicas": 5},
    {f"{CLIQUES}[0].spec.podSpec.containers[0].image": "busybox:2"},
    {f"{CLIQUES}[0].labels": {"team": "a"}},
    {f"{CLIQUES}[0].spec.replicas": 4},
    {f"{GROUPS}[0].replicas": 4},
    {"spec.template.priorityClassName": "high"},
    {"spec.template.terminationDelay": "1m"},
    {"spec.template.headlessServiceConfig": {"publishNotReadyAddresses": False}},
    {"spec.updateStrategy": {"type": "OnDelete"}},
    {f"{CLIQUES}[0].spec.autoScalingConfig": {"minReplicas": 2, "maxReplicas": 9}},
    {f"{CLIQUES}[0].rollingUpdate": {"maxUnavailable": "50%", "progressDeadline": "10m"}},
    {f"{CLIQUES}[0].spec.podSpec.nodeName": "n1"},
]


@pytest.mark.parametrize("changes", MUTABLE, ids=[next(iter(change)) for change in MUTABLE])
def test_what_may_change(changes: dict[str, Any]) -> None:
    """Everything else of a set may change while it runs."""
    assert not sets.check_update(base(), changed(base(), changes), CLUSTER)


LEGACY = {"packDomain": "rack"}
MIGRATIONS = [
    ({"topologyName": "dc", "packDomain": "rack"}, True),
    ({"topologyName": "dc", "pack": {"required": "rack"}}, True),
    ({"topologyName": "dc", "packDomain": "host"}, False),
    ({"topologyName": "dc", "pack": {"required": "host"}}, False),
    ({"topologyName": "dc", "pack": {"required": "rack", "preferred": "host"}}, False),
]


@pytest.mark.parametrize(("after", "allowed"), MIGRATIONS)
def test_the_deprecated_spelling_may_be_migrated(after: dict[str, Any], allowed: bool) -> None:
    """packDomain may gain a topology's name or move to pack.required, and nothing else."""
    field = "spec.template.topologyConstraint"
    old, new = changed(base(), {field: LEGACY}), changed(base(), {field: after})
    assert bool(sets.check_update(old, new, CLUSTER)) is not allowed


def binding(**spec: Any) -> dict[str, Any]:
    """A ClusterTopologyBinding of two levels."""
    levels = [{"domain": "zone", "key": "k/zone"}, {"domain": "rack", "key": "k/rack"}]
    return {"metadata": {"name": "dc"}, "spec": {"levels": levels, **spec}}


BINDINGS = [
    ({"levels": []}, "spec.levels", "at least one level"),
    (
        {"levels": [{"domain": "a", "key": "x"}, {"domain": "a", "key": "y"}]},
        "spec.levels[1].domain",
        "Duplicate value",
    ),
    ({"levels": [{"domain": "a", "key": "x"}, {"domain": "b", "key": "x"}]}, "spec.levels[1].key", "Duplicate value"),
    ({"levels": [{"domain": "A", "key": "x"}]}, "spec.levels[0].domain", "lower case"),
    ({"levels": [{"domain": "a", "key": "x y"}]}, "spec.levels[0].key", "node label key"),
    (
        {"schedulerTopologyBindings": [{"schedulerName": "nobody", "topologyReference": "t"}]},
        "spec.schedulerTopologyReferences[0].schedulerName",
        "scheduler backend is not enabled in Grove",
    ),
    (
        {"schedulerTopologyBindings": [{"schedulerName": "default-scheduler", "topologyReference": "t"}]},
        "spec.schedulerTopologyReferences[0].schedulerName",
        "scheduler backend does not implement topology-aware scheduling",
    ),
    (
        {"schedulerTopologyBindings": [{"schedulerName": "kai-scheduler", "topologyReference": "t"}] * 2},
        "spec.schedulerTopologyReferences[1].schedulerName",
        "once",
    ),
]


@pytest.mark.parametrize(("spec", "field", "remedy"), BINDINGS)
def test_an_invalid_binding_is_refused(spec: dict[str, Any], field: str, remedy: str) -> None:
    """TAS21: a topology binding's problems come with upstream's paths and words."""
    text = topology_bindings.check(binding(**spec), {"kai-scheduler", "default-scheduler"}, {"kai-scheduler"}).text()
    assert field in text
    assert remedy in text


def test_defaults_are_written_out() -> None:
    """What a set leaves open is filled in once, at admission."""
    bare = make.pcs("svc").clique("a", 3).build()
    del bare["metadata"]["namespace"]
    bare["spec"]["template"]["cliques"][0]["spec"].pop("roleName")
    bare["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"maxReplicas": 5}
    filled = with_defaults(bare)
    template, clique = filled["spec"]["template"], filled["spec"]["template"]["cliques"][0]["spec"]
    assert filled["metadata"]["namespace"] == "default"
    assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert template["terminationDelay"] == "4h0m0s"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    assert (clique["roleName"], clique["minAvailable"], clique["autoScalingConfig"]["minReplicas"]) == ("a", 3, 3)
    assert clique["podSpec"]["restartPolicy"] == "Always"
    assert clique["podSpec"]["terminationGracePeriodSeconds"] == 30
    assert with_defaults(filled) == filled


def test_gpus_under_requests_only_were_refused() -> None:
    """Extended resources get limits equal to their requests, as Kubernetes wants them; a limit that is there stays."""
    bare = make.pcs("svc").clique("a").build()
    container = bare["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    requests = {"nvidia.com/gpu": "2", "rdma/hca": "1", "cpu": "4", "kubernetes.io/batch-cpu": "1"}
    container["resources"] = {"requests": requests, "limits": {"rdma/hca": "3"}}
    filled = with_defaults(bare)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    assert filled["resources"] == {"requests": requests, "limits": {"nvidia.com/gpu": "2", "rdma/hca": "3"}}


@pytest.mark.parametrize("resources", [7, {"requests": "x"}, {"requests": {"a/b": "1"}, "limits": 3}])
def test_resources_of_a_wrong_type_are_left_for_validation(resources: Any) -> None:
    """Defaulting neither fails on them nor changes them."""
    bare = make.pcs("svc").clique("a").build()
    bare["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"] = resources
    filled = with_defaults(bare)
    assert filled["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"] == resources


def test_a_clique_without_replicas_gets_one() -> None:
    """Zero replicas mean one, and minAvailable follows."""
    bare = changed(make.pcs("svc").clique("a", 0).build(), {f"{CLIQUES}[0].spec.replicas": GONE})
    spec = with_defaults(bare)["spec"]["template"]["cliques"][0]["spec"]
    assert (spec["replicas"], spec["minAvailable"]) == (1, 1)

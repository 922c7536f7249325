"""The rules in our CRDs, as a user meets them: the API server refuses, names the field, and says why."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from spinney.api.crd import crds
from spinney.api.meta import Json
from tests import make
from tests.api_behaviour import crds as installing
from tests.api_behaviour.wire import Api
from tests.worlds import Cluster

SETS = "/apis/grove.io/v1alpha1/namespaces/{}/podcliquesets"
RULES = "spinney-test"


@pytest.fixture
async def api(cluster: Cluster) -> Api:
    """The administrator's calls, where our kinds are served as we define them now."""
    api = Api(cluster.transport())
    for crd in crds():
        path = f"{installing.CRDS}/{crd['metadata']['name']}"
        answer = await api.get(path)
        if RULES.encode() in answer.raw:
            continue
        if answer.code == 200:
            # A definition of another test; a changed one would take effect at some later moment.
            await api.delete(path)
            await api.until(path, lambda answer: answer.code == 404)
        (await api.apply(path, crd, RULES)).ok()
        await installing.install(api, crd)
    return api


def a_set() -> Json:
    """Two cliques, one of them in a scaling group, packed into racks."""
    built = make.pcs("demo", replicas=1).clique("a", 2, 1).clique("b", 2, 2).group("g", ["b"], 2, 1).build()
    for clique in built["spec"]["template"]["cliques"]:
        clique["topologyConstraint"] = {"topologyName": "t", "pack": {"required": "rack"}}
    del built["metadata"]["namespace"]
    return built


def put(*path: Any, value: Any) -> Callable[[Json], None]:
    """A change below `spec.template`; None takes the field out."""

    def change(pcs: Json) -> None:
        owner: Any = pcs["spec"]["template"]
        for step in path[:-1]:
            owner = owner[step]
        if value is None:
            del owner[path[-1]]
        else:
            owner[path[-1]] = value

    return change


def explicit(*after: str) -> Callable[[Json], None]:
    """Clique a starts after others."""

    def change(pcs: Json) -> None:
        put("cliqueStartupType", value="CliqueStartupTypeExplicit")(pcs)
        put("cliques", 0, "spec", "startsAfter", value=list(after))(pcs)

    return change


def swapped(pcs: Json) -> None:
    """The cliques in another order."""
    pcs["spec"]["template"]["cliques"].reverse()


CLIQUE = ("cliques", 0)
PACK = "topologyConstraint must specify pack or deprecated packDomain"
REFUSED: dict[str, tuple[Callable[[Json], None], str, str]] = {
    "no replicas": (put(*CLIQUE, "spec", "replicas", value=0), "cliques[0].spec.replicas", "must be greater than 0"),
    "minimum 0": (
        put(*CLIQUE, "spec", "minAvailable", value=0),
        "cliques[0].spec.minAvailable",
        "must be greater than 0",
    ),
    "minimum above replicas": (
        put(*CLIQUE, "spec", "minAvailable", value=3),
        "cliques[0].spec.minAvailable",
        "minAvailable must not be greater than replicas",
    ),
    "autoscaling below the minimum": (
        put(*CLIQUE, "spec", "autoScalingConfig", value={"minReplicas": 0, "maxReplicas": 4}),
        "cliques[0].spec.autoScalingConfig.minReplicas",
        "must be greater than or equal to podCliqueSpec.minAvailable",
    ),
    "autoscaling upside down": (
        put(*CLIQUE, "spec", "autoScalingConfig", value={"minReplicas": 4, "maxReplicas": 3}),
        "cliques[0].spec.autoScalingConfig.maxReplicas",
        "must be greater than or equal to podCliqueSpec.minReplicas",
    ),
    "autoscaling below replicas": (
        put(*CLIQUE, "spec", "autoScalingConfig", value={"maxReplicas": 1}),
        "cliques[0].spec.autoScalingConfig.maxReplicas",
        "must be greater than or equal to replicas",
    ),
    "autoscaling inside a group": (
        put("cliques", 1, "spec", "autoScalingConfig", value={"maxReplicas": 5}),
        "cliques",
        "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group",
    ),
    "same role twice": (put(*CLIQUE, "spec", "roleName", value="b"), "cliques", "role names must be unique"),
    "same clique twice": (put(*CLIQUE, "name", value="b"), "cliques[1]", "Duplicate value"),
    "starts after itself": (explicit("a"), "cliques", "clique dependency cannot refer to itself"),
    "starts after a stranger": (explicit("z"), "cliques", "startsAfter must name cliques of this set"),
    "unknown start-up type": (put("cliqueStartupType", value="Random"), "cliqueStartupType", "Unsupported value"),
    "unknown member": (
        put("podCliqueScalingGroups", 0, "cliqueNames", value=["z"]),
        "podCliqueScalingGroups",
        "unidentified PodClique names found",
    ),
    "in two groups": (
        put("podCliqueScalingGroups", value=[{"name": "g", "cliqueNames": ["b"]}, {"name": "h", "cliqueNames": ["b"]}]),
        "podCliqueScalingGroups",
        "a clique can be in one scaling group only",
    ),
    "group minimum above replicas": (
        put("podCliqueScalingGroups", 0, "minAvailable", value=3),
        "podCliqueScalingGroups[0].minAvailable",
        "minAvailable must not be greater than replicas",
    ),
    "group without replicas": (
        put("podCliqueScalingGroups", 0, "replicas", value=0),
        "podCliqueScalingGroups[0].replicas",
        "must be greater than 0",
    ),
    "group scaled below its minimum": (
        put("podCliqueScalingGroups", 0, "scaleConfig", value={"minReplicas": 0, "maxReplicas": 2}),
        "podCliqueScalingGroups[0].scaleConfig.minReplicas",
        "scaleConfig.minReplicas must be greater than or equal to minAvailable",
    ),
    "no delay": (put("terminationDelay", value="0s"), "terminationDelay", "terminationDelay must be greater than 0"),
    "no pack": (
        put(*CLIQUE, "topologyConstraint", value={"topologyName": "t"}),
        "cliques[0].topologyConstraint.pack",
        PACK,
    ),
    "empty pack": (
        put(*CLIQUE, "topologyConstraint", "pack", value={}),
        "cliques[0].topologyConstraint.pack",
        "pack must specify at least one of required or preferred",
    ),
    "deprecated packDomain": (
        put(*CLIQUE, "topologyConstraint", value={"packDomain": "rack"}),
        "cliques",
        "packDomain is deprecated and cannot be used on new workloads; use pack.required",
    ),
    "domain that is no name": (
        put(*CLIQUE, "topologyConstraint", "pack", "required", value="Rack_1"),
        "cliques[0].topologyConstraint.pack.required",
        "should match",
    ),
}


@pytest.mark.parametrize(("change", "field", "message"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_new_set_is_refused(
    cluster: Cluster, api: Api, change: Callable[[Json], None], field: str, message: str
) -> None:
    """What cannot work is refused at once, at its field, in upstream's words."""
    pcs = a_set()
    change(pcs)
    answer = await api.post(SETS.format(await cluster.namespace()), pcs)
    text = answer.refused(422, "Invalid")["message"]
    assert f"spec.template.{field}:" in text
    assert message in text


IMMUTABLE: dict[str, tuple[Callable[[Json], None], str, str]] = {
    "role": (put(*CLIQUE, "spec", "roleName", value="c"), "cliques[0].spec.roleName", "field is immutable"),
    "minimum": (put(*CLIQUE, "spec", "minAvailable", value=2), "cliques[0].spec.minAvailable", "field is immutable"),
    "order of starting": (
        put(*CLIQUE, "spec", "startsAfter", value=["b"]),
        "cliques[0].spec.startsAfter",
        "field is immutable",
    ),
    "start-up type": (
        put("cliqueStartupType", value="CliqueStartupTypeInOrder"),
        "cliqueStartupType",
        "field is immutable",
    ),
    "name of a clique": (put(*CLIQUE, "name", value="c"), "cliques", "not allowed to change clique composition"),
    "group removed": (
        put("podCliqueScalingGroups", value=None),
        "podCliqueScalingGroups",
        "not allowed to add or remove PodCliqueScalingGroupConfigs",
    ),
    "members of a group": (
        put("podCliqueScalingGroups", 0, "cliqueNames", value=["a", "b"]),
        "podCliqueScalingGroups[0].cliqueNames",
        "field is immutable",
    ),
    "minimum of a group": (
        put("podCliqueScalingGroups", 0, "minAvailable", value=2),
        "podCliqueScalingGroups[0].minAvailable",
        "field is immutable",
    ),
    "constraint removed": (
        put(*CLIQUE, "topologyConstraint", value=None),
        "cliques[0].topologyConstraint",
        "field is immutable",
    ),
    "constraint added": (
        put("topologyConstraint", value={"topologyName": "t", "pack": {"required": "block"}}),
        "topologyConstraint",
        "field is immutable",
    ),
    "constraint changed": (
        put(*CLIQUE, "topologyConstraint", "pack", "required", value="block"),
        "cliques[0].topologyConstraint",
        "field is immutable",
    ),
    "topology changed": (
        put(*CLIQUE, "topologyConstraint", "topologyName", value="u"),
        "cliques[0].topologyConstraint.topologyName",
        "field is immutable",
    ),
}


@pytest.mark.parametrize(("change", "field", "message"), IMMUTABLE.values(), ids=IMMUTABLE.keys())
async def test_a_stored_set_keeps_its_shape(
    cluster: Cluster, api: Api, change: Callable[[Json], None], field: str, message: str
) -> None:
    """What pods were built on cannot be changed under them."""
    path = SETS.format(await cluster.namespace())
    stored = (await api.post(path, a_set())).ok()
    change(stored)
    text = (await api.put(f"{path}/demo", stored)).refused(422, "Invalid")["message"]
    assert f"spec.template.{field}:" in text
    assert message in text


async def test_the_order_of_cliques_is_fixed_where_it_has_a_meaning(cluster: Cluster, api: Api) -> None:
    """Cliques may be listed in any order, unless they start in that order."""
    path = SETS.format(await cluster.namespace())
    free = (await api.post(path, a_set())).ok()
    swapped(free)
    (await api.put(f"{path}/demo", free)).ok()
    ordered = a_set()
    ordered["metadata"]["name"] = "ordered"
    put("cliqueStartupType", value="CliqueStartupTypeInOrder")(ordered)
    stored = (await api.post(path, ordered)).ok()
    swapped(stored)
    refused = (await api.put(f"{path}/ordered", stored)).refused(422, "Invalid")
    assert "clique order cannot be changed when StartupType is InOrder or Explicit" in refused["message"]


async def test_what_may_change_can_change(cluster: Cluster, api: Api) -> None:
    """Replicas, pod specs, delays and autoscaling are for the user to turn; roleName may be filled in once."""
    path = SETS.format(await cluster.namespace())
    first = a_set()
    put(*CLIQUE, "spec", "roleName", value=None)(first)
    stored = (await api.post(path, first)).ok()
    changed = deepcopy(stored)
    changed["spec"]["replicas"] = 3
    put(*CLIQUE, "spec", "roleName", value="a")(changed)
    put(*CLIQUE, "spec", "replicas", value=4)(changed)
    put(*CLIQUE, "spec", "podSpec", "containers", 0, "image", value="other")(changed)
    put(*CLIQUE, "spec", "autoScalingConfig", value={"minReplicas": 1, "maxReplicas": 8})(changed)
    put("terminationDelay", value="1h30m")(changed)
    (await api.put(f"{path}/demo", changed)).ok()


async def test_defaults_and_unknown_fields(cluster: Cluster, api: Api) -> None:
    """The server fills in defaults, leaves a pod spec as it was written, and refuses typos beside it when strict."""
    path = SETS.format(await cluster.namespace())
    pcs = a_set()
    put(*CLIQUE, "spec", "podSpec", "containers", 0, "futureField", value={"kept": True})(pcs)
    put("podCliqueScalingGroups", value=[{"name": "g", "cliqueNames": ["b"]}])(pcs)
    stored = (await api.post(path, pcs)).ok()["spec"]["template"]
    assert stored["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert (stored["podCliqueScalingGroups"][0]["replicas"], stored["podCliqueScalingGroups"][0]["minAvailable"]) == (
        1,
        1,
    )
    assert stored["cliques"][0]["spec"]["podSpec"]["containers"][0]["futureField"] == {"kept": True}
    typo = a_set()
    put(*CLIQUE, "spec", "replica", value=2)(typo)
    refused = await api.post(path, typo, fieldValidation="Strict")
    assert 'unknown field "spec.template.cliques[0].spec.replica"' in refused.message


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("scheduling.run.ai/v2/queues", {"spec": {}}, "spec.resources: Invalid value"),
        ("scheduling.run.ai/v2/queues", {}, "resources must be specified"),
        (
            "scheduling.run.ai/v2alpha2/namespaces/{}/podgroups",
            {"spec": {"minMember": 1, "minSubGroup": 1}},
            "minMember and minSubGroup are mutually exclusive",
        ),
        (
            "scheduling.run.ai/v2alpha2/namespaces/{}/podgroups",
            {"spec": {"subGroups": [{"name": "a", "minMember": 1, "minSubGroup": 1}]}},
            "minMember and minSubGroup are mutually exclusive",
        ),
        (
            "kai.scheduler/v1alpha1/topologies",
            {"spec": {"levels": [{"nodeLabel": "a", "alias": "x"}, {"nodeLabel": "b", "alias": "x"}]}},
            "aliases must be unique within the topology",
        ),
        (
            "kai.scheduler/v1alpha1/topologies",
            {"spec": {"levels": [{"nodeLabel": "a", "alias": "b"}, {"nodeLabel": "b"}]}},
            "an alias must not equal a nodeLabel",
        ),
        (
            "kai.scheduler/v1alpha1/topologies",
            {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "b"}]}},
            "the kubernetes.io/hostname label can only be used at the lowest level of topology",
        ),
    ],
)
async def test_the_schedulers_kinds_are_checked(
    cluster: Cluster, api: Api, path: str, body: Json, message: str
) -> None:
    """Queues, groups and topologies that cannot work are refused, webhook or not."""
    group, _, rest = path.partition("/")
    kind = {"queues": "Queue", "podgroups": "PodGroup", "topologies": "Topology"}[path.rpartition("/")[2]]
    document = {
        "apiVersion": f"{group}/{rest.partition('/')[0]}",
        "kind": kind,
        "metadata": {"name": cluster.unique("wrong")},
        **body,
    }
    where = f"/apis/{path}".format(await cluster.namespace())
    assert message in (await api.post(where, document)).refused(422, "Invalid")["message"]

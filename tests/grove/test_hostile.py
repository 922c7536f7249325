"""Sets that someone wrote in haste or in malice: refused in words that help, or served without harm to the operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json
from spinney.api.nvidia import ComputeDomain
from spinney.api.resource import ResourceClaim
from spinney.kube.errors import ApiError
from tests import make
from tests.grove.mnnvl import MNNVL
from tests.grove.stage import TOPOLOGY, Stage
from tests.grove.virtual import VirtualStage, played

KAI = {"schedulerName": "kai-scheduler"}
MOST = 2**31 - 1
GPU = [{"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]


def svc(change: Callable[[Json], Any] = lambda template: None, replicas: Any = 1) -> Json:
    """A set of one clique, with something done to its template."""
    built = make.pcs("svc", replicas=replicas).clique("a", **KAI).build()
    change(built["spec"]["template"])
    return built


def waiting(*pairs: tuple[str, str]) -> Json:
    """A set whose cliques wait for each other."""
    builder = make.pcs("svc")
    for name, _ in pairs:
        builder.clique(name)
    built = builder.build()
    template = built["spec"]["template"]
    template["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    for clique, (_, parent) in zip(template["cliques"], pairs, strict=True):
        clique["spec"]["startsAfter"] = [parent]
    return built


REFUSED: dict[str, tuple[Json, str]] = {
    "a digit begins the set's name": (make.pcs("1abc").clique("a").build(), "metadata.name.*DNS-1035"),
    "a dot in the set's name": (make.pcs("a.b").clique("a").build(), "metadata.name.*DNS-1035"),
    "a dot in a clique's name": (make.pcs("svc").clique("x.y").build(), r"cliques\[0\].name.*host names"),
    "a dot in a group's name": (
        make.pcs("svc").clique("a").group("g.h", ["a"]).build(),
        r"podCliqueScalingGroups\[0\].name.*host names",
    ),
    "a name that is too long by one": (make.pcs("s" * 23).clique("c" * 23).build(), "46 characters"),
    "another alphabet": (make.pcs("svc").clique("клика").build(), r"cliques\[0\].name"),
    "a clique that is another's member by name": (
        make.pcs("svc").clique("a").clique("g-0-a").group("g", ["a"], 2).build(),
        "would be g-0-a, as clique",
    ),
    "members of two groups with one name": (
        make.pcs("svc").clique("1-a").clique("a").group("g", ["1-a"]).group("g-0", ["a"], 2).build(),
        "would be g-0-1-a, as clique",
    ),
    "two cliques of one name": (make.pcs("svc").clique("a").clique("a").build(), "Duplicate value"),
    "two groups of one name": (
        make.pcs("svc").clique("a").clique("b").group("g", ["a"]).group("g", ["b"]).build(),
        "Duplicate value",
    ),
    "cliques that wait for each other": (waiting(("a", "b"), ("b", "a")), "wait for each other: a -> b -> a"),
    "a clique that waits for itself": (waiting(("a", "a")), "cannot refer to itself"),
    "an unknown level": (
        svc(lambda t: t.update(topologyConstraint={"topologyName": "grove-topology", "pack": {"required": "galaxy"}})),
        "not a domain of ClusterTopologyBinding grove-topology",
    ),
    "an unknown topology": (
        svc(lambda t: t.update(topologyConstraint={"topologyName": "nope", "pack": {"required": "rack"}})),
        "no ClusterTopologyBinding of this name",
    ),
    "a negative delay": (svc(lambda t: t.update(terminationDelay="-5s")), "terminationDelay"),
    "a delay of three thousand years": (svc(lambda t: t.update(terminationDelay="99999999h")), "terminationDelay"),
    "a delay that is a number": (svc(lambda t: t.update(terminationDelay=5)), "terminationDelay"),
    "a negative deadline": (
        svc(lambda t: t["cliques"][0].update(rollingUpdate={"progressDeadline": "-1s"})),
        "progressDeadline",
    ),
    "more sets than anyone has": (svc(replicas=MOST), "spec.replicas.*100000"),
    "more pods than anyone has": (
        svc(lambda t: t["cliques"][0]["spec"].update(replicas=MOST)),
        r"cliques\[0\].spec.replicas.*100000",
    ),
    "a text for a number": (svc(replicas="3"), "spec.replicas"),
    "less than nothing": (svc(replicas=-1), "spec.replicas"),
    "a map for a list": (svc(lambda t: t.update(cliques={"a": 1})), "spec.template.cliques"),
    "nothing for a clique": (svc(lambda t: t["cliques"].append(None)), r"spec.template.cliques\[1\]"),
    "a text for a pod": (svc(lambda t: t["cliques"][0]["spec"].update(podSpec="x")), "podSpec"),
    "no containers": (svc(lambda t: t["cliques"][0]["spec"].update(podSpec={})), "at least one container"),
}


@played(nodes=1)
async def test_what_cannot_work_is_refused(stage: Stage) -> None:
    """Each is refused with the field's name, and leaves nothing behind."""
    await stage.apply(TOPOLOGY)
    for built, words in REFUSED.values():
        with pytest.raises(ApiError, match=words):
            await stage.apply(built)
    await stage.settle(10)
    for kind in (PodCliqueSet, PodClique, Pod):
        assert not await stage.list(kind)


@played(nodes=2)
async def test_scaling_beyond_all_bounds_is_refused(stage: Stage) -> None:
    """The scale subresource passes no webhook: the kinds themselves say how many there can be."""
    await stage.apply(make.pcs("svc").clique("a", **KAI).clique("b", **KAI).group("g", ["b"]).build())
    await stage.runs(2)
    for kind, name in ((PodCliqueSet, "svc"), (PodClique, "svc-0-a"), (PodCliqueScalingGroup, "svc-0-g")):
        with pytest.raises(ApiError, match="100000"):
            await stage.scale(kind, name, MOST)
    await stage.runs(2)


LONG = "t" * 60


def shared(template: Json) -> None:
    """A claim with a long name for all replicas."""
    devices = {"requests": [{"name": "x", "exactly": {"deviceClassName": "c"}}]}
    template["resourceClaimTemplates"] = [{"name": LONG, "templateSpec": {"spec": {"devices": devices}}}]
    template["resourceSharing"] = [{"name": LONG, "scope": "AllReplicas"}]


@played(nodes=14, settings=replace(MNNVL, user="operator"))
async def test_names_at_their_limits_work(stage: Stage) -> None:
    """Names of 45 characters run; claims and domains with longer names than a label's value are made all the same."""
    await stage.apply(make.pcs("s" * 15).clique("c" * 15, **KAI).group("g" * 15, ["c" * 15], 12).build())
    await stage.runs(12)
    sharing = make.pcs("r" * 22).clique("c" * 23, **KAI).build()
    shared(sharing["spec"]["template"])
    await stage.apply(sharing)
    linked = make.pcs("m" * 22).clique("c" * 23, containers=GPU, **KAI).annotate("grove.io/mnnvl-group", "n" * 63)
    await stage.apply(linked.build())
    await stage.settle(20)
    assert [claim.name for claim in await stage.list(ResourceClaim)] == [f"{'r' * 22}-all-{LONG}"]
    assert [domain.name for domain in await stage.list(ComputeDomain)] == [f"{'m' * 22}-0-{'n' * 63}"]
    for name in ("r", "m"):
        assert not (await stage.pcs(name * 22)).status.last_errors
        assert len(await stage.pods(f"{name * 22}-0-{'c' * 23}")) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.update(priorityClassName="nope"), "no PriorityClass with name nope"),
        (lambda t: t["cliques"][0]["spec"]["podSpec"].update(serviceAccountName="nobody"), "nobody"),
    ],
    ids=["priority class", "account"],
)
@played(nodes=3)
async def test_pods_that_are_refused_are_told_once(
    stage: VirtualStage, change: Callable[[Json], Any], words: str
) -> None:
    """A pod that the API server refuses stands in lastErrors and in one event; each further attempt is silent."""
    built = svc(change)
    built["spec"]["template"]["cliques"][0]["spec"]["replicas"] = 3
    await stage.apply(built)
    await stage.settle(60)
    (error,) = (await stage.pcs("svc")).status.last_errors
    assert words in error.description
    await stage.no_writes_at_rest()


@played(nodes=1)
async def test_labels_of_a_template_cannot_lead_astray(stage: Stage) -> None:
    """A template that claims the operator's own labels gets them as the operator means them."""
    ours = {"grove.io/podclique": "evil", "app.kubernetes.io/part-of": "evil", "grove.io/podgang": "evil"}
    built = svc(lambda t: t["cliques"][0].update(labels=ours))
    built["metadata"]["labels"] = {**ours, "grove.io/podcliqueset-replica-index": "7"}
    await stage.apply(built)
    await stage.runs(1)
    (pod,) = await stage.pods()
    labelled = {key: pod.metadata.labels[key] for key in ours}
    assert list(labelled.values()) == ["svc-0-a", "svc", "svc-0"]

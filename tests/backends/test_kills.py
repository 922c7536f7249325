"""A backend that is killed at any write, before or after it reached the server, converges when it runs again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from spinney.api.grove import ClusterTopologyBinding, PodClique, PodCliqueSet
from spinney.api.labels import ALLOW_DOWNGRADE
from spinney.api.meta import Json
from spinney.embedded.cluster import Cluster
from spinney.kube.client.client import Client
from tests import make
from tests.backends.kills import BINDING, Scheduler, Step, full, killed_everywhere
from tests.backends.yunikorn import YuniKornStandIn

SCHEDULERS = {
    "default": "",
    "kai": "kai-scheduler",
    "koordinator": "koord-scheduler",
    "volcano": "volcano",
    "yunikorn": "yunikorn",
}
QUEUES = ("kai.scheduler/queue", "scheduling.grove.io/volcano-queue", "quota.scheduling.koordinator.sh/name")
RELABELLED = [{"domain": "block", "key": "example.com/row"}, {"domain": "rack", "key": "example.com/rack"}]

Act = Callable[[Client, str], Awaitable[None]]


@pytest.fixture(autouse=True)
def _killed_means_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is killed finishes nothing."""
    monkeypatch.setattr("spinney.kube.controllers.controller._GRACE_SECONDS", 0.0)


def training(backend: str, namespace: str, replicas: int = 1) -> make.SetBuilder:
    """One master, three workers of which two must run."""
    spec = {"schedulerName": SCHEDULERS[backend]} if SCHEDULERS[backend] else {}
    return make.pcs("train", namespace, replicas).clique("master", 1, **spec).clique("workers", 3, 2, **spec)


def packed(backend: str, namespace: str) -> make.SetBuilder:
    """The same, in one block and by preference in one rack: no kube-scheduler and no YuniKorn can say that."""
    builder = training(backend, namespace)
    pack = {"required": "block", "preferred": "rack"}
    builder.object["spec"]["template"]["topologyConstraint"] = {"topologyName": "grove-topology", "pack": pack}
    return builder


def patched(patch: Json) -> Act:
    """A merge patch of the set."""

    async def act(client: Client, namespace: str) -> None:
        await client.patch(PodCliqueSet, (namespace, "train"), patch)

    return act


def created(backend: str) -> Act:
    """The set appears."""

    async def act(client: Client, namespace: str) -> None:
        await client.create(PodCliqueSet, training(backend, namespace).build(), namespace)

    return act


async def scale_workers(client: Client, namespace: str) -> None:
    """One more worker, by the clique's own scale."""
    await client.patch(
        PodClique.resource, (namespace, "train-0-workers"), {"spec": {"replicas": 4}}, subresource="scale"
    )


async def relabel(client: Client, namespace: str) -> None:
    """The broadest level of the topology is found by another node label from now on."""
    await client.patch(ClusterTopologyBinding, BINDING["metadata"]["name"], {"spec": {"levels": RELABELLED}})


async def new_image(client: Client, namespace: str) -> None:
    """A new revision: the replica is updated pod by pod."""
    stored = await client.get(PodCliqueSet.resource, (namespace, "train"))
    cliques = stored["spec"]["template"]["cliques"]
    for clique in cliques:
        clique["spec"]["podSpec"]["containers"][0]["image"] = "busybox:2"
    await client.patch(PodCliqueSet, (namespace, "train"), {"spec": {"template": {"cliques": cliques}}})


async def delete(client: Client, namespace: str) -> None:
    """The set goes."""
    await client.delete(PodCliqueSet, (namespace, "train"))


def steps(backend: str) -> dict[str, Step]:
    """What users do, by name."""
    allowed = {"metadata": {"annotations": {ALLOW_DOWNGRADE: "true"}}}
    queue = {"metadata": {"annotations": dict.fromkeys(QUEUES, "team-a")}}
    return {
        "created": Step(None, created(backend)),
        "scaled out": Step(lambda namespace: training(backend, namespace), patched({"spec": {"replicas": 2}})),
        "scaled in": Step(lambda namespace: training(backend, namespace, 2), patched({"spec": {"replicas": 1}})),
        "clique scaled": Step(lambda namespace: training(backend, namespace), scale_workers),
        "updated": Step(lambda namespace: training(backend, namespace), new_image, settle=300.0),
        "moved to a queue": Step(lambda namespace: training(backend, namespace), patched(queue)),
        "relabelled": Step(lambda namespace: packed(backend, namespace).annotate(ALLOW_DOWNGRADE, "true"), relabel),
        "downgrade allowed": Step(lambda namespace: packed(backend, namespace), patched(allowed)),
        "deleted": Step(lambda namespace: training(backend, namespace), delete),
    }


CASES = [
    *((backend, change) for backend in SCHEDULERS for change in steps(backend)),
    *((f"default {release}", change) for release in ("1.36", "1.37") for change in ("created", "relabelled")),
]


@pytest.mark.parametrize(("backend", "change"), CASES)
def test_killed_at_any_write_of_a_change_it_ends_up_the_same(backend: str, change: str) -> None:
    """Cut before each write arrives and after: no duplicate, nothing left behind, every gang told the same."""
    killed_everywhere(backend, steps(backend.partition(" ")[0])[change])


def in_vain(scheduler: str) -> Act:
    """A set of two pods appears for which there is no room."""

    async def act(client: Client, namespace: str) -> None:
        pcs = make.pcs("train", namespace).clique("workers", 2, schedulerName=scheduler)
        await client.create(PodCliqueSet, pcs.build(), namespace)

    return act


def test_a_gang_that_is_never_bound_is_made_anew_three_times_and_no_more() -> None:
    """Released, given up after five minutes, recreated gated, backed off: kube-scheduler 1.35 in vain."""
    step = Step(None, in_vain("default-scheduler"), settle=1800.0)
    picture = killed_everywhere("default", step, full, most=11)
    assert picture["times released"] == 3
    assert picture["gangs"][0]["conditions"]["BackendReady"] == ["False", "NeverBound"]


def test_an_attempt_that_yunikorn_gave_up_is_counted_once() -> None:
    """Cut between the new attempt and the last pod of the old one, the next backend goes on where it stopped."""

    def once_in_vain(cluster: Cluster) -> Scheduler:
        return YuniKornStandIn(cluster.client(), cluster.clock, refusals=1)

    picture = killed_everywhere("yunikorn", Step(None, in_vain("yunikorn"), settle=1000.0), once_in_vain)
    assert picture["gangs"][0]["annotations"]["grove.io/scheduling-attempt"] == "2"
    assert [pod[-1] for pod in picture["pods"]] == ["train-0-UID8-train-0-2"] * 2

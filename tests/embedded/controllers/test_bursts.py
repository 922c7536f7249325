"""However many pods a workload asks for, its controller creates a bounded number at a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spinney.api.apps import ReplicaSet, StatefulSet
from spinney.api.batch import Job
from spinney.api.meta import Json, convert
from spinney.embedded.cluster import Cluster
from spinney.embedded.controllers.jobs import indexes
from spinney.embedded.controllers.jobs.job_plan import plan_job
from spinney.embedded.controllers.sets.replicaset import plan_replicaset
from spinney.embedded.controllers.sets.statefulset_plan import plan_statefulset
from spinney.embedded.controllers.writes import BURST, slow_start
from tests.embedded.virtual import after, on_cluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOST = 2**31 - 1
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR: Json = {"matchLabels": {"a": "b"}}


def body(**spec: object) -> Json:
    """A workload that asks for a lot."""
    return {"metadata": {"name": "w", "namespace": "default", "uid": "u"}, "spec": {"template": TEMPLATE, **spec}}


def test_a_replica_set_of_two_billion() -> None:
    """It once filled the memory before its first pod was created."""
    owner = convert(ReplicaSet, body(replicas=MOST, selector=SELECTOR))
    assert len(plan_replicaset(owner, [], [], NOW).create) == BURST


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_stateful_set_of_two_billion(policy: str) -> None:
    """Its pods are created in order, a burst at a time at most."""
    owner = convert(StatefulSet, body(replicas=MOST, selector=SELECTOR, podManagementPolicy=policy, serviceName="s"))
    assert len(plan_statefulset(owner, [], {}, NOW).create) == (BURST if policy == "Parallel" else 1)


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_a_job_of_two_billion(mode: str) -> None:
    """Neither its parallelism nor its completions are counted out."""
    job = convert(Job, body(parallelism=MOST, completions=MOST, completionMode=mode, backoffLimit=6))
    assert len(plan_job(job, [], NOW).create) == BURST


def test_indexes_of_two_billion() -> None:
    """A range in a success policy or a status is not spelled out."""
    policy = {"rules": [{"succeededIndexes": f"0-{MOST}", "succeededCount": 2}]}
    job = convert(Job, body(parallelism=1, completions=MOST, completionMode="Indexed", successPolicy=policy))
    assert indexes.success(job, {1}) is None
    assert indexes.success(job, {1, 2}) is not None
    assert len(indexes.parse(f"0-{MOST}")) == 1_000_000


async def test_a_refusal_ends_the_burst() -> None:
    """Of five hundred pods that are all refused, one is tried."""
    tried: list[int] = []

    async def create(number: int) -> None:
        tried.append(number)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await slow_start(create, range(BURST))
    assert tried == [0]


@on_cluster()
async def test_more_replicas_than_a_burst(cluster: Cluster) -> None:
    """Burst after burst, all of them are created."""
    client = cluster.client()
    wanted = body(replicas=BURST + 7, selector=SELECTOR)
    await client.create(ReplicaSet, {**wanted, "metadata": {"name": "w"}}, "default")
    await after(1)
    assert (await client.get(ReplicaSet, ("default", "w"))).status.replicas == BURST + 7

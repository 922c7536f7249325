"""What ReplicaSets, Deployments and budgets need next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from spinney.api.apps import Deployment, ReplicaSet
from spinney.api.core import Pod
from spinney.api.meta import Json, convert
from spinney.api.policy import PodDisruptionBudget
from spinney.embedded.controllers.pods.disruption_budgets import plan_budget
from spinney.embedded.controllers.pods.replicas import least_wanted_first
from spinney.embedded.controllers.sets.deployment_plan import HASH, plan_deployment
from spinney.embedded.controllers.sets.replicaset import plan_replicaset
from tests import make

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEMPLATE: Json = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "one"}]}}


def pod(name: str, *, ready: bool = True, node: str = "node-1", created: str = "11:00", **metadata: Any) -> Pod:
    """A pod that runs."""
    at = f"2026-01-01T{created}:00Z"
    built = make.pod(name).label("app", "web").on(node)
    built.metadata(**{"uid": f"uid-{name}", "creationTimestamp": at, **metadata})
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": at}
    return built.status(phase="Running", conditions=[condition]).typed(Pod)


def replicaset(replicas: int, **status: Any) -> ReplicaSet:
    """A ReplicaSet of the template."""
    selector = {"matchLabels": {"app": "web"}}
    return convert(
        ReplicaSet,
        {
            "metadata": {"name": "web", "namespace": "default", "uid": "rs", "generation": 1},
            "spec": {"replicas": replicas, "selector": selector, "template": TEMPLATE},
            "status": status,
        },
    )


def test_missing_pods_are_made_from_the_template() -> None:
    """With the template's labels and spec, a generated name and a controlling owner."""
    plan = plan_replicaset(replicaset(2), [pod("a")], [], NOW)

    (made,) = plan.create
    assert made["metadata"]["generateName"] == "web-"
    assert made["metadata"]["labels"] == {"app": "web"}
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert made["spec"] == TEMPLATE["spec"]


def test_surplus_goes_in_kubernetes_order() -> None:
    """Unbound first, then unready, then the youngest; a cheap pod goes before a dear one."""
    old, young = pod("old", created="10:00"), pod("young", created="11:59", node="node-2")
    unready, unbound = pod("unready", ready=False, node="node-3"), pod("unbound", node="")
    assert [p.name for p in least_wanted_first([old, unbound, young, unready])] == [
        "unbound",
        "unready",
        "young",
        "old",
    ]
    cheap = pod("cheap", created="10:00", annotations={"controller.kubernetes.io/pod-deletion-cost": "-1"})
    assert least_wanted_first([young, cheap])[0].name == "cheap"


def test_orphans_that_match_are_adopted_and_count() -> None:
    """A pod that nobody controls becomes the set's own instead of a new one."""
    plan = plan_replicaset(replicaset(1), [], [pod("stray")], NOW)
    assert ([p.name for p in plan.adopt], plan.create) == (["stray"], [])


def test_a_pod_counts_as_available_after_its_time() -> None:
    """minReadySeconds from when it became ready; the plan asks to be looked at then."""
    owner = convert(ReplicaSet, {"spec": {"replicas": 1, "minReadySeconds": 90}, "metadata": {"uid": "rs"}})
    plan = plan_replicaset(owner, [pod("a", created="11:59")], [], NOW)
    assert plan.wake == 30
    assert "availableReplicas" not in plan.status


def deployment(replicas: int, image: str = "one", **spec: Any) -> Deployment:
    """A Deployment with an image."""
    template = {**TEMPLATE, "spec": {"containers": [{"name": "main", "image": image}]}}
    return convert(
        Deployment,
        {
            "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 1},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
        },
    )


def owned(name: str, image: str, replicas: int, available: int | None = None, revision: int = 1) -> ReplicaSet:
    """A ReplicaSet of a Deployment."""
    labels = {"app": "web", HASH: name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    up = replicas if available is None else available
    return convert(
        ReplicaSet,
        {
            "metadata": {
                "name": f"web-{name}",
                "uid": name,
                "creationTimestamp": f"2026-01-0{revision}T00:00:00Z",
                "annotations": {"deployment.kubernetes.io/revision": str(revision)},
            },
            "spec": {"replicas": replicas, "template": template},
            "status": {"replicas": replicas, "readyReplicas": up, "availableReplicas": up},
        },
    )


def sizes(deployed: Deployment, *sets: ReplicaSet) -> dict[str, int]:
    """The size that each ReplicaSet is to have."""
    plan = plan_deployment(deployed, list(sets), NOW)
    return {replica_set.name: size for replica_set, size in plan.scale if size != replica_set.spec.replicas}


def test_a_new_deployment_makes_one_replicaset() -> None:
    """Its name, label and selector carry the template's hash."""
    plan = plan_deployment(deployment(3), [], NOW)

    assert plan.create is not None
    name = plan.create["metadata"]["labels"][HASH]
    assert plan.create["metadata"]["name"] == f"web-{name}"
    assert plan.create["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: name}
    assert plan.create["spec"]["replicas"] == 3
    assert plan.revision == 1


def test_a_change_of_size_goes_to_the_one_replicaset() -> None:
    """No new ReplicaSet for the same template."""
    assert sizes(deployment(5), owned("a", "one", 3)) == {"web-a": 5}
    assert sizes(deployment(1), owned("a", "one", 3)) == {"web-a": 1}


def test_an_update_starts_with_the_surge() -> None:
    """Of 4 at 25 %: one more than wanted, and none less yet."""
    plan = plan_deployment(deployment(4, "two"), [owned("a", "one", 4)], NOW)
    assert plan.create is not None
    assert (plan.create["spec"]["replicas"], plan.scale, plan.revision) == (1, [], 2)


def test_an_update_goes_on_as_new_pods_become_available() -> None:
    """Old ones go only as far as availability allows."""
    old, new = owned("a", "one", 4), owned("b", "two", 1, available=0, revision=2)
    assert sizes(deployment(4, "two"), old, new) == {"web-a": 3}
    new = owned("b", "two", 1, revision=2)
    assert sizes(deployment(4, "two"), old, new) == {"web-a": 2}


def test_recreate_waits_until_all_old_pods_are_gone() -> None:
    """First down to nothing, then up."""
    strategy = {"type": "Recreate"}
    old = owned("a", "one", 2)
    assert sizes(deployment(2, "two", strategy=strategy), old) == {"web-a": 0}
    gone = owned("a", "one", 0)
    assert plan_deployment(deployment(2, "two", strategy=strategy), [gone], NOW).create is not None


def test_history_is_kept_within_its_limit() -> None:
    """The oldest empty ReplicaSets go once the update is through."""
    sets = [owned("c", "three", 2, revision=3), owned("a", "one", 0), owned("b", "two", 0, revision=2)]
    plan = plan_deployment(deployment(2, "three", revisionHistoryLimit=1), sets, NOW)
    assert [replica_set.name for replica_set in plan.delete] == ["web-a"]


def test_a_finished_update_says_so() -> None:
    """Available and progressed, in kube-controller-manager's words."""
    plan = plan_deployment(deployment(2), [owned("a", "one", 2)], NOW)
    assert {c["type"]: c["reason"] for c in plan.status["conditions"]} == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "NewReplicaSetAvailable",
    }


@pytest.mark.parametrize(
    ("spec", "allowed", "desired"),
    [
        ({"minAvailable": 2}, 1, 2),
        ({"maxUnavailable": 1}, 1, 2),
        ({"minAvailable": "50%"}, 1, 2),
        ({"maxUnavailable": "34%"}, 2, 1),
        ({"minAvailable": 3}, 0, 3),
    ],
)
def test_a_budget_allows_what_is_above_its_minimum(spec: Json, allowed: int, desired: int) -> None:
    """Of three healthy pods."""
    budget = convert(PodDisruptionBudget, {"metadata": {"generation": 1}, "spec": spec})
    status, _ = plan_budget(budget, [pod("a"), pod("b"), pod("c")], 3, NOW)
    assert (status.get("disruptionsAllowed", 0), status["desiredHealthy"]) == (allowed, desired)


def test_a_pod_that_was_just_evicted_does_not_count() -> None:
    """Until its deletion is seen, or two minutes have passed."""
    seen = {"disruptedPods": {"a": "2026-01-01T11:59:00Z"}}
    budget = convert(PodDisruptionBudget, {"spec": {"minAvailable": 1}, "status": seen})
    status, wake = plan_budget(budget, [pod("a"), pod("b")], 2, NOW)
    assert (status["currentHealthy"], wake) == (1, 60)

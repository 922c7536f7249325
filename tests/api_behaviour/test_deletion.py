"""Deletion: finalizers, grace, preconditions, the three ways to treat dependants, namespaces."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Answer, Api, Json
from tests.worlds import Cluster


def options(**values: object) -> Json:
    """DeleteOptions."""
    return {"kind": "DeleteOptions", "apiVersion": "v1", **values}


def owned(name: str, owner: Json, **reference: object) -> Json:
    """A ConfigMap that belongs to another."""
    wanted = make.config_map(name)
    wanted["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        | reference
    ]
    return wanted


def gone(answer: Answer) -> bool:
    """Whether the object is not there any more."""
    return answer.code == 404


async def test_delete(api: Api, namespace: str) -> None:
    """A deletion answers with a Status that names the object and its UID; then it is gone."""
    made = (await api.post(maps(namespace), make.config_map("a"))).ok()
    answer = await api.delete(f"{maps(namespace)}/a")
    body = answer.ok()
    assert (answer.code, body["kind"], body["status"]) == (200, "Status", "Success")
    assert body["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (await api.get(f"{maps(namespace)}/a")).code == 404


async def test_delete_pod_answers_with_it(api: Api, namespace: str) -> None:
    """A pod's deletion answers with the pod."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).build())
    body = (await api.delete(f"{path}/a")).ok()
    assert (body["kind"], body["metadata"]["name"]) == ("Pod", "a")


async def test_finalizer(api: Api, namespace: str) -> None:
    """With a finalizer an object is only marked; it goes when the last finalizer is taken off."""
    wanted = make.config_map("a")
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(maps(namespace), wanted)
    answer = await api.delete(f"{maps(namespace)}/a")
    assert answer.ok()["kind"] == "ConfigMap"
    marked = (await api.get(f"{maps(namespace)}/a")).ok()["metadata"]
    assert marked["deletionTimestamp"]
    assert marked["deletionGracePeriodSeconds"] == 0
    again = (await api.delete(f"{maps(namespace)}/a")).ok()
    assert again["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]
    last = await api.merge(f"{maps(namespace)}/a", {"metadata": {"finalizers": None}})
    assert last.code == 200
    assert (await api.get(f"{maps(namespace)}/a")).code == 404


async def test_no_new_finalizers(api: Api, namespace: str) -> None:
    """An object that is being deleted takes no new finalizers."""
    wanted = make.config_map("a")
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(maps(namespace), wanted)
    await api.delete(f"{maps(namespace)}/a")
    answer = await api.merge(
        f"{maps(namespace)}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    )
    body = answer.refused(422, "Invalid")
    assert {cause["field"] for cause in body["details"]["causes"]} == {"metadata.finalizers"}


async def test_deletion_timestamp_is_the_servers(api: Api, namespace: str) -> None:
    """Nobody can set or take back a deletion by writing it."""
    wanted = make.config_map("a")
    wanted["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert "deletionTimestamp" not in (await api.post(maps(namespace), wanted)).ok()["metadata"]


@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
async def test_precondition_holds(api: Api, namespace: str, key: str) -> None:
    """A deletion whose precondition holds goes through."""
    made = (await api.post(maps(namespace), make.config_map("a"))).ok()
    answer = await api.delete(f"{maps(namespace)}/a", options(preconditions={key: made["metadata"][key]}))
    assert answer.code == 200


async def test_pod_without_node(api: Api, namespace: str) -> None:
    """A pod that is on no node goes at once."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).build())
    await api.delete(f"{path}/a")
    assert (await api.get(f"{path}/a")).code == 404


async def test_pod_grace(api: Api, namespace: str) -> None:
    """A pod on a node is marked, with its grace period, and stays until its kubelet deletes it with none."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).on("n").build())
    body = (await api.delete(f"{path}/a")).ok()
    assert body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert body["metadata"]["deletionTimestamp"]
    assert body["metadata"]["generation"] == 2
    shorter = (await api.delete(f"{path}/a", options(gracePeriodSeconds=5))).ok()
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = (await api.delete(f"{path}/a", options(gracePeriodSeconds=50))).ok()
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.delete(f"{path}/a", options(gracePeriodSeconds=0))
    assert (await api.get(f"{path}/a")).code == 404


async def test_grace_of_the_spec(api: Api, namespace: str) -> None:
    """The pod's own grace period holds where the deletion names none; the query can name one too."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("a", "b"):
        wanted = make.pod(name, namespace).on("n").build()
        wanted["spec"]["terminationGracePeriodSeconds"] = 7
        await api.post(path, wanted)
    assert (await api.delete(f"{path}/a")).ok()["metadata"]["deletionGracePeriodSeconds"] == 7
    body = (await api.delete(f"{path}/b", gracePeriodSeconds=3)).ok()
    assert body["metadata"]["deletionGracePeriodSeconds"] == 3


async def test_finished_pod(api: Api, namespace: str) -> None:
    """A pod that has ended needs no grace."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).on("n").build())
    (await api.merge(f"{path}/a/status", {"status": {"phase": "Succeeded"}})).ok()
    await api.delete(f"{path}/a")
    assert (await api.get(f"{path}/a")).code == 404


async def test_background(api: Api, namespace: str) -> None:
    """By default the owner goes at once and its dependants follow."""
    owner = (await api.post(maps(namespace), make.config_map("owner"))).ok()
    await api.post(maps(namespace), owned("child", owner))
    await api.delete(f"{maps(namespace)}/owner")
    assert (await api.get(f"{maps(namespace)}/owner")).code == 404
    await api.until(f"{maps(namespace)}/child", gone)


async def test_chain(api: Api, namespace: str) -> None:
    """Dependants of dependants go too."""
    owner = (await api.post(maps(namespace), make.config_map("owner"))).ok()
    child = (await api.post(maps(namespace), owned("child", owner))).ok()
    await api.post(maps(namespace), owned("grandchild", child))
    await api.delete(f"{maps(namespace)}/owner", options(propagationPolicy="Background"))
    await api.until(f"{maps(namespace)}/grandchild", gone)


async def test_an_owner_of_an_unknown_kind_may_be_there(api: Api, namespace: str) -> None:
    """What belongs to an object that is not there goes; where its kind is not served, nobody can tell."""
    owner = {"metadata": {"name": "owner", "uid": "9b5ac1a4-0b6c-4d92-8c14-4a39a1f2f2d5"}}
    unknown = {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}
    await api.post(maps(namespace), owned("kept", owner, **unknown))
    await api.post(maps(namespace), owned("goes", owner))
    await api.until(f"{maps(namespace)}/goes", gone)
    assert (await api.get(f"{maps(namespace)}/kept")).code == 200


async def test_foreground(api: Api, namespace: str) -> None:
    """In the foreground the owner waits for the dependants that block it."""
    owner = (await api.post(maps(namespace), make.config_map("owner"))).ok()
    child = owned("child", owner, blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(maps(namespace), child)
    body = (await api.delete(f"{maps(namespace)}/owner", options(propagationPolicy="Foreground"))).ok()
    assert body["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert body["metadata"]["deletionTimestamp"]
    await api.until(f"{maps(namespace)}/child", lambda answer: "deletionTimestamp" in answer.ok()["metadata"])
    assert (await api.get(f"{maps(namespace)}/owner")).code == 200
    await api.merge(f"{maps(namespace)}/child", {"metadata": {"finalizers": None}})
    await api.until(f"{maps(namespace)}/owner", gone)


async def test_orphan(api: Api, namespace: str) -> None:
    """Orphaned dependants stay and lose the reference."""
    owner = (await api.post(maps(namespace), make.config_map("owner"))).ok()
    await api.post(maps(namespace), owned("child", owner))
    body = (await api.delete(f"{maps(namespace)}/owner", options(propagationPolicy="Orphan"))).ok()
    assert body["metadata"]["finalizers"] == ["orphan"]
    await api.until(f"{maps(namespace)}/owner", gone)
    assert "ownerReferences" not in (await api.get(f"{maps(namespace)}/child")).ok()["metadata"]


async def test_policy_by_query(api: Api, namespace: str) -> None:
    """The policy may come in the query as well."""
    await api.post(maps(namespace), make.config_map("a"))
    body = (await api.delete(f"{maps(namespace)}/a", propagationPolicy="Orphan")).ok()
    assert body["metadata"]["finalizers"] == ["orphan"]


async def test_two_owners(api: Api, namespace: str) -> None:
    """A dependant of two owners stays while one of them is there."""
    first = (await api.post(maps(namespace), make.config_map("first"))).ok()
    second = (await api.post(maps(namespace), make.config_map("second"))).ok()
    child = owned("child", first)
    child["metadata"]["ownerReferences"] += owned("child", second)["metadata"]["ownerReferences"]
    await api.post(maps(namespace), child)
    await api.delete(f"{maps(namespace)}/first", options(propagationPolicy="Background"))
    left = await api.until(
        f"{maps(namespace)}/child", lambda answer: len(answer.ok()["metadata"]["ownerReferences"]) == 1
    )
    assert left.ok()["metadata"]["ownerReferences"][0]["name"] == "second"
    await api.delete(f"{maps(namespace)}/second")
    await api.until(f"{maps(namespace)}/child", gone)


async def test_owner_that_never_was(api: Api, namespace: str) -> None:
    """An object whose owner is not there is collected."""
    ghost = {"metadata": {"name": "ghost", "uid": "11111111-2222-4333-8444-555555555555"}}
    await api.post(maps(namespace), owned("child", ghost))
    await api.until(f"{maps(namespace)}/child", gone)


async def test_owner_of_another_uid(api: Api, namespace: str) -> None:
    """A new object of the owner's name is not the owner."""
    await api.post(maps(namespace), make.config_map("owner"))
    impostor = {"metadata": {"name": "owner", "uid": "11111111-2222-4333-8444-555555555555"}}
    await api.post(maps(namespace), owned("child", impostor))
    await api.until(f"{maps(namespace)}/child", gone)


async def test_namespace(api: Api, namespace: str) -> None:
    """A namespace is Active with its finalizer and a label of its name."""
    body = (await api.get(f"/api/v1/namespaces/{namespace}")).ok()
    assert body["spec"] == {"finalizers": ["kubernetes"]}
    assert body["status"] == {"phase": "Active"}
    assert body["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}


async def test_namespace_deletion(api: Api, namespace: str) -> None:
    """A namespace terminates, takes its objects along, and is gone at the end."""
    await api.post(maps(namespace), make.config_map("a"))
    body = (await api.delete(f"/api/v1/namespaces/{namespace}")).ok()
    assert (body["kind"], body["status"]["phase"]) == ("Namespace", "Terminating")
    await api.until(f"/api/v1/namespaces/{namespace}", gone)
    assert (await api.get(f"{maps(namespace)}/a")).code == 404


async def test_namespace_that_terminates(api: Api, namespace: str) -> None:
    """In a namespace that terminates nothing new can be made, and it waits for finalizers inside."""
    wanted = make.config_map("a")
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(maps(namespace), wanted)
    await api.delete(f"/api/v1/namespaces/{namespace}")
    answer = await api.post(maps(namespace), make.config_map("b"))
    body = answer.refused(
        403,
        "Forbidden",
        f'configmaps "b" is forbidden: unable to create new content in namespace {namespace} '
        "because it is being terminated",
    )
    assert body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    await api.until(f"{maps(namespace)}/a", lambda answer: "deletionTimestamp" in answer.ok()["metadata"])
    await api.merge(f"{maps(namespace)}/a", {"metadata": {"finalizers": None}})
    await api.until(f"/api/v1/namespaces/{namespace}", gone)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_namespaces_that_stay(api: Api, name: str) -> None:
    """The first namespaces cannot be deleted."""
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    answer.refused(403, "Forbidden", f'namespaces "{name}" is forbidden: this namespace may not be deleted')


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
async def test_first_namespaces(api: Api, name: str) -> None:
    """A new cluster has four namespaces."""
    assert (await api.get(f"/api/v1/namespaces/{name}")).code == 200


async def test_service_account_of_a_namespace(api: Api, namespace: str) -> None:
    """Every namespace gets a default service account and the cluster's root certificate."""
    await api.until(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", lambda answer: answer.code == 200)
    answer = await api.until(f"{maps(namespace)}/kube-root-ca.crt", lambda answer: answer.code == 200)
    assert answer.ok()["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


async def test_answer_is_unmarked(api: Api, namespace: str) -> None:
    """What goes at once was never being deleted: neither the answer nor the event has a mark."""
    path = f"/api/v1/namespaces/{namespace}/services"
    (await api.post(path, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})).ok()
    start = (await api.get(path)).ok()["metadata"]["resourceVersion"]
    async with api.watch(path, resourceVersion=start) as watch:
        body = (await api.delete(f"{path}/a")).ok()
        event = await watch.next()
    assert event["type"] == "DELETED"
    for service in (body, event["object"]):
        assert (service["kind"], service["metadata"]["name"]) == ("Service", "a")
        assert "deletionTimestamp" not in service["metadata"]


async def test_tried_deletion_shows_the_mark(api: Api, namespace: str) -> None:
    """A tried deletion answers with the object as it would be marked."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(path, make.pod("a", namespace).on("n").build())
    tried = (await api.delete(f"{path}/a", dryRun="All")).ok()["metadata"]
    assert (tried["deletionGracePeriodSeconds"], tried["generation"]) == (30, 2)
    assert "deletionTimestamp" not in (await api.get(f"{path}/a")).ok()["metadata"]


@pytest.mark.parametrize("query", [{}, {"propagationPolicy": "Background"}])
async def test_job_warning(api: Api, namespace: str, query: dict[str, str]) -> None:
    """Whoever deletes a job and says nothing about its pods is warned that they stay."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}}
    (await api.post(path, {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template}})).ok()
    answer = await api.delete(f"{path}/a", dryRun="All", **query)
    assert bool(answer.warnings) is not bool(query)
    assert not answer.warnings or answer.warnings.startswith('299 - "child pods are preserved by default when jobs are')


async def test_a_namespace_says_what_it_waits_for(api: Api, cluster: Cluster) -> None:
    """A namespace that cannot go yet tells how many objects are left, and which finalizers hold them."""
    namespace = await cluster.namespace()
    path = f"/api/v1/namespaces/{namespace}"
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    (await api.post(f"{path}/configmaps", held)).ok()
    (await api.delete(path)).ok()
    left = "Some resources are remaining: configmaps. has 1 resource instances"
    answer = await api.until(path, lambda answer: _told(answer).get("NamespaceContentRemaining", "") == left)
    assert _told(answer)["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    await api.merge(f"{path}/configmaps/held", {"metadata": {"finalizers": None}})
    await api.until(path, lambda answer: answer.code == 404)


def _told(answer: Answer) -> dict[str, str]:
    """What the conditions of a namespace say."""
    return {each["type"]: each["message"] for each in answer.body["status"].get("conditions") or ()}


async def test_an_owner_counts_once(api: Api, namespace: str) -> None:
    """An owner that is named twice is kept once, with a warning."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-1111-1111-1111-111111111111"}
    answer = await api.post(maps, {"metadata": {"name": "a", "ownerReferences": [owner, owner]}}, dryRun="All")
    assert answer.ok()["metadata"]["ownerReferences"] == [owner]
    assert owner["uid"] in answer.warnings


async def test_an_orphan_forgets_who_gave_it_its_owner(api: Api, namespace: str) -> None:
    """With its owner, an orphan loses what its author owned of that reference."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    uid = (await api.post(maps, {"metadata": {"name": "owner"}})).ok()["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    (await api.post(maps, {"metadata": {"name": "orphan", "ownerReferences": [owner]}})).ok()
    (await api.delete(f"{maps}/owner", {"propagationPolicy": "Orphan"})).ok()
    answer = await api.until(f"{maps}/orphan", lambda answer: "ownerReferences" not in answer.body["metadata"])
    assert "managedFields" not in answer.body["metadata"]


async def test_options_of_the_body_replace_those_of_the_query(api: Api, namespace: str) -> None:
    """Where a deletion has a body, its query does not count."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    (await api.post(path, {"metadata": {"name": "a"}})).ok()
    (await api.delete(f"{path}/a", dryRun="All")).ok()
    (await api.get(f"{path}/a")).ok()
    (await api.delete(f"{path}/a", {"propagationPolicy": "Background"}, dryRun="All")).ok()
    (await api.get(f"{path}/a")).refused(404, "NotFound")


async def test_language_of_options(api: Api, namespace: str) -> None:
    """Options in a language that is not spoken are refused."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    answer = await api.call("DELETE", path, {"dryRun": ["All"]}, "text/plain")
    answer.refused(415, "UnsupportedMediaType")

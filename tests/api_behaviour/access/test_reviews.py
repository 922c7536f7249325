"""Reviews: who one is, and what one or another may do."""

from __future__ import annotations

import pytest

from tests.api_behaviour.access.roles import REVIEWS, allowed, grant, rule, user
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster


async def test_who_am_i(cluster: Cluster) -> None:
    """A client certificate says name and groups; every user is authenticated."""
    ann = Api(cluster.transport("ann", ("dev", "ops")))
    body = (await ann.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).ok()
    info = body["status"]["userInfo"]
    assert (info["username"], sorted(info["groups"])) == ("ann", ["dev", "ops", "system:authenticated"])


ATTRIBUTES: dict[str, tuple[Json, bool]] = {
    "granted": ({"verb": "get", "resource": "configmaps"}, True),
    "other-verb": ({"verb": "delete", "resource": "configmaps"}, False),
    "other-resource": ({"verb": "get", "resource": "secrets"}, False),
    "subresource": ({"verb": "get", "resource": "configmaps", "subresource": "x"}, False),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
async def test_subject_access_review(api: Api, cluster: Cluster, namespace: str, case: str) -> None:
    """A review says whether somebody may do something, and by which binding."""
    attributes, expected = ATTRIBUTES[case]
    await grant(api, namespace, user("ann"), rule("get"))
    await allowed(Api(cluster.transport("ann")), f"{maps(namespace)}/a")
    spec = {"user": "ann", "resourceAttributes": {"namespace": namespace, **attributes}}
    answer = await api.post(f"{REVIEWS}/subjectaccessreviews", {"spec": spec})
    status = answer.ok()["status"]
    assert (answer.code, status["allowed"]) == (201, expected)
    if expected:
        assert status["reason"] == f'RBAC: allowed by RoleBinding "r-ann/{namespace}" of Role "r-ann" to User "ann"'


async def test_self_access_review(cluster: Cluster, namespace: str) -> None:
    """Everybody may ask about themselves."""
    ann = Api(cluster.transport("ann"))
    spec = {"resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"}}
    assert (await ann.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec})).ok()["status"] == {"allowed": False}
    open_path = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
    assert (await ann.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": open_path})).ok()["status"]["allowed"]


async def test_admin_access_review(api: Api) -> None:
    """A cluster administrator may do everything."""
    spec = {"resourceAttributes": {"verb": "*", "resource": "*", "group": "*"}}
    assert (await api.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec})).ok()["status"]["allowed"]


async def test_local_access_review(api: Api, namespace: str) -> None:
    """A local review is about its namespace."""
    spec = {"user": "ann", "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"}}
    path = f"{REVIEWS}/namespaces/{namespace}/localsubjectaccessreviews"
    assert (await api.post(path, {"metadata": {"namespace": namespace}, "spec": spec})).ok()["status"][
        "allowed"
    ] is False


async def test_rules_review(api: Api, cluster: Cluster, namespace: str) -> None:
    """A rules review lists what one may do in a namespace."""
    await grant(api, namespace, user("ann"), rule("get", "list"))
    ann = Api(cluster.transport("ann"))
    await allowed(ann, maps(namespace))
    body = (await ann.post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}})).ok()
    rules = body["status"]["resourceRules"]
    assert {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]} in rules
    assert body["status"]["incomplete"] is False


async def test_token_review(api: Api, namespace: str) -> None:
    """A token review says whose token it is."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = (await api.post(path, {})).ok()["status"]["token"]
    body = (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})).ok()
    assert body["status"]["authenticated"] is True
    assert body["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:default"
    bad = (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})).ok()
    assert not bad["status"].get("authenticated")

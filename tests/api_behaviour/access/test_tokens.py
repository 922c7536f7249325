"""Tokens of service accounts: whose they are, for whom, and until when."""

from __future__ import annotations

import base64
import json

import pytest

from tests import make
from tests.api_behaviour.access.roles import allowed, grant, rule
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api
from tests.worlds import Cluster


async def test_bad_token(cluster: Cluster) -> None:
    """A token that is not ours is 401."""
    answer = await Api(cluster.token_transport("nonsense")).get("/api/v1/pods")
    answer.refused(401, "Unauthorized", "Unauthorized")


async def test_service_account(api: Api, cluster: Cluster, namespace: str) -> None:
    """A service account has the rights that it was given, by its token."""
    await grant(api, namespace, {"kind": "ServiceAccount", "name": "default", "namespace": namespace}, rule("list"))
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = (await api.post(path, {})).ok()["status"]["token"]
    account = Api(cluster.token_transport(token))
    await allowed(account, maps(namespace))
    assert (await account.get(maps(namespace))).code == 200
    (await account.get("/api/v1/nodes")).refused(
        403,
        "Forbidden",
        f'nodes is forbidden: User "system:serviceaccount:{namespace}:default" cannot list resource "nodes" '
        'in API group "" at the cluster scope',
    )


async def test_token_of_deleted_account(api: Api, cluster: Cluster, namespace: str) -> None:
    """A token ends with its account."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    (await api.post(accounts, {"metadata": {"name": "temp"}})).ok()
    token = (await api.post(f"{accounts}/temp/token", {})).ok()["status"]["token"]
    (await api.delete(f"{accounts}/temp")).ok()

    bearer = Api(cluster.token_transport(token))
    await bearer.until("/api/v1/pods", lambda answer: answer.code == 401)


async def test_token_claims(api: Api, namespace: str) -> None:
    """A token's claims name issuer, audience and account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = (await api.post(path, {"spec": {"audiences": ["mine"], "expirationSeconds": 900}})).ok()["status"]["token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert (claims["aud"], claims["iss"]) == (["mine"], "https://kubernetes.default.svc")
    assert claims["sub"] == f"system:serviceaccount:{namespace}:default"
    assert claims["exp"] - claims["iat"] == 900


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("Pod", 404, 'pods "nope" not found'),
        ("Secret", 404, 'secrets "nope" not found'),
        ("Node", 404, 'nodes "nope" not found'),
        ("ConfigMap", 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
    ],
)
async def test_a_token_is_bound_to_what_is_there(api: Api, namespace: str, kind: str, code: int, message: str) -> None:
    """Tokens are bound to pods, secrets and nodes that exist."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    reference = {"kind": kind, "apiVersion": "v1", "name": "nope"}
    answer = await api.post(path, {"spec": {"boundObjectRef": reference}})
    assert (answer.code, answer.message) == (code, message)


async def test_a_token_was_bound_to_a_pod_of_another_account(api: Api, namespace: str) -> None:
    """A pod vouches for its own account only."""
    (await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "other"}})).ok()
    (await api.post(f"/api/v1/namespaces/{namespace}/pods", make.pod("b", namespace).build())).ok()
    spec = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "b"}}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/other/token", {"spec": spec})
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_a_token_for_somebody_else(api: Api, namespace: str) -> None:
    """A token is good for its audiences only."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = (await api.post(path, {"spec": {}})).ok()["status"]["token"]
    review = {"spec": {"token": token, "audiences": ["other"]}}
    status = (await api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)).ok()["status"]
    assert status["error"]
    assert not status.get("authenticated")


async def test_a_token_of_another_server_lets_nobody_in(api: Api, cluster: Cluster, namespace: str) -> None:
    """A token that was made for another audience is refused by the API server."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = (await api.post(path, {"spec": {"audiences": ["vault.example"]}})).ok()["status"]["token"]
    answer = await Api(cluster.token_transport(token)).get("/api")
    assert (answer.code, answer.message) == (401, "Unauthorized")


@pytest.mark.parametrize("kind", ["Pod", "Secret"])
async def test_a_token_outlived_what_it_was_bound_to(api: Api, cluster: Cluster, namespace: str, kind: str) -> None:
    """A token ends with the pod or secret that it is bound to, and does not come back with the next of that name."""
    plural, body = ("pods", make.pod("b", namespace).build()) if kind == "Pod" else ("secrets", {})
    objects = f"/api/v1/namespaces/{namespace}/{plural}"
    body = {**body, "metadata": {**body.get("metadata", {}), "name": "b"}}
    (await api.post(objects, body)).ok()
    spec = {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "b"}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = (await api.post(path, {"spec": spec})).ok()["status"]["token"]
    bearer = Api(cluster.token_transport(token))
    assert (await bearer.get("/api")).code == 200
    (await api.delete(f"{objects}/b", gracePeriodSeconds=0)).ok()
    (await api.post(objects, body)).ok()
    await bearer.until("/api", lambda answer: answer.code == 401)

"""Service accounts and their tokens on the embedded cluster, in virtual time."""

from __future__ import annotations

import base64

from spinney.api.core import ConfigMap, Namespace, Secret, ServiceAccount
from spinney.api.meta import Json
from spinney.embedded.cluster import Cluster
from tests.embedded.virtual import after, get, on_cluster

TYPE = "kubernetes.io/service-account-token"


def token_secret(account: str) -> Json:
    """A secret that asks for a token."""
    annotations = {"kubernetes.io/service-account.name": account}
    return {"metadata": {"name": "token", "annotations": annotations}, "type": TYPE}


@on_cluster()
async def test_every_namespace_has_an_account_and_the_ca(cluster: Cluster) -> None:
    """Both come with the namespace and come back when deleted."""
    client = cluster.client()
    await client.create(Namespace, {"metadata": {"name": "ml"}})
    await after(1)
    for _ in range(2):
        assert await get(cluster, ServiceAccount.resource, "default", "ml")
        assert "ca.crt" in (await get(cluster, ConfigMap.resource, "kube-root-ca.crt", "ml"))["data"]
        await client.delete(ServiceAccount, ("ml", "default"))
        await client.delete(ConfigMap, ("ml", "kube-root-ca.crt"))
        await after(1)


@on_cluster()
async def test_a_token_secret_is_filled_with_a_token_that_works(cluster: Cluster) -> None:
    """Whoever holds the token is the account; when the account goes, so does the secret."""
    client = cluster.client()
    await client.create(Secret, token_secret("robot"), "default")
    await after(1)
    assert "token" not in (await get(cluster, Secret.resource, "token")).get("data", {})
    await client.create(ServiceAccount, {"metadata": {"name": "robot"}}, "default")
    await after(1)
    data = (await get(cluster, Secret.resource, "token"))["data"]
    assert base64.b64decode(data["namespace"]) == b"default"

    token = base64.b64decode(data["token"]).decode()
    user = cluster.server.authenticator.user_of_token(token)
    assert user.name == "system:serviceaccount:default:robot"

    await client.delete(ServiceAccount, ("default", "robot"))
    await after(1)
    assert await get(cluster, Secret.resource, "token") == {}

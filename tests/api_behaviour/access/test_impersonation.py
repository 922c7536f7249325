"""Acting as somebody else."""

from __future__ import annotations

import pytest

from tests.api_behaviour.access.roles import allowed, grant, rule, user
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api
from tests.worlds import Cluster


async def test_impersonation(api: Api, cluster: Cluster, namespace: str) -> None:
    """An administrator may act as another, with that one's rights only."""
    as_ann = api.with_headers(impersonate_user="ann", impersonate_group="devs")
    info = (await as_ann.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).ok()["status"]["userInfo"]
    assert (info["username"], sorted(info["groups"])) == ("ann", ["devs", "system:authenticated"])
    answer = await as_ann.get(maps(namespace))
    assert answer.refused(403, "Forbidden")["message"].startswith('configmaps is forbidden: User "ann" cannot list')


async def test_impersonating_an_account(api: Api, namespace: str) -> None:
    """Impersonating a service account gives its groups too."""
    name = f"system:serviceaccount:{namespace}:default"
    as_account = api.with_headers(impersonate_user=name)
    info = (await as_account.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).ok()["status"]["userInfo"]
    assert info["username"] == name
    assert f"system:serviceaccounts:{namespace}" in info["groups"]


@pytest.mark.parametrize("more", [{"impersonate_uid": "5"}, {"impersonate_extra_a": "b"}])
async def test_uid_and_extras_of_an_impersonated_account_needed_no_right(
    api: Api, cluster: Cluster, namespace: str, more: dict[str, str]
) -> None:
    """They were dropped in silence: who may act as an account may not say more about it than that."""
    name = f"actor-{namespace}"
    await grant(api, namespace, user(name), rule("impersonate", resources=("serviceaccounts",)), rule("list"))
    account = f"system:serviceaccount:{namespace}:default"
    await allowed(Api(cluster.transport(name)), maps(namespace))
    actor = Api(cluster.transport(name)).with_headers(impersonate_user=account)
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert (await actor.post(review, {})).ok()["status"]["userInfo"]["username"] == account
    (await actor.with_headers(impersonate_user=account, **more).post(review, {})).refused(403, "Forbidden")


async def test_impersonation_needs_a_right(cluster: Cluster) -> None:
    """Without the right to impersonate it is refused."""
    ann = Api(cluster.transport("ann")).with_headers(impersonate_user="admin")
    (await ann.get("/api/v1/pods")).refused(
        403,
        "Forbidden",
        'users "admin" is forbidden: User "ann" cannot impersonate resource "users" in API group "" '
        "at the cluster scope",
    )


async def test_impersonating_groups_only(api: Api) -> None:
    """A group without a user cannot be impersonated."""
    answer = await api.with_headers(impersonate_group="devs").get("/api/v1/pods")
    answer.refused(400, "BadRequest")


@pytest.mark.parametrize("headers", [{"impersonate_uid": "5"}, {"impersonate_extra_a": "b"}])
async def test_impersonating_nobody(api: Api, headers: dict[str, str]) -> None:
    """Neither an identity nor anything extra can be taken on without a user."""
    answer = await api.with_headers(**headers).get("/api/v1/pods")
    answer.refused(400, "BadRequest")


async def test_extras_of_an_impersonated_user(api: Api) -> None:
    """Extras may have names that a header cannot spell, and an empty user is nobody else."""
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"impersonate_user": "eve", "impersonate_extra_acme.com%2Fproject": "p"}
    body = (await api.with_headers(**headers).post(review, {})).ok()
    assert body["status"]["userInfo"]["extra"] == {"acme.com/project": ["p"]}
    same = (await api.with_headers(impersonate_user="").post(review, {})).ok()
    assert "system:masters" in same["status"]["userInfo"]["groups"]

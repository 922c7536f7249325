"""Who one is, and what one may do: authentication, RBAC, impersonation, access reviews."""

from __future__ import annotations

import base64
import json

import pytest

from tests import make
from tests.api_behaviour.wire import Api, Json
from tests.worlds import Cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"


def maps(namespace: str) -> str:
    """The ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def grant(api: Api, namespace: str, subject: Json, *rules: Json) -> None:
    """A role with rules, bound to a subject in a namespace, once the server has noticed."""
    name = f"r-{subject['name'].replace(':', '-')}"
    (await api.post(f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": name}, "rules": list(rules)})).ok()
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).ok()


def user(name: str) -> Json:
    """A user as a subject."""
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def rule(*verbs: str, resources: tuple[str, ...] = ("configmaps",), **more: list[str]) -> Json:
    """A rule of the core group."""
    return {"apiGroups": [""], "resources": list(resources), "verbs": list(verbs), **more}


async def allowed(api: Api, path: str) -> None:
    """Wait until a read is allowed: a real server takes a moment to notice a new role."""
    await api.until(path, lambda answer: answer.code != 403)


async def test_anonymous(cluster: Cluster) -> None:
    """Nobody may read pods."""
    nobody = Api(cluster.token_transport(""))
    body = (await nobody.get("/api/v1/pods")).refused(
        403,
        "Forbidden",
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope',
    )
    assert body["details"] == {"kind": "pods"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/version"])
async def test_anonymous_may_ask(cluster: Cluster, path: str) -> None:
    """Health and version are open to all."""
    assert (await Api(cluster.token_transport("")).get(path)).code == 200


async def test_bad_token(cluster: Cluster) -> None:
    """A token that is not ours is 401."""
    answer = await Api(cluster.token_transport("nonsense")).get("/api/v1/pods")
    answer.refused(401, "Unauthorized", "Unauthorized")


async def test_who_am_i(cluster: Cluster) -> None:
    """A client certificate says name and groups; every user is authenticated."""
    ann = Api(cluster.transport("ann", ("dev", "ops")))
    body = (await ann.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).ok()
    info = body["status"]["userInfo"]
    assert (info["username"], sorted(info["groups"])) == ("ann", ["dev", "ops", "system:authenticated"])


async def test_forbidden_in_namespace(cluster: Cluster, namespace: str) -> None:
    """A user without rights is told verb, resource, group and namespace."""
    ann = Api(cluster.transport("ann"))
    (await ann.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")).refused(
        403,
        "Forbidden",
        'deployments.apps is forbidden: User "ann" cannot list resource "deployments" in API group "apps" '
        f'in the namespace "{namespace}"',
    )


async def test_forbidden_object(cluster: Cluster, namespace: str) -> None:
    """For one object its name is told as well."""
    ann = Api(cluster.transport("ann"))
    body = (await ann.get(f"{maps(namespace)}/a")).refused(
        403,
        "Forbidden",
        'configmaps "a" is forbidden: User "ann" cannot get resource "configmaps" in API group "" '
        f'in the namespace "{namespace}"',
    )
    assert body["details"] == {"name": "a", "kind": "configmaps"}


async def test_forbidden_subresource(cluster: Cluster, namespace: str) -> None:
    """A subresource is a resource of its own."""
    ann = Api(cluster.transport("ann"))
    answer = await ann.merge(f"/api/v1/namespaces/{namespace}/pods/a/status", {"status": {}})
    answer.refused(
        403,
        "Forbidden",
        'pods "a" is forbidden: User "ann" cannot patch resource "pods/status" in API group "" '
        f'in the namespace "{namespace}"',
    )


async def test_forbidden_path(cluster: Cluster) -> None:
    """Paths that are no resources are refused by path."""
    ann = Api(cluster.transport("ann"))
    (await ann.get("/metrics")).refused(403, "Forbidden", 'forbidden: User "ann" cannot get path "/metrics"')


async def test_forbidden_before_found(cluster: Cluster, namespace: str) -> None:
    """Rights are asked before the object is looked for, and before the body is read."""
    ann = Api(cluster.transport("ann"))
    assert (await ann.post(maps(namespace), b"nonsense")).code == 403
    assert (await ann.get(f"{maps(namespace)}/missing")).code == 403


async def test_role(api: Api, cluster: Cluster, namespace: str) -> None:
    """A role gives its verbs, and no others, in its namespace only."""
    await grant(api, namespace, user("ann"), rule("get", "list"))
    ann = Api(cluster.transport("ann"))
    await allowed(ann, maps(namespace))
    assert (await ann.get(maps(namespace))).code == 200
    assert (await ann.post(maps(namespace), make.config_map("a"))).code == 403
    assert (await ann.get(maps("default"))).code == 403
    assert (await ann.get(f"/api/v1/namespaces/{namespace}/secrets")).code == 403


async def test_a_right_ends_with_its_binding(api: Api, cluster: Cluster, namespace: str) -> None:
    """What was allowed before is asked again."""
    await grant(api, namespace, user("ann"), rule("list"))
    ann = Api(cluster.transport("ann"))
    await allowed(ann, maps(namespace))
    (await api.delete(f"{RBAC}/namespaces/{namespace}/rolebindings/r-ann")).ok()
    await ann.until(maps(namespace), lambda answer: answer.code == 403)


async def test_watch_needs_watch(api: Api, cluster: Cluster, namespace: str) -> None:
    """Listing is not watching."""
    await grant(api, namespace, user("ann"), rule("list"))
    ann = Api(cluster.transport("ann"))
    await allowed(ann, maps(namespace))
    answer = await ann.get(maps(namespace), watch="1")
    answer.refused(
        403,
        "Forbidden",
        'configmaps is forbidden: User "ann" cannot watch resource "configmaps" in API group "" '
        f'in the namespace "{namespace}"',
    )


async def test_resource_names(api: Api, cluster: Cluster, namespace: str) -> None:
    """A rule may hold for named objects only; lists by that name are allowed too."""
    await grant(api, namespace, user("ann"), rule("get", "list", resourceNames=["mine"]))
    ann = Api(cluster.transport("ann"))
    await allowed(ann, f"{maps(namespace)}/mine")
    assert (await ann.get(f"{maps(namespace)}/mine")).code == 404
    assert (await ann.get(f"{maps(namespace)}/other")).code == 403
    assert (await ann.get(maps(namespace))).code == 403
    assert (await ann.get(maps(namespace), fieldSelector="metadata.name=mine")).code == 200


async def test_group(api: Api, cluster: Cluster, namespace: str) -> None:
    """A group's members have its rights."""
    await grant(api, namespace, {**user("devs"), "kind": "Group"}, rule("list"))
    ann = Api(cluster.transport("ann", ("devs",)))
    await allowed(ann, maps(namespace))
    assert (await ann.get(maps(namespace))).code == 200
    assert (await Api(cluster.transport("bob")).get(maps(namespace))).code == 403


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


async def test_subresource_right(api: Api, cluster: Cluster, namespace: str) -> None:
    """A right to a resource is no right to its subresources."""
    await grant(api, namespace, user("ann"), rule("get", "create", "patch", resources=("pods",)))
    ann = Api(cluster.transport("ann"))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await allowed(ann, f"{pods}/a")
    (await ann.post(pods, make.pod("a", namespace).build())).ok()
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert (await ann.post(f"{pods}/a/binding", binding)).code == 403
    assert (await ann.merge(f"{pods}/a/status", {"status": {}})).code == 403


async def test_wildcards(api: Api, cluster: Cluster, namespace: str) -> None:
    """Stars stand for all verbs, groups and resources."""
    await grant(api, namespace, user("ann"), {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
    ann = Api(cluster.transport("ann"))
    await allowed(ann, maps(namespace))
    assert (await ann.post(maps(namespace), make.config_map("a"))).code == 201
    assert (await ann.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")).code == 200
    assert (await ann.get("/api/v1/nodes")).code == 403


async def test_cluster_role_in_namespace(api: Api, cluster: Cluster, namespace: str) -> None:
    """A cluster role that is bound in a namespace holds there only; the built-in ones are there."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {"metadata": {"name": "ann"}, "roleRef": reference, "subjects": [user("ann")]}
    (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).ok()
    ann = Api(cluster.transport("ann"))
    await allowed(ann, f"/api/v1/namespaces/{namespace}/pods")
    assert (await ann.get(f"/api/v1/namespaces/{namespace}/pods")).code == 200
    assert (await ann.get(f"/api/v1/namespaces/{namespace}/secrets")).code == 403
    assert (await ann.get("/api/v1/namespaces/default/pods")).code == 403


@pytest.mark.parametrize(
    "name", ["cluster-admin", "admin", "edit", "view", "system:kube-scheduler", "system:discovery"]
)
async def test_bootstrap_roles(api: Api, name: str) -> None:
    """The roles of a fresh cluster are there."""
    assert (await api.get(f"{RBAC}/clusterroles/{name}")).code == 200


async def test_discovery_is_open(cluster: Cluster) -> None:
    """Every authenticated user may discover what is served."""
    ann = Api(cluster.transport("ann"))
    for path in ("/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3"):
        assert (await ann.get(path)).code == 200, path


async def test_escalation(api: Api, cluster: Cluster, namespace: str) -> None:
    """Nobody can give rights that they do not have."""
    rbac = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}
    rbac["verbs"] = ["create", "get", "list"]
    await grant(api, namespace, user("ann"), rbac)
    ann = Api(cluster.transport("ann"))
    await allowed(ann, f"{RBAC}/namespaces/{namespace}/roles")
    answer = await ann.post(
        f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": "more"}, "rules": [rule("get")]}
    )
    body = answer.refused(403, "Forbidden")
    assert body["message"] == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "ann" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}'
    )
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "more"}, "roleRef": reference, "subjects": [user("ann")]}
    (await ann.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).refused(403, "Forbidden")


async def test_a_role_that_aggregates_made_its_author_an_administrator(api: Api, cluster: Cluster) -> None:
    """An aggregation rule may gather anything, so whoever sets it needs all rights."""
    who = cluster.unique("eve")
    change = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get", "patch"]}
    (await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": who}, "rules": [change]})).ok()
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": who}
    binding = {"metadata": {"name": who}, "roleRef": reference, "subjects": [user(who)]}
    (await api.post(f"{RBAC}/clusterrolebindings", binding)).ok()
    eve = Api(cluster.transport(who))
    await allowed(eve, f"{RBAC}/clusterroles/{who}")
    everything = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {}}]}}
    (await eve.merge(f"{RBAC}/clusterroles/{who}", everything)).refused(403, "Forbidden")
    (await eve.merge(f"{RBAC}/clusterroles/{who}", {"metadata": {"labels": {"a": "b"}}})).ok()


async def test_a_binding_to_a_role_that_does_not_exist_yet_gave_its_rights(
    api: Api, cluster: Cluster, namespace: str
) -> None:
    """Without the right to bind, a role must exist, so that its rules can be compared."""
    who = cluster.unique("eve")
    bind = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"], "verbs": ["create", "list"]}
    await grant(api, namespace, user(who), bind)
    eve = Api(cluster.transport(who))
    bindings = f"{RBAC}/namespaces/{namespace}/rolebindings"
    await allowed(eve, bindings)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "later"}
    binding = {"metadata": {"name": "early"}, "roleRef": reference, "subjects": [user(who)]}
    (await eve.post(bindings, binding)).refused(404, "NotFound")


async def test_a_field_selector_named_the_object_of_a_creation(api: Api, cluster: Cluster, namespace: str) -> None:
    """A right to create that is limited to names allows no creation: a request has no name then."""
    who = cluster.unique("eve")
    named = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"], "resourceNames": ["allowed"]}
    listing = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await grant(api, namespace, user(who), named, listing)
    eve = Api(cluster.transport(who))
    await allowed(eve, maps(namespace))
    answer = await eve.post(maps(namespace), {"metadata": {"name": "other"}}, fieldSelector="metadata.name=allowed")
    answer.refused(403, "Forbidden")


async def test_aggregated_roles(api: Api, cluster: Cluster) -> None:
    """A cluster role may gather the rules of others by label."""
    name = cluster.unique("agg")
    part = {"metadata": {"name": f"{name}-part", "labels": {"agg": name}}, "rules": [rule("get")]}
    (await api.post(f"{RBAC}/clusterroles", part)).ok()
    whole = {"metadata": {"name": name}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"agg": name}}]}}
    (await api.post(f"{RBAC}/clusterroles", {**whole, "rules": []})).ok()
    role = await api.until(f"{RBAC}/clusterroles/{name}", lambda answer: bool(answer.ok().get("rules")))
    assert role.ok()["rules"] == [rule("get")]


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
    answer.refused(400, "BadRequest", "requested [{Group  devs    }] without impersonating a user")


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
    ("headers", "header"),
    [
        ({"impersonate_uid": "5"}, "{UID  5  authentication.k8s.io/v1  }"),
        ({"impersonate_extra_a": "b"}, "{UserExtra  b  authentication.k8s.io/v1  a}"),
    ],
)
async def test_impersonating_nobody(api: Api, headers: dict[str, str], header: str) -> None:
    """Neither an identity nor anything extra can be taken on without a user."""
    answer = await api.with_headers(**headers).get("/api/v1/pods")
    answer.refused(400, "BadRequest", f"requested [{header}] without impersonating a user")


async def test_missing_rights_are_told_by_resource(api: Api, cluster: Cluster, namespace: str) -> None:
    """Who gives more than they have hears what is missing, resource by resource."""
    await grant(
        api,
        namespace,
        user("ann"),
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "list"]},
        rule("get"),
    )
    ann = Api(cluster.transport("ann"))
    roles = f"{RBAC}/namespaces/{namespace}/roles"
    await allowed(ann, roles)
    wanted = {"metadata": {"name": "more"}, "rules": [rule("get", "list", "watch", resources=("configmaps", "pods"))]}
    refused = (await ann.post(roles, wanted)).refused(403, "Forbidden")
    assert refused["message"].splitlines()[1:] == [
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list" "watch"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list" "watch"]}',
    ]


async def test_extras_of_an_impersonated_user(api: Api) -> None:
    """Extras may have names that a header cannot spell, and an empty user is nobody else."""
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"impersonate_user": "eve", "impersonate_extra_acme.com%2Fproject": "p"}
    body = (await api.with_headers(**headers).post(review, {})).ok()
    assert body["status"]["userInfo"]["extra"] == {"acme.com/project": ["p"]}
    same = (await api.with_headers(impersonate_user="").post(review, {})).ok()
    assert "system:masters" in same["status"]["userInfo"]["groups"]


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
    assert status["error"] == (
        '[invalid bearer token, token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences '
        '["other"]]'
    )
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


async def test_the_right_to_patch_or_update_created_objects(api: Api, cluster: Cluster, namespace: str) -> None:
    """An apply, or an update where updates may create, needs the right to create as well."""
    name = f"writer-{namespace}"
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}
    await grant(api, namespace, user(name), rule("get", "patch"), leases)
    writer = Api(cluster.transport(name))
    await allowed(writer, f"{maps(namespace)}/new")
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    answer = await writer.apply(f"{maps(namespace)}/new", applied, "manager")
    answer.refused(
        403,
        "Forbidden",
        f'configmaps "new" is forbidden: User "{name}" cannot create resource "configmaps" in API group "" in the '
        f'namespace "{namespace}"',
    )
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/new"
    assert (await writer.put(lease, {"metadata": {"name": "new"}})).code == 403

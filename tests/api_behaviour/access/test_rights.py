"""What one may do: RBAC, and the ways around it that are closed."""

from __future__ import annotations

import pytest

from tests import make
from tests.api_behaviour.access.roles import RBAC, allowed, grant, rule, user
from tests.api_behaviour.paths import maps
from tests.api_behaviour.wire import Api
from tests.worlds import Cluster


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

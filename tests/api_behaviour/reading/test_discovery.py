"""Discovery: what a client learns about the kinds that are served."""

from __future__ import annotations

import pytest

from tests.api_behaviour.wire import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_core_versions(api: Api) -> None:
    """/api names the versions of the core group."""
    body = (await api.get("/api")).ok()
    assert (body["kind"], body["versions"]) == ("APIVersions", ["v1"])
    assert body["serverAddressByClientCIDRs"][0]["clientCIDR"] == "0.0.0.0/0"


async def test_groups(api: Api) -> None:
    """/apis lists every group with its versions and the preferred one."""
    body = (await api.get("/apis")).ok()
    assert (body["kind"], body["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in body["groups"]}
    assert {"apps", "batch", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io"} <= set(groups)
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    versions = [version["version"] for version in groups["scheduling.k8s.io"]["versions"]]
    assert versions == ["v1", "v1alpha1"]


async def test_one_group(api: Api) -> None:
    """/apis/<group> is that group alone."""
    body = (await api.get("/apis/apps")).ok()
    assert (body["kind"], body["apiVersion"], body["name"]) == ("APIGroup", "v1", "apps")
    assert body["versions"] == [{"groupVersion": "apps/v1", "version": "v1"}]


@pytest.mark.parametrize(
    ("path", "name", "scope", "short", "verb"),
    [
        ("/api/v1", "pods", ("Pod", True), ["po"], "deletecollection"),
        ("/api/v1", "nodes", ("Node", False), ["no"], "watch"),
        ("/api/v1", "namespaces", ("Namespace", False), ["ns"], "create"),
        ("/api/v1", "configmaps", ("ConfigMap", True), ["cm"], "patch"),
        ("/api/v1", "services", ("Service", True), ["svc"], "deletecollection"),
        ("/api/v1", "serviceaccounts", ("ServiceAccount", True), ["sa"], "get"),
        ("/api/v1", "events", ("Event", True), ["ev"], "list"),
        ("/api/v1", "persistentvolumeclaims", ("PersistentVolumeClaim", True), ["pvc"], "update"),
        ("/apis/apps/v1", "deployments", ("Deployment", True), ["deploy"], "watch"),
        ("/apis/apps/v1", "replicasets", ("ReplicaSet", True), ["rs"], "watch"),
        ("/apis/apps/v1", "statefulsets", ("StatefulSet", True), ["sts"], "watch"),
        ("/apis/batch/v1", "cronjobs", ("CronJob", True), ["cj"], "watch"),
        ("/apis/policy/v1", "poddisruptionbudgets", ("PodDisruptionBudget", True), ["pdb"], "patch"),
        ("/apis/scheduling.k8s.io/v1", "priorityclasses", ("PriorityClass", False), ["pc"], "delete"),
        ("/apis/autoscaling/v2", "horizontalpodautoscalers", ("HorizontalPodAutoscaler", True), ["hpa"], "get"),
        ("/apis/storage.k8s.io/v1", "storageclasses", ("StorageClass", False), ["sc"], "get"),
        ("/apis/coordination.k8s.io/v1", "leases", ("Lease", True), None, "watch"),
    ],
)
async def test_resource(api: Api, path: str, name: str, scope: tuple[str, bool], short: list[str], verb: str) -> None:
    """A resource says its kind, scope, short names and verbs."""
    kind, namespaced = scope
    resource = {each["name"]: each for each in (await api.get(path)).ok()["resources"]}[name]
    assert (resource["kind"], resource["namespaced"], resource.get("shortNames")) == (kind, namespaced, short)
    assert verb in resource["verbs"]
    assert resource["singularName"] == kind.lower()


async def test_subresources(api: Api) -> None:
    """Subresources are listed beside their resource, with the kind they take."""
    body = (await api.get("/api/v1")).ok()
    assert (body["kind"], body["groupVersion"]) == ("APIResourceList", "v1")
    resources = {each["name"]: each for each in body["resources"]}
    expected = {"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding", "verbs": ["create"]}
    assert resources["pods/binding"] == expected
    eviction = resources["pods/eviction"]
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")
    assert sorted(resources["pods/status"]["verbs"]) == ["get", "patch", "update"]
    assert "replicationcontrollers/scale" in resources
    assert resources["serviceaccounts/token"]["kind"] == "TokenRequest"


async def test_scale_subresource(api: Api) -> None:
    """A workload's scale subresource speaks autoscaling/v1 Scale."""
    resources = {each["name"]: each for each in (await api.get("/apis/apps/v1")).ok()["resources"]}
    scale = resources["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert resources["deployments"]["categories"] == ["all"]


async def test_unknown_group(api: Api) -> None:
    """An unknown group is a plain 404 page; an unknown version of a known group is a Status."""
    for path in ("/nothing", "/apis/nothing.example", "/apis/nothing.example/v1"):
        answer = await api.get(path)
        assert (answer.code, answer.raw) == (404, b"404 page not found\n"), path
    for path in ("/apis/apps/v9", "/apis/apps/v9/deployments"):
        (await api.get(path)).refused(404, "NotFound", "the server could not find the requested resource")


async def test_version(api: Api) -> None:
    """/version says Kubernetes 1.35."""
    body = (await api.get("/version")).ok()
    assert (body["major"], body["minor"]) == ("1", "35")
    assert body["gitVersion"].startswith("v1.35.")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_health(api: Api, path: str) -> None:
    """Health endpoints answer `ok` in plain text."""
    answer = await api.get(path)
    assert (answer.code, answer.raw) == (200, b"ok")
    assert answer.headers["content-type"].startswith("text/plain")


async def test_verbose_health(api: Api) -> None:
    """`?verbose` lists the single checks."""
    answer = await api.get("/readyz", verbose="")
    assert b"[+]ping ok" in answer.raw
    assert answer.raw.endswith(b"readyz check passed\n")


async def test_aggregated(api: Api) -> None:
    """One call tells all groups, versions and resources to a client that asks for the aggregated form."""
    answer = await api.with_headers(accept=AGGREGATED).get("/apis")
    assert answer.headers["content-type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    body = answer.ok()
    assert (body["kind"], body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    groups = {group["metadata"]["name"]: group for group in body["items"]}
    (version,) = groups["apps"]["versions"]
    resources = {each["resource"]: each for each in version["resources"]}
    deployment = resources["deployments"]
    assert deployment["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
    assert (deployment["scope"], deployment["singularResource"]) == ("Namespaced", "deployment")
    assert {each["subresource"] for each in deployment["subresources"]} == {"scale", "status"}
    assert version["freshness"] == "Current"


async def test_aggregated_core(api: Api) -> None:
    """The core group has its aggregated form at /api, under an empty name."""
    body = (await api.with_headers(accept=AGGREGATED).get("/api")).ok()
    (group,) = body["items"]
    assert "name" not in group["metadata"]
    assert group["versions"][0]["version"] == "v1"
    pods = {each["resource"]: each for each in group["versions"][0]["resources"]}["pods"]
    assert pods["shortNames"] == ["po"]
    assert pods["categories"] == ["all"]


@pytest.mark.parametrize("path", ["/healthz/etcd", "/livez/ping", "/readyz/poststarthook/rbac/bootstrap-roles"])
async def test_one_check(api: Api, path: str) -> None:
    """Each check can be asked for by itself."""
    answer = await api.get(path)
    assert (answer.code, answer.raw) == (200, b"ok")


async def test_excluded_check(api: Api) -> None:
    """A check can be left out; one that is not known is told."""
    lines = (await api.get("/readyz", verbose="", exclude="etcd")).raw.decode().splitlines()
    assert "[+]etcd excluded: ok" in lines
    lines = (await api.get("/readyz", verbose="", exclude="nothing")).raw.decode().splitlines()
    assert lines[-2:] == [
        'warn: some health checks cannot be excluded: no matches for "nothing"',
        "readyz check passed",
    ]


async def test_root(api: Api) -> None:
    """The root lists what is served, in order."""
    for path in ("/", "/index.html"):
        paths = (await api.get(path)).ok()["paths"]
        assert paths == sorted(paths)
        assert {"/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz/ping", "/metrics", "/openapi/v3"} <= set(paths)


async def test_metrics(api: Api) -> None:
    """Prometheus finds its page."""
    answer = await api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'apiserver_resource_objects{group="",resource="namespaces"}' in answer.raw


LANGUAGES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
SPOKEN = f"only the following media types are accepted: {LANGUAGES}"
AVAILABLE = "406: Not Acceptable\n\nAvailable representations: "


@pytest.mark.parametrize("path", ["/version", "/api", "/apis/apps/v1"])
async def test_discovery_is_only_read(api: Api, path: str) -> None:
    """What is served can only be asked for."""
    (await api.call("DELETE", path)).refused(405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/version", f"{AVAILABLE}application/json"),
        ("/api", AVAILABLE + LANGUAGES),
        ("/apis/apps/v1", AVAILABLE + LANGUAGES),
        ("/apis", SPOKEN),
        ("/apis/apps", SPOKEN),
    ],
)
async def test_language_of_discovery(api: Api, path: str, message: str) -> None:
    """What is served is told only in languages that are spoken."""
    (await api.with_headers(accept="text/html").get(path)).refused(406, "NotAcceptable", message)


async def test_head(api: Api) -> None:
    """HEAD is answered where probes use it, and without a body."""
    codes = {}
    for path in ("/healthz", "/version", "/nothing", "/api/v1/pods"):
        answer = await api.call("HEAD", path)
        assert answer.raw == b""
        codes[path] = answer.code
    assert codes == {"/healthz": 200, "/version": 405, "/nothing": 404, "/api/v1/pods": 405}


async def test_answers_are_not_to_be_kept(api: Api) -> None:
    """No answer may be kept by a proxy."""
    for path in ("/healthz", "/version", "/nothing", "/api/v1/namespaces/default", "/api/v1/namespaces/nothing"):
        assert (await api.get(path)).headers["cache-control"] == "no-cache, private"


@pytest.mark.parametrize("path", ["/api/v1/pods/a", "/api/v1/watch/pods/a", "/apis/apps/v1/deployments/a"])
async def test_name_without_namespace(api: Api, path: str) -> None:
    """What is in a namespace cannot be asked for without it."""
    (await api.get(path)).refused(404, "NotFound", "the server could not find the requested resource")

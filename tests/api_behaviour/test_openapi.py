"""OpenAPI: the schemas that kubectl explains and validates with."""

from __future__ import annotations

from tests import make
from tests.api_behaviour.crds import install
from tests.api_behaviour.wire import Api


async def test_v3_index(api: Api) -> None:
    """/openapi/v3 lists a document per group and version, each with a hash in its address."""
    paths = (await api.get("/openapi/v3")).ok()["paths"]
    assert {"api", "apis", "api/v1", "apis/apps", "apis/apps/v1", "version"} <= set(paths)
    assert paths["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")


async def test_v3_document(api: Api) -> None:
    """A group's document holds its paths and its schemas with their kinds."""
    body = (await api.get("/openapi/v3/apis/apps/v1")).ok()
    assert body["openapi"].startswith("3.0")
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in body["paths"]
    schema = body["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    assert "spec" in schema["properties"]


async def test_v3_list_keys(api: Api) -> None:
    """Schemas carry the keys by which lists are merged."""
    schemas = (await api.get("/openapi/v3/api/v1")).ok()["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"


async def test_v3_action(api: Api) -> None:
    """Operations name the kind and verb they serve."""
    paths = (await api.get("/openapi/v3/api/v1")).ok()["paths"]
    operation = paths["/api/v1/namespaces/{namespace}/pods"]["post"]
    assert operation["x-kubernetes-action"] == "post"
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Pod", "version": "v1"}


async def test_v3_custom_resource(api: Api) -> None:
    """A custom resource is described as soon as it is served, its own descriptions included."""
    schema = make.schema(
        spec={"type": "object", "description": "What is wanted.", "properties": {"size": {"type": "integer"}}}
    )
    await install(api, make.crd("openapi.example.com", "Widget", schema))
    await api.until("/openapi/v3", lambda answer: "apis/openapi.example.com/v1" in answer.ok()["paths"])
    schemas = (await api.get("/openapi/v3/apis/openapi.example.com/v1")).ok()["components"]["schemas"]
    widget = schemas["com.example.openapi.v1.Widget"]
    assert widget["properties"]["spec"]["description"] == "What is wanted."
    assert "ObjectMeta" in widget["properties"]["metadata"]["allOf"][0]["$ref"]


async def test_v2(api: Api) -> None:
    """/openapi/v2 holds the definitions of all kinds in one document."""
    body = (await api.get("/openapi/v2")).ok()
    assert body["swagger"] == "2.0"
    pod = body["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]


async def test_unknown_document(api: Api) -> None:
    """A group that is not served has no document."""
    assert (await api.get("/openapi/v3/apis/nothing.example/v1")).code == 404

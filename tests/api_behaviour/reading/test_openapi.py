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
    path = "/openapi/v3/apis/openapi.example.com/v1"
    body = (await api.until(path, lambda answer: answer.code == 200 and b"Widget" in answer.raw)).ok()
    schemas = body["components"]["schemas"]
    widget = schemas["com.example.openapi.v1.Widget"]
    assert widget["properties"]["spec"]["description"] == "What is wanted."
    assert "ObjectMeta" in widget["properties"]["metadata"]["allOf"][0]["$ref"]


async def test_v3_enumeration(api: Api) -> None:
    """A schema tells which values a field may have, as `kubectl explain` shows them."""
    schemas = (await api.get("/openapi/v3/api/v1")).ok()["components"]["schemas"]
    policy = schemas["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"]
    assert policy["enum"] == ["Always", "IfNotPresent", "Never"]
    assert "Possible enum values:" in policy["description"]


async def test_v3_subresources_and_lists(api: Api) -> None:
    """A document describes subresources, lists over all namespaces, and the schemas that these speak of."""
    body = (await api.get("/openapi/v3/apis/apps/v1")).ok()
    deployment_path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    assert {
        f"{deployment_path}/status",
        f"{deployment_path}/scale",
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/",
    } <= set(body["paths"])
    parameters = body["paths"]["/apis/apps/v1/deployments"]["parameters"]
    assert {"limit", "continue", "labelSelector", "watch"} <= {parameter["name"] for parameter in parameters}
    schemas = set(body["components"]["schemas"])
    assert {"io.k8s.api.apps.v1.DeploymentList", "io.k8s.api.autoscaling.v1.Scale"} <= schemas


async def test_v3_operations_of_custom_resources(api: Api) -> None:
    """A custom resource's operations are described like those of built-in kinds."""
    definition = make.crd("operations.example.com", "Widget", make.schema(spec={"type": "object"}))
    definition["spec"]["versions"][0]["subresources"] = {"status": {}}
    await install(api, definition)
    path = "/openapi/v3/apis/operations.example.com/v1"
    body = (await api.until(path, lambda answer: answer.code == 200 and b"Widget" in answer.raw)).ok()
    widget_path = "/apis/operations.example.com/v1/namespaces/{namespace}/widgets/{name}"
    assert set(body["paths"]) == {
        widget_path,
        f"{widget_path}/status",
        "/apis/operations.example.com/v1/namespaces/{namespace}/widgets",
        "/apis/operations.example.com/v1/widgets",
    }
    patch = body["paths"][widget_path]["patch"]
    assert (patch["operationId"], patch["tags"]) == (
        "patchOperationsExampleComV1NamespacedWidget",
        ["operationsExampleCom_v1"],
    )
    assert {"fieldManager", "fieldValidation", "force"} <= {parameter["name"] for parameter in patch["parameters"]}
    items = body["components"]["schemas"]["com.example.operations.v1.WidgetList"]["properties"]["items"]
    assert items["items"] == {"$ref": "#/components/schemas/com.example.operations.v1.Widget"}


async def test_v3_number_or_text(api: Api) -> None:
    """A field that is a number or a text says so in plain OpenAPI, too."""
    port = {"x-kubernetes-int-or-string": True}
    schema = make.schema(spec={"type": "object", "properties": {"port": port}})
    await install(api, make.crd("either.example.com", "Widget", schema))
    path = "/openapi/v3/apis/either.example.com/v1"
    body = (await api.until(path, lambda answer: answer.code == 200 and b"Widget" in answer.raw)).ok()
    spec = body["components"]["schemas"]["com.example.either.v1.Widget"]["properties"]["spec"]
    assert spec["properties"]["port"] == {**port, "anyOf": [{"type": "integer"}, {"type": "string"}]}


async def test_v2(api: Api) -> None:
    """/openapi/v2 holds the definitions of all kinds in one document."""
    body = (await api.get("/openapi/v2")).ok()
    assert body["swagger"] == "2.0"
    pod = body["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"
    assert "default" not in pod["properties"]["spec"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]


async def test_unknown_document(api: Api) -> None:
    """A group that is not served has no document."""
    answer = await api.get("/openapi/v3/apis/nothing.example/v1")
    assert (answer.code, answer.raw) == (404, b"")

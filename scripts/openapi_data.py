"""Makes `embedded/apiserver/data/{openapi,paths}.json.gz`: the schemas and paths that an API server describes.

The paths of custom resources are those of a made-up kind of each scope, whose names are replaced when they are needed.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from spinney.kube.client.transport import Request, Transport
from spinney.testing.controlplane import ControlPlane

DATA = Path(__file__).parents[1] / "src/spinney/embedded/apiserver/data"
# What the embedded server does not serve.
LEFT_OUT = (".well-known/openid-configuration", "openid/v1/jwks")
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def definition(scope: str, plural: str, kind: str) -> dict[str, Any]:
    """A kind whose names occur nowhere else."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v77", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "kind": kind}
    version["subresources"] = {"status": {}, "scale": SCALE}
    spec = {"group": "zg.zz", "scope": scope, "names": names, "versions": [version]}
    kind_of = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind_of, "metadata": {"name": f"{plural}.zg.zz"}, "spec": spec}


async def documents(transport: Transport) -> dict[str, Any]:
    """All documents, by name, with those of the made-up kinds."""

    async def get(path: str) -> Any:
        return json.loads((await transport.send(Request("GET", path))).body)

    headers = {"content-type": "application/json"}
    for made in (definition("Namespaced", "zplurals", "Zkind"), definition("Cluster", "zwides", "Zwide")):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        answer = await transport.send(Request("POST", path, headers=headers, body=json.dumps(made).encode()))
        assert answer.status == 201, answer.body
    while True:
        await asyncio.sleep(1)
        names = (await get("/openapi/v3"))["paths"]
        if "apis/zg.zz/v77" in names and {"Zkind", "Zwide"} <= {
            name.rpartition(".")[2] for name in (await get("/openapi/v3/apis/zg.zz/v77"))["components"]["schemas"]
        }:
            break
    groups = {name: await get(f"/openapi/v3/{name}") for name in names if name not in LEFT_OUT}
    await transport.close()
    return groups


def compact(node: Any) -> Any:
    """The schema without what nobody reads: `allOf` around a single reference, and formats of Go's own types."""
    if isinstance(node, list):
        return [compact(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: compact(value) for key, value in node.items()}
    # Lists and strings only: JSONSchemaProps has properties of these very names.
    if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
        result.update(result.pop("allOf")[0])
    if isinstance(result.get("$ref"), str):
        result["$ref"] = result["$ref"].rpartition("/")[2]
    return result


class Parameters:
    """Parameters, told once each; paths refer to them by number."""

    def __init__(self) -> None:
        self.table: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, parameter: Any) -> int:
        """The number of a parameter."""
        text = json.dumps(parameter)
        if text not in self._numbers:
            self._numbers[text] = len(self.table)
            self.table.append(parameter)
        return self._numbers[text]

    def numbered(self, path: dict[str, Any]) -> dict[str, Any]:
        """A path's operations, with numbers for parameters."""
        result: dict[str, Any] = {}
        for method, operation in path.items():
            if method == "parameters":
                result[method] = [self.number(each) for each in operation]
                continue
            own = [self.number(each) for each in operation.get("parameters", ())]
            result[method] = {**operation, "parameters": own} if own else operation
        return result


def write(name: str, content: Any) -> None:
    """One file of data."""
    packed = gzip.compress(json.dumps(content, separators=(",", ":")).encode(), 9, mtime=0)
    (DATA / name).write_bytes(packed)
    print(f"{name}: {len(packed)} bytes")


def main() -> None:
    """Ask a control plane of our own."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as plane:
        documents_by_name = asyncio.run(documents(plane.transport()))
    schemas: dict[str, Any] = {}
    parameters = Parameters()
    paths: dict[str, Any] = {}
    for name, document in documents_by_name.items():
        own = document.get("components", {}).get("schemas", {})
        schemas.update(
            {each: compact(schema) for each, schema in own.items() if not each.startswith("zz.zg.v77.Zwide")}
        )
        paths[name] = {path: parameters.numbered(operations) for path, operations in document["paths"].items()}
    write("openapi.json.gz", dict(sorted(schemas.items())))
    write("paths.json.gz", {"parameters": parameters.table, "documents": paths})


if __name__ == "__main__":
    main()

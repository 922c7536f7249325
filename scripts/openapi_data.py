"""Makes `src/spinney/embedded/data/openapi.json.gz` from the OpenAPI v3 documents of a Kubernetes release.

Usage: scripts/openapi_data.py FOLDER, where the folder holds one JSON document per group and version, as an API server
serves them below `/openapi/v3` and as the Kubernetes repository keeps them in `api/openapi-spec/v3`.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src/spinney/embedded/data/openapi.json.gz"


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


def main() -> None:
    """Merge the schemas of all documents into one table, by name."""
    schemas: dict[str, Any] = {}
    for document in sorted(Path(sys.argv[1]).glob("*.json")):
        found = json.loads(document.read_text()).get("components", {}).get("schemas", {})
        schemas.update({name: compact(schema) for name, schema in found.items()})
    encoded = json.dumps(dict(sorted(schemas.items())), separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(encoded, 9, mtime=0))
    print(f"{len(schemas)} schemas, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""Makes `embedded/apiserver/data/columns.json.gz`: what the columns of built-in kinds mean, as an API server says."""

from __future__ import annotations

import asyncio
import gzip
import json
import tempfile
from pathlib import Path

from spinney.embedded.apiserver.resources.kinds import built_in
from spinney.kube.client.transport import Request, Transport
from spinney.testing.controlplane import ControlPlane

TARGET = Path(__file__).parents[1] / "src/spinney/embedded/apiserver/data/columns.json.gz"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
# Their meaning is that of a field of metadata, which the schemas hold.
COMMON = ("Name", "Age", "Created At")


async def descriptions(transport: Transport) -> dict[str, dict[str, str]]:
    """By table and column, for every kind that can be listed."""
    texts: dict[str, dict[str, str]] = {}
    for kind in built_in():
        if "list" not in kind.verbs or kind.group == "metrics.k8s.io":
            continue
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        answer = await transport.send(Request("GET", f"{root}/{kind.plural}", headers=TABLE))
        columns = json.loads(answer.body)["columnDefinitions"]
        texts[kind.table] = {each["name"]: each["description"] for each in columns if each["name"] not in COMMON}
    await transport.close()
    return texts


def main() -> None:
    """Ask a control plane of our own."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as plane:
        texts = asyncio.run(descriptions(plane.transport()))
    encoded = json.dumps(dict(sorted(texts.items())), separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(encoded, 9, mtime=0))
    print(f"{len(texts)} tables, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

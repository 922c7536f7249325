"""Makes `embedded/apiserver/data/zeros.json.gz`: the members that Kubernetes leaves out where they are zero.

Usage: scripts/zeros_data.py FOLDER…, each the root of a Go module (`k8s.io/api`, `k8s.io/apimachinery`,
`k8s.io/apiextensions-apiserver`, `k8s.io/kube-aggregator`). Go's encoder leaves out a member that is marked `omitempty`
and is zero, unless it is behind a pointer; OpenAPI documents do not say which these are.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

from spinney.embedded.apiserver.schema.shapes import definitions

TARGET = Path(__file__).parents[1] / "src/spinney/embedded/apiserver/data/zeros.json.gz"
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^\s+\w+\s+([\w.]+)\s+`json:\"(\w+),omitempty[^`]*`", re.MULTILINE)
SCALARS = ("string", "integer", "number", "boolean")


def members(root: Path) -> dict[str, list[str]]:
    """Plain members that may be left out, by the kind's name and version as the schemas' names end."""
    plain_members: dict[str, list[str]] = {}
    for file in root.rglob("*types*.go"):
        package = ".".join(file.parent.relative_to(root).parts)
        for name, body in STRUCT.findall(file.read_text()):
            plain = [key for kind, key in MEMBER.findall(body) if not kind.startswith(("*", "[", "map"))]
            plain_members[f"{package}.{name}"] = plain
    return plain_members


def main() -> None:
    """Match Go's types with the schemas by their names."""
    plain_members: dict[str, list[str]] = {}
    for argument in sys.argv[1:]:
        plain_members.update(members(Path(argument)))
    zeros: dict[str, list[str]] = {}
    for name, schema in definitions().items():
        key = next((key for key in (name.removeprefix("io.k8s.api."), *_tails(name)) if key in plain_members), "")
        properties = schema.get("properties") or {}
        plain = [
            member for member in plain_members.get(key, ()) if (properties.get(member) or {}).get("type") in SCALARS
        ]
        if plain:
            zeros[name] = sorted(plain)
    encoded = json.dumps(dict(sorted(zeros.items())), separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(encoded, 9, mtime=0))
    print(f"{sum(map(len, zeros.values()))} members of {len(zeros)} schemas, {TARGET.stat().st_size} bytes")


def _tails(name: str) -> list[str]:
    """The ends of a schema's name, longest first: `pkg.apis.meta.v1.ObjectMeta`, …"""
    parts = name.split(".")
    return [".".join(parts[at:]) for at in range(len(parts) - 2)]


if __name__ == "__main__":
    main()

"""Makes `embedded/apiserver/data/protobuf.json.gz`: the field numbers of Kubernetes' messages.

Usage: scripts/protobuf_data.py FOLDER…, where `generated.proto` files lie anywhere below the folders (the Go modules
k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver have them).

A message is a map from field number to [JSON name, type, label]; the label is "" for one value, "repeated" or "map".
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/spinney/embedded/apiserver/data/protobuf.json.gz"
_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(optional|repeated)\s+([.\w]+)\s+(\w+) = (\d+)", re.MULTILINE)
_MAP = re.compile(r"^\s*map<\s*string\s*,\s*([.\w]+)\s*>\s+(\w+) = (\d+)", re.MULTILINE)
_SCALARS = ("string", "bool", "bytes", "int32", "int64", "uint32", "uint64", "double", "float")


def main() -> None:
    """Read every file and write one table."""
    table: dict[str, dict[str, list[str]]] = {}
    for folder in sys.argv[1:]:
        for file in sorted(Path(folder).rglob("generated.proto")):
            text = file.read_text()
            package = re.search(r"^package (.*);", text, re.MULTILINE)
            assert package is not None, file
            for message, body in _MESSAGE.findall(text):
                table[f"{package[1]}.{message}"] = _fields(body, package[1])
    encoded = json.dumps(table, separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(encoded, 9, mtime=0))
    print(f"{len(table)} messages, {TARGET.stat().st_size} bytes")


def _fields(body: str, package: str) -> dict[str, list[str]]:
    fields = {number: [name, _full(of, package), "map"] for of, name, number in _MAP.findall(body)}
    for label, of, name, number in _FIELD.findall(body):
        fields[number] = [name, _full(of, package), "repeated" if label == "repeated" else ""]
    return fields


def _full(of: str, package: str) -> str:
    of = of.lstrip(".")
    return of if of in _SCALARS or "." in of else f"{package}.{of}"


if __name__ == "__main__":
    main()

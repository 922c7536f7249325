"""Makes `embedded/apiserver/data/internal.json.gz`: the structs that Kubernetes prints in some of its refusals.

Usage: scripts/internal_data.py KUBERNETES API, the roots of the Go modules `k8s.io/kubernetes` and `k8s.io/api`.
Inside of the API server objects have types of their own, whose members are named and ordered otherwise than on the
wire. Of each struct the file says its members: Go's name, the name on the wire (nothing where a struct is embedded),
and a type, which `spinney.embedded.apiserver.schema.internal` explains.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/spinney/embedded/apiserver/data/internal.json.gz"
GROUPS = (
    "core",
    "apps",
    "batch",
    "autoscaling",
    "policy",
    "networking",
    "discovery",
    "resource",
    "scheduling",
    "storage",
)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ALIAS = re.compile(r"^type (\w+) ([\w\[\].]+)$", re.MULTILINE)
MEMBER = re.compile(r"^\t(\w+)\s+([^\s`/]+)", re.MULTILINE)
EMBEDDED = re.compile(r"^\t([\w.]+)\s*(?:`[^`]*`)?\s*(?://.*)?$", re.MULTILINE)
TAGGED = re.compile(r"^\t(\w+)\s+\S+\s+`json:\"(\w+)", re.MULTILINE)
BASE = {"string": "s", "bool": "b", "int": "i", "int32": "i", "int64": "i", "types.UID": "s", "metav1.Time": "t"}
KNOWN = {"resource.Quantity": "q", "apiresource.Quantity": "q", "intstr.IntOrString": "x", "metav1.MicroTime": "t"}


def wire_names(api: Path, group: str) -> dict[str, dict[str, str]]:
    """Names on the wire by struct and Go name; newer versions win."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted((api / group).glob("v*/types.go"), key=lambda path: ("alpha" not in path.parts[-2], path)):
        for name, body in STRUCT.findall(file.read_text()):
            found.setdefault(name, {}).update(TAGGED.findall(body))
    return found


def typed(text: str, group: str, aliases: dict[str, str], structs: set[str]) -> str:
    """The short form of a Go type."""
    for prefix, letter in (("*", "p"), ("[]", "l")):
        if text.startswith(prefix) and text != "[]byte":
            return letter + typed(text.removeprefix(prefix), group, aliases, structs)
    if text.startswith("map["):
        return "m" + typed(text.partition("]")[2], group, aliases, structs)
    known = {**BASE, **KNOWN}.get(text)
    if known:
        return known
    name = text.replace("api.", "core.") if "." in text else f"{group}.{text}"
    if name in structs:
        return f"@{name}"
    return typed(aliases[name], group, aliases, structs) if name in aliases else "j"


def main() -> None:
    """Read every group's internal types."""
    kubernetes, api = (Path(argument) for argument in sys.argv[1:3])
    sources = {group: (kubernetes / "pkg/apis" / group / "types.go").read_text() for group in GROUPS}
    structs = {f"{group}.{name}" for group, text in sources.items() for name, _ in STRUCT.findall(text)}
    aliases = {f"{group}.{name}": base for group, text in sources.items() for name, base in ALIAS.findall(text)}
    found: dict[str, list[list[str]]] = {}
    for group, text in sources.items():
        names = wire_names(api, group)
        for struct, body in STRUCT.findall(text):
            members: list[list[str]] = []
            for line in body.splitlines():
                embedded, member = EMBEDDED.match(line), MEMBER.match(line)
                if embedded and (embedded[1] == "metav1.ObjectMeta" or f"{group}.{embedded[1]}" in structs):
                    kind = "o" if embedded[1] == "metav1.ObjectMeta" else f"@{group}.{embedded[1]}"
                    members.append([embedded[1], "", kind])
                elif member and not line.strip().startswith("//"):
                    wire = names.get(struct, {}).get(member[1], member[1][0].lower() + member[1][1:])
                    members.append([member[1], wire, typed(member[2], group, aliases, structs)])
            found[f"{group}.{struct}"] = members
    encoded = json.dumps(dict(sorted(found.items())), separators=(",", ":")).encode()
    TARGET.write_bytes(gzip.compress(encoded, 9, mtime=0))
    print(f"{len(found)} structs, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()

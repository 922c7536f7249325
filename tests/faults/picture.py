"""What a user can see of a cluster, without what differs from one run to the next: names by chance, times, places."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from spinney.api import labels
from spinney.api.meta import Json
from spinney.embedded.apiserver.store.conversion import load
from spinney.embedded.apiserver.store.store import Event, Store

# Written all the time, or told in passing.
_LEFT_OUT = ("leases", "events", "customresourcedefinitions", "nodes", "endpointslices", "endpoints")
_CHANCE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"'<uid>'"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "<time>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<address>"),
    (re.compile(r"\bnode-\d+\b"), "<node>"),
    (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-*"),
    (re.compile(r'"(token|caBundle|(tls|ca)\.(crt|key)|spinney\.dev/applied)": "[^"]+"'), r'"\1": "*"'),
    (re.compile(r"-[a-z0-9]{7}-shared-gpu"), "-*-shared-gpu"),
    (re.compile(r"gpu-reservation-[0-9a-f]{16}"), "gpu-reservation-*"),
)
# What counts writes and decisions.
_COUNTERS = {
    "resourceVersion",
    "managedFields",
    "generation",
    "observedGeneration",
    "transitionID",
    labels.DECISION_MEMBERS,
}

Picture = Counter[str]


def picture(store: Store) -> Picture:
    """Every object as a line of JSON, and how often there is one like it."""
    items = [item for name, table in store.tables.items() if _shown(name) for item in table.items.values()]
    documents = [document for item in items if not _done(document := load(item))]
    names = _generated(documents)
    return Counter(_plain(document, names) for document in documents)


def _shown(table: str) -> bool:
    return table.rpartition("/")[2] not in _LEFT_OUT


def _done(document: Json) -> bool:
    """Whether it is a request that was fulfilled, which may stay or go, or what the scheduler remembers."""
    if document["kind"] == "ConfigMap":
        return bool(document["metadata"]["name"].endswith("-record"))
    return document["kind"] == "BindRequest" and document.get("status", {}).get("phase") == "Succeeded"


def _generated(documents: list[Json]) -> dict[str, str]:
    """Names that end by chance, and what they begin with."""
    found = {}
    for document in documents:
        metadata = document["metadata"]
        if prefix := metadata.get("generateName"):
            found[metadata["name"]] = f"{prefix}*"
    return found


def _plain(document: Json, names: dict[str, str]) -> str:
    text = json.dumps(_without_counters(document), sort_keys=True)
    for name, plain in names.items():
        text = text.replace(name, plain)
    return _without_chance(text)


def _without_chance(text: str) -> str:
    for pattern, plain in _CHANCE:
        text = pattern.sub(plain, text)
    return text


def _without_counters(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_counters(each) for key, each in value.items() if key not in _COUNTERS}
    if isinstance(value, list):
        plain = [_without_counters(each) for each in value]
        return sorted(plain, key=_type) if all(_type(each) for each in plain) else plain
    return value


def _type(value: object) -> str:
    """The type of a condition: their order tells nothing."""
    return str(value.get("type", "")) if isinstance(value, dict) else ""


def differences(expected: Picture, found: Picture) -> str:
    """What is missing and what is there instead: whole objects by name, and of those that changed what did."""
    missing, surplus = list((expected - found).elements()), list((found - expected).elements())
    lines = []
    for text in missing:
        twin = next((each for each in surplus if _title(each) == _title(text)), None)
        if twin is None:
            lines.append(f"- {_title(text)}")
            continue
        surplus.remove(twin)
        before, after = set(_leaves(json.loads(text))), set(_leaves(json.loads(twin)))
        lines.append(f"~ {_title(text)}")
        lines += [f"    - {leaf}" for leaf in sorted(before - after)] + [
            f"    + {leaf}" for leaf in sorted(after - before)
        ]
    return "\n".join(dict.fromkeys([*lines, *(f"+ {_title(text)}" for text in surplus)]))


def _title(text: str) -> str:
    document = json.loads(text)
    metadata = document["metadata"]
    return f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def _leaves(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}[{number}]")
    else:
        yield f"{path} = {value!r}"


class Births:
    """Counts the pods that users ever got, by what their names begin with; reservations come and go with placement."""

    def __init__(self, store: Store, table: str) -> None:
        self.counts: Counter[str] = Counter()
        store.table(table).listeners.append(self._tell)

    def _tell(self, event: Event) -> None:
        if event.old is None and "gpu-reservation" not in event.new.name:
            metadata = load(event.new)["metadata"]
            self.counts[_without_chance(metadata.get("generateName") or metadata["name"])] += 1

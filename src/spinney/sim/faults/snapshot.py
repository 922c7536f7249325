"""Snapshots of a cluster that two runs can be compared by: without names, times and places that chance decides."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from spinney.api import labels, reasons
from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.pod_spec_cache import PODS
from spinney.embedded.apiserver.store.store import Event, Store, load

# Left out: written all the time.
_LEFT_OUT = ("leases", "events", "customresourcedefinitions", "nodes", "endpointslices", "endpoints")
_RANDOM = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"'<uid>'"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"), "<time>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<address>"),
    (re.compile(r"\bnode-\d+\b"), "<node>"),
    (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-*"),
    (re.compile(r'"(token|caBundle|(tls|ca)\.(crt|key)|spinney\.dev/applied)": "[^"]+"'), r'"\1": "*"'),
    (re.compile(r"-[a-z0-9]{7}-shared-gpu"), "-*-shared-gpu"),
    (re.compile(r"gpu-reservation-[0-9a-f]{16}"), "gpu-reservation-*"),
    # Which of equal devices a claim gets follows from the order in which pods come.
    (re.compile(r'"device": "gpu-\d+"'), '"device": "gpu-*"'),
    # Which of equal pods goes first follows from the second in which each was created.
    (re.compile(rf'"{labels.POD_INDEX}": "\d+"'), f'"{labels.POD_INDEX}": "*"'),
    (re.compile(r'("hostname": "[^"]+-)\d+"'), r'\1*"'),
)
# Counters of writes and decisions.
_COUNTERS = {
    "resourceVersion",
    "managedFields",
    "generation",
    "observedGeneration",
    "transitionID",
    labels.DECISION_MEMBERS,
}

# Conditions that stay after a problem, with the status that says that it is over.
_OVER = {reasons.SURPLUS_WAITING: "False", reasons.TOPOLOGY_VIOLATED: "False", reasons.POD_BOUND: "True"}

# Objects as lines of JSON, and how often each occurs.
Snapshot = Counter[str]


def take_snapshot(store: Store) -> Snapshot:
    """The objects of a store."""
    items = [item for name, table in store.tables.items() if _shown(name) for item in table.items.values()]
    normalized = [each for item in items if (each := _normalized(item.body)) is not None]
    names = {name: replacement for _, own in normalized for name, replacement in own}
    return Counter(_renamed(text, names) for text, _ in normalized)


def _shown(table: str) -> bool:
    return table.rpartition("/")[2] not in _LEFT_OUT


def _transient(document: Json) -> bool:
    """Whether it may be there or not: a fulfilled BindRequest, or the scheduler's record."""
    if document["kind"] == "ConfigMap":
        return bool(document["metadata"]["name"].endswith("-record"))
    return bool(document["kind"] == "BindRequest" and document.get("status", {}).get("phase") == "Succeeded")


@lru_cache(maxsize=4096)
def _normalized(body: bytes) -> tuple[str, list[tuple[str, str]]] | None:
    """An object as a line, and the random names that it gives with what replaces them; None for transient objects."""
    document: Json = msgspec.json.decode(body)
    if _transient(document):
        return None
    text = _without_random(json.dumps(_without_counters(document), sort_keys=True))
    metadata = document["metadata"]
    names = []
    if prefix := metadata.get("generateName"):
        names.append((_without_random(metadata["name"]), f"{prefix}*"))
    if document["kind"] == "PodGang":
        # Backends put it into the names of what they make for a gang.
        names.append((metadata["uid"][:8], "<uid>"))
    return text, names


def _renamed(text: str, names: dict[str, str]) -> str:
    for name, replacement in names.items():
        if name in text:
            text = text.replace(name, replacement)
    return text


def _without_random(text: str) -> str:
    for pattern, replacement in _RANDOM:
        text = pattern.sub(replacement, text)
    return text


def _without_counters(value: object) -> object:
    if isinstance(value, dict):
        # An empty map says no more than none.
        members = ((key, _without_counters(each)) for key, each in value.items() if key not in _COUNTERS)
        return {key: each for key, each in members if each != {}}
    if isinstance(value, list):
        plain = [_without_counters(each) for each in value if not _is_over(each)]
        return sorted(plain, key=_type) if all(_type(each) for each in plain) else plain
    return value


def _is_over(value: object) -> bool:
    """True for the condition of a problem that is over: with another order of events it may never appear."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return _OVER.get(value["type"], "") == value.get("status")


def _type(value: object) -> str:
    """The type of a condition: the order of conditions means nothing."""
    return str(value.get("type", "")) if isinstance(value, dict) else ""


def differences(expected: Snapshot, actual: Snapshot) -> str:
    """Missing and surplus objects by name, and the changed fields of those that are in both."""
    missing, surplus = list((expected - actual).elements()), list((actual - expected).elements())
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


class CreatedPods:
    """Counts the pods ever created by name prefix, reservation pods apart: those depend on placement."""

    def __init__(self, store: Store) -> None:
        self.counts: Counter[str] = Counter()
        store.table(PODS).listeners.append(self._count)

    def _count(self, event: Event) -> None:
        if event.old is None and "gpu-reservation" not in event.new.name:
            metadata = load(event.new)["metadata"]
            self.counts[_without_random(metadata.get("generateName") or metadata["name"])] += 1

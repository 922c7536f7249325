"""Start-up order, as the init container enforces it: wait until enough pods of every parent clique are ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from spinney.api import labels, reasons
from spinney.api.conditions import is_true
from spinney.api.core import Pod
from spinney.api.numbers import whole_number
from spinney.api.pod import Container
from spinney.kube.client.client import Client
from spinney.kube.errors import ConnectionLost, Gone

# Clique name → pods that must be ready.
Parents = Mapping[str, int]

_FLAG = "--podcliques"


class UsageError(ValueError):
    """Arguments that do not name cliques and counts."""


def parents_from(arguments: Iterable[str]) -> dict[str, int]:
    """`--podcliques=<clique>:<count>` in any number, as one value each or separated by commas."""
    words = list(arguments)
    values: list[str] = []
    while words:
        word = words.pop(0)
        flag, sign, value = word.partition("=")
        if flag != _FLAG or (not sign and not words):
            raise UsageError(f"{word!r}: expected {_FLAG}=<clique>:<count>")
        values.append(value if sign else words.pop(0))
    return parse_parents(values)


def parse_parents(values: Iterable[str]) -> dict[str, int]:
    """Parse texts of the form `<clique>:<count>`."""
    parents: dict[str, int] = {}
    for entry in (part.strip() for value in values for part in value.split(",")):
        name, _, count = entry.rpartition(":")
        number = whole_number(count)
        if not name or number is None:
            raise UsageError(f"{_FLAG}={entry}: expected <clique>:<count>, such as inference-0-prefill:2")
        parents[name] = number
    return parents


async def wait_for_parents(client: Client, namespace: str, gang: str, parents: Parents) -> None:
    """Return once every parent has enough ready pods; it watches, and never polls."""
    selector = f"{labels.PODGANG}={gang}"
    while True:
        listing = await client.list(Pod, namespace, labels=selector)
        ready = {pod.name: _clique(pod) for pod in listing.items if _is_ready(pod)}
        if _enough(ready, parents):
            return
        events = client.watch(Pod, namespace, resource_version=listing.resource_version, labels=selector)
        try:
            async for event in events:
                if event.object is None:
                    continue
                ready.pop(event.object.name, None)
                if event.type != "DELETED" and _is_ready(event.object):
                    ready[event.object.name] = _clique(event.object)
                if _enough(ready, parents):
                    return
        except (Gone, ConnectionLost):
            continue


async def program(client: Client, pod: Pod, container: Container) -> int:
    """What a simulated kubelet runs in place of the init container's process."""
    gang = pod.metadata.labels.get(labels.PODGANG, "")
    await wait_for_parents(client, pod.namespace, gang, parents_from(container.args))
    return 0


def _clique(pod: Pod) -> str:
    # By label: names of cliques may begin with each other.
    return pod.metadata.labels.get(labels.PODCLIQUE, "")


def _is_ready(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and is_true(pod.status.conditions, reasons.POD_READY)


def _enough(ready: Mapping[str, str], parents: Parents) -> bool:
    counts = Counter(ready.values())
    return all(counts[name] >= wanted for name, wanted in parents.items())

"""YuniKorn's queues: a tree in a ConfigMap, and rules that may place applications elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spinney.api.core import ConfigMap
from spinney.api.meta import Json
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.backends.interface import Setting
from spinney.backends.queue_names import unknown_queue

# The name that YuniKorn itself looks for.
_CONFIG = Setting(ConfigMap.resource, "yunikorn-configs")
SETTINGS = (_CONFIG,)


def missing_queue(queue: str, settings: Mapping[Setting, Json]) -> str:
    """A sentence if YuniKorn would refuse a queue; empty otherwise, or if nobody can tell."""
    config = settings.get(_CONFIG)
    partition = _partition(config) if config is not None else None
    if not queue or partition is None or partition.get("placementrules"):
        # Rules may create the queue, or choose another one.
        return ""
    names = list(_leaves(partition.get("queues") or (), ""))
    return unknown_queue(queue if queue.startswith("root.") else f"root.{queue}", names, "queue")


def ignored_queue(queue: str, settings: Mapping[Setting, Json]) -> str:
    """Why YuniKorn places applications elsewhere than they ask; empty if it does not, or if nobody can tell."""
    config = settings.get(_CONFIG)
    partition = _partition(config) if config is not None else None
    rules = _rules(partition.get("placementrules")) if partition is not None else []
    if not queue or config is None or not rules or "provided" in rules:
        return ""
    metadata = config["metadata"]
    return (
        f"the placement rules of ConfigMap {metadata.get('namespace', '')}/{metadata['name']} ({', '.join(rules)}) "
        "choose the queue by themselves: add the rule provided to them"
    )


def _rules(rules: object) -> list[str]:
    return [str(rule.get("name")) for rule in rules] if isinstance(rules, list) else []


def _partition(config: Json) -> Json | None:
    """The default partition of the configuration; None if it cannot be read."""
    try:
        partitions = read_yaml((config.get("data") or {})["queues.yaml"])["partitions"]
        return next(dict(partition) for partition in partitions if partition["name"] == "default")
    except (YamlError, KeyError, TypeError, StopIteration):
        return None


def _leaves(queues: object, parent: str) -> Iterator[str]:
    for queue in queues if isinstance(queues, (list, tuple)) else ():
        name = f"{parent}.{queue['name']}" if parent else str(queue["name"])
        below = queue.get("queues") or ()
        yield from _leaves(below, name) if below else (name,)

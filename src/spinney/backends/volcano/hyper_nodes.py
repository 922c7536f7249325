"""Volcano's topology: HyperNodes whose tier names are node label keys, and the plugin that reads them.

Volcano ignores a tier that no HyperNode has, and every tier where the plugin is off: the gang goes anywhere, without a
word. So both are checked before a gang is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spinney.api.core import ConfigMap
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.meta import Json
from spinney.api.podgang import PodGang
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.backends.capabilities import Capabilities, Loss
from spinney.backends.interface import Cluster, Setting
from spinney.backends.required_features import Constraint, packed, topology_requirements

PLUGIN = "network-topology-aware"
# The name that Volcano's chart and manifests give it.
_CONFIG = Setting(ConfigMap.resource, "volcano-scheduler-configmap")
SETTINGS = (_CONFIG,)


def network(constraint: Constraint | None) -> Json | None:
    """A constraint in Volcano's words."""
    required, preferred = packed(constraint)
    if required:
        return {"mode": "hard", "highestTierName": required}
    return {"mode": "soft", "highestTierName": preferred} if preferred else None


def lacking(gang: PodGang, cluster: Cluster, capabilities: Capabilities) -> Iterator[Loss]:
    """What of a gang's topology Volcano would ignore on this cluster."""
    for requirement in topology_requirements(gang):
        missing = _plugin_off(cluster.settings) or _missing_tier(requirement.asked, cluster.topology)
        if capabilities.has(requirement.feature) and missing:
            yield replace(requirement, missing=missing)


def problems(cluster: Cluster) -> tuple[str, ...]:
    """What keeps topology from working."""
    messages = [_plugin_off(cluster.settings)]
    if cluster.topology is not None and not tiers(cluster.topology):
        messages.append("there are no HyperNodes with tier names: let Volcano discover them by label, or create them")
    return tuple(f"topology: {problem}" for problem in messages if problem)


def tiers(listed: Sequence[Json]) -> dict[str, int]:
    """Tier name → tier."""
    specs = [node.get("spec") or {} for node in listed]
    return {str(spec["tierName"]): int(spec.get("tier") or 0) for spec in specs if spec.get("tierName")}


def binding_drift(binding: ClusterTopologyBinding, listed: Sequence[Json]) -> str:
    """Whether there are HyperNodes for every level, narrower levels on lower tiers."""
    by_name = tiers(listed)
    keys = [level.key for level in binding.spec.levels]
    missing = [key for key in keys if key not in by_name]
    if missing:
        return f"no HyperNode has the tier name {', '.join(missing)} (found: {', '.join(sorted(by_name)) or 'none'})"
    order = [by_name[key] for key in keys]
    if order != sorted(order, reverse=True):
        return f"the HyperNode tiers of {', '.join(keys)} are {order}; broader levels must have higher tiers"
    return ""


def _missing_tier(key: str, listed: Sequence[Json] | None) -> str:
    if listed is None:
        return ""
    by_name = tiers(listed)
    if key in by_name:
        return ""
    return (
        f"no HyperNode has the tier name {key} (found: {', '.join(sorted(by_name)) or 'none'}): let Volcano discover "
        "HyperNodes by that label, or create them"
    )


def _plugin_off(settings: Mapping[Setting, Json]) -> str:
    """Why Volcano reads no HyperNodes; empty if it does, or if nobody can tell."""
    config = settings.get(_CONFIG)
    if config is None or PLUGIN in (_plugins(config) or [PLUGIN]):
        return ""
    metadata = config["metadata"]
    return (
        f"ConfigMap {metadata.get('namespace', '')}/{metadata['name']} does not switch on the plugin {PLUGIN}: add it "
        "to a tier of volcano-scheduler.conf"
    )


def _plugins(config: Json) -> list[str]:
    """The plugins of a scheduler configuration; none if it cannot be read."""
    try:
        tiers_of_plugins = read_yaml((config.get("data") or {})["volcano-scheduler.conf"])["tiers"]
        return [str(plugin["name"]) for tier in tiers_of_plugins for plugin in tier.get("plugins") or ()]
    except (YamlError, KeyError, TypeError, AttributeError):
        return []

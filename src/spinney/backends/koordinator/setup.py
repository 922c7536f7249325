"""Whether Koordinator is set up for topology: a flag of its scheduler, an argument of its plugin, and layers."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api.apps import Deployment
from spinney.api.core import ConfigMap
from spinney.api.meta import Json
from spinney.api.yaml_reader import YamlError, read_yaml
from spinney.backends.interface import Cluster, Setting
from spinney.backends.koordinator.topology import layers_of

# The names that Koordinator's chart gives them.
_DEPLOYMENT = Setting(Deployment.resource, "koord-scheduler")
_CONFIG = Setting(ConfigMap.resource, "koord-scheduler-config")
SETTINGS = (_DEPLOYMENT, _CONFIG)
_FLAG = "--enable-network-topology-manager"


def topology_switched_off(settings: Mapping[Setting, Json]) -> str:
    """Why Koordinator knows no topology, and how to change that; empty if it does, or if nobody can tell."""
    deployment, config = settings.get(_DEPLOYMENT), settings.get(_CONFIG)
    if deployment is not None and not _has_flag(deployment):
        return f"Deployment {_called(deployment)} runs without {_FLAG}: add it to the container's arguments"
    if config is not None and not _is_topology_aware(config):
        return (
            f"ConfigMap {_called(config)} does not set awareNetworkTopology: true in the arguments of the plugin "
            "Coscheduling: add it"
        )
    return ""


def problems(cluster: Cluster) -> tuple[str, ...]:
    """What is missing for topology."""
    switched_off = topology_switched_off(cluster.settings)
    messages = [f"topology: {switched_off}"] if switched_off else []
    if cluster.topology is not None and not layers_of(cluster.topology):
        messages.append("topology: there is no ClusterNetworkTopology named default with layers: create one")
    return tuple(messages)


def _has_flag(deployment: Json) -> bool:
    containers = deployment["spec"]["template"]["spec"].get("containers") or ()
    words = [str(word) for each in containers for word in (*(each.get("command") or ()), *(each.get("args") or ()))]
    return any(word in (_FLAG, f"{_FLAG}=true") for word in words)


def _is_topology_aware(config: Json) -> bool:
    """Whether a profile of the configuration makes the plugin aware of topology; True if it cannot be read."""
    try:
        profiles = read_yaml((config.get("data") or {})["koord-scheduler-config"])["profiles"]
        arguments = [each.get("args") or {} for profile in profiles for each in profile.get("pluginConfig") or ()]
        return any(argument.get("awareNetworkTopology") is True for argument in arguments)
    except (YamlError, KeyError, TypeError, AttributeError):
        return True


def _called(item: Json) -> str:
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"

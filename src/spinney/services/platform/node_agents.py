"""Agents that run on every node: the exporter of NUMA placements."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from spinney.api import labels
from spinney.api.deployment import ServiceConfig
from spinney.api.duration import seconds
from spinney.api.kaiconfig import ConfigSpec, Global, NumaPlacementExporter
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json
from spinney.services.numa.exporter import NumaSettings
from spinney.services.platform.deployments import image_of, named, pull_secrets, settings_of
from spinney.services.platform.processes import Process, namespace_of, needs_of

NAME = "numa-placement-exporter"
_POD_RESOURCES = "/var/lib/kubelet/pod-resources"
_KUBELET, _SYSFS, _CONFIG = "/host/kubelet", "/host/sys", "/etc/spinney"


def plan_exporter(config: ConfigSpec, shards: Iterable[SchedulingShard]) -> list[Process]:
    """The exporter, if Config enables it, or by default if a shard aligns by NUMA zones."""
    block = config.numa_placement_exporter or NumaPlacementExporter()
    service = block.service or ServiceConfig()
    enabled = service.enabled if service.enabled is not None else any(_aligns(shard) for shard in shards)
    if not enabled:
        return []
    every = seconds(block.poll_interval) if block.poll_interval else 1.0
    settings = NumaSettings(kubelet=_KUBELET, sysfs=_SYSFS, poll_seconds=every)
    return [Process(name=NAME, component=NAME, account=NAME, settings=settings, service=service, on_every_node=True)]


def _aligns(shard: SchedulingShard) -> bool:
    plugin = shard.spec.plugins.get("numa")
    return plugin is not None and plugin.enabled is not False


def plan_daemon_set(process: Process, config: ConfigSpec, image: str) -> list[Json]:
    """The settings and the DaemonSet of the exporter, for nodes that have NUMA zones."""
    config_map, template = settings_of(process, config)
    template["spec"] = _pod(process, config, image)
    daemon_set = named("apps/v1", "DaemonSet", NAME, namespace_of(config))
    daemon_set["spec"] = {"selector": {"matchLabels": {labels.APP: NAME}}, "template": template}
    return [config_map, daemon_set]


def _pod(process: Process, config: ConfigSpec, image: str) -> Json:
    block = config.numa_placement_exporter or NumaPlacementExporter()
    common = config.global_ or Global()
    # The kubelet's state is beside the socket that upstream's exporter uses.
    kubelet = str(PurePosixPath(block.pod_resources_host_path or _POD_RESOURCES).parent)
    folders = (("kubelet", kubelet, _KUBELET), ("sysfs", block.sysfs_host_path or "/sys", _SYSFS))
    container: Json = {
        "name": NAME,
        **image_of(process, image),
        # Each acts for its own node only.
        "args": ["run", NAME, "--config", f"{_CONFIG}/config.yaml", "--no-leader-election"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": needs_of(process),
        # The kubelet's files belong to root.
        "securityContext": {
            "runAsUser": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            *({"name": name, "mountPath": inside, "readOnly": True} for name, _, inside in folders),
        ],
    }
    volumes: list[Json] = [{"name": "config", "configMap": {"name": NAME}}]
    volumes += [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path, _ in folders]
    tolerations = block.tolerations or common.daemonsets_tolerations
    optional: Json = {
        "tolerations": [msgspec.to_builtins(toleration) for toleration in tolerations],
        "imagePullSecrets": pull_secrets(common),
        "priorityClassName": common.priority_class_name,
    }
    return {
        "serviceAccountName": NAME,
        "nodeSelector": block.node_selector or {"feature.node.kubernetes.io/memory-numa": "true"},
        "containers": [container],
        "volumes": volumes,
        **{key: value for key, value in optional.items() if value},
    }

"""What runs on every node: the exporter of NUMA placements, deployed where a scheduler aligns by them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec
import yaml

from spinney.api import labels
from spinney.api.deployment import ServiceConfig
from spinney.api.duration import seconds
from spinney.api.kaiconfig import ConfigSpec, Global, NumaPlacementExporter
from spinney.api.kaishard import SchedulingShard
from spinney.api.meta import Json
from spinney.services.numa.exporter import NumaSettings
from spinney.services.platform.deployments import named
from spinney.services.platform.processes import Process, image_name, namespace_of, needs_of

NAME = "numa-placement-exporter"
_POD_RESOURCES = "/var/lib/kubelet/pod-resources"
_KUBELET, _SYSFS, _CONFIG = "/host/kubelet", "/host/sys", "/etc/spinney"


def plan_exporter(config: ConfigSpec, shards: Iterable[SchedulingShard]) -> list[Process]:
    """The exporter, unless it is switched off, or nobody says a word and no shard aligns."""
    said = config.numa_placement_exporter or NumaPlacementExporter()
    service = said.service or ServiceConfig()
    enabled = service.enabled if service.enabled is not None else any(_aligns(shard) for shard in shards)
    if not enabled:
        return []
    every = seconds(said.poll_interval) if said.poll_interval else 1.0
    settings = NumaSettings(kubelet=_KUBELET, sysfs=_SYSFS, poll_seconds=every)
    return [Process(name=NAME, component=NAME, account=NAME, settings=settings, service=service, on_every_node=True)]


def _aligns(shard: SchedulingShard) -> bool:
    plugin = shard.spec.plugins.get("numa")
    return plugin is not None and plugin.enabled is not False


def plan_daemon_set(process: Process, config: ConfigSpec, image: str) -> list[Json]:
    """Its settings and its pods, on the nodes that have zones."""
    namespace = namespace_of(config)
    file = yaml.safe_dump(msgspec.to_builtins(process.settings), sort_keys=True)
    daemon_set = named("apps/v1", "DaemonSet", NAME, namespace)
    digest = hashlib.sha256(file.encode()).hexdigest()[:16]
    metadata = {"labels": {labels.APP: NAME}, "annotations": {"configMapVersion": digest}}
    daemon_set["spec"] = {
        "selector": {"matchLabels": {labels.APP: NAME}},
        "template": {"metadata": metadata, "spec": _pod(process, config, image)},
    }
    return [{**named("v1", "ConfigMap", NAME, namespace), "data": {"config.yaml": file}}, daemon_set]


def _pod(process: Process, config: ConfigSpec, image: str) -> Json:
    said = config.numa_placement_exporter or NumaPlacementExporter()
    common = config.global_ or Global()
    # The kubelet keeps its state beside the socket that upstream's exporter talks to.
    kubelet = str(PurePosixPath(said.pod_resources_host_path or _POD_RESOURCES).parent)
    folders = (("kubelet", kubelet, _KUBELET), ("sysfs", said.sysfs_host_path or "/sys", _SYSFS))
    container: Json = {
        "name": NAME,
        "image": image_name(process.service.image, image),
        "imagePullPolicy": (process.service.image.pull_policy if process.service.image else "") or "IfNotPresent",
        # Each acts for its own node: there is nobody to elect.
        "args": ["run", NAME, "--config", f"{_CONFIG}/config.yaml", "--no-leader-election"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": needs_of(process),
        # The kubelet's files are root's.
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "allowPrivilegeEscalation": False},
        "volumeMounts": [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            *({"name": name, "mountPath": inside, "readOnly": True} for name, _, inside in folders),
        ],
    }
    volumes: list[Json] = [{"name": "config", "configMap": {"name": NAME}}]
    volumes += [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path, _ in folders]
    tolerations = said.tolerations or common.daemonsets_tolerations
    secrets = dict.fromkeys((*common.additional_image_pull_secrets, *filter(None, [common.images_pull_secret])))
    optional: Json = {
        "tolerations": [msgspec.to_builtins(toleration) for toleration in tolerations],
        "imagePullSecrets": [{"name": name} for name in secrets],
        "priorityClassName": common.priority_class_name,
    }
    return {
        "serviceAccountName": NAME,
        "nodeSelector": said.node_selector or {"feature.node.kubernetes.io/memory-numa": "true"},
        "containers": [container],
        "volumes": volumes,
        **{key: value for key, value in optional.items() if value},
    }

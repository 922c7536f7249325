"""What workloads need: nodes with GPUs and topology labels, and queues that users may use."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import labels
from spinney.api.core import Node
from spinney.api.grove import ClusterTopologyBinding
from spinney.api.kai import Config, Queue, Topology
from spinney.api.kaiconfig import Admission
from spinney.api.rbac import ClusterRole
from spinney.app.doctor.findings import Finding, Target, shortened
from spinney.app.installation import RUNTIME_CLASS


async def check_nodes(target: Target) -> list[Finding]:
    """Nodes without GPUs, and without the labels of topologies."""
    nodes = (await target.client.list(Node)).items
    without = sorted(node.name for node in nodes if not _gpus(node))
    if not nodes:
        return [Finding(check="nodes", status="problem", text="there are no nodes", advice="add some")]
    if len(without) == len(nodes):
        text = f"none of {len(nodes)} nodes offers {labels.GPU_RESOURCE}"
        advice = "pods that ask for GPUs wait: run a device plugin (NVIDIA's GPU operator), or use DRA"
        findings = [Finding(check="nodes", status="note", text=text, advice=advice)]
    else:
        text = f"{len(nodes) - len(without)} of {len(nodes)} nodes offer GPUs"
        tail = f"; without: {shortened(without)}" if without else ""
        findings = [Finding(check="nodes", status="ok", text=text + tail)]
    return findings + await _topology(target, nodes)


async def _topology(target: Target, nodes: list[Node]) -> list[Finding]:
    levels = {
        f"ClusterTopologyBinding {binding.name}": [level.key for level in binding.spec.levels]
        for binding in (await target.client.list(ClusterTopologyBinding)).items
    }
    for topology in (await target.client.list(Topology)).items:
        levels[f"Topology {topology.name}"] = [level.node_label for level in topology.spec.levels]
    findings = []
    for name, keys in levels.items():
        for key in keys:
            lacking = sorted(node.name for node in nodes if key not in node.metadata.labels)
            if lacking:
                text = f"{name}: {len(lacking)} of {len(nodes)} nodes lack the label {key}: {shortened(lacking)}"
                advice = (
                    f"kubectl label node {lacking[0]} {key}=VALUE; without it, gangs that need the level avoid them"
                )
                findings.append(Finding(check="topology", status="warning", text=text, advice=advice))
    if levels and not findings:
        text = f"all nodes have the labels of {shortened(list(levels))}"
        findings.append(Finding(check="topology", status="ok", text=text))
    return findings


def _gpus(node: Node) -> bool:
    return float(node.status.allocatable.get(labels.GPU_RESOURCE, 0) or 0) > 0


async def check_fractions(target: Target) -> list[Finding]:
    """Whether pods that ask for a part of a GPU get a RuntimeClass that exists: Kubernetes refuses them otherwise."""
    for config in (await target.client.list(Config)).items:
        admission = config.spec.admission or Admission()
        name = admission.gpu_fraction_runtime_class_name
        name = "nvidia" if name is None else name
        if not admission.gpu_sharing or not name or await target.client.find(RUNTIME_CLASS, name) is not None:
            continue
        text = f"there is no RuntimeClass {name}: pods that ask for a part of a GPU are refused"
        advice = "NVIDIA's GPU operator creates it; with fake GPUs, create one with handler runc"
        return [Finding(check="fractions", status="note", text=text, advice=advice)]
    return []


async def check_queues(target: Target) -> list[Finding]:
    """Queues that no user may use, or that nothing fits into."""
    queues = {queue.name: queue for queue in (await target.client.list(Queue)).items}
    if not queues:
        advice = "kubectl apply a Queue, or let the installation create the default ones (queues.enabled)"
        return [Finding(check="queues", status="warning", text="there are no queues", advice=advice)]
    findings = [finding for queue in queues.values() for finding in _queue(queue, queues)]
    findings += await _access(target, queues.values())
    return findings or [Finding(check="queues", status="ok", text=f"{len(queues)} queues can be used")]


def _queue(queue: Queue, queues: dict[str, Queue]) -> Iterable[Finding]:
    above = queue.spec.parent_queue
    if above and above not in queues:
        text = f"queue {queue.name}: its parent {above} does not exist"
        advice = f"create Queue {above}, or name another spec.parentQueue"
        yield Finding(check="queues", status="problem", text=text, advice=advice)
    resources = queue.spec.resources
    for kind in ("gpu", "cpu", "memory"):
        share = getattr(resources, kind) if resources is not None else None
        if share is not None and share.limit == 0:
            text = f"queue {queue.name}: its limit of {kind} is 0, so nothing that needs {kind} runs"
            advice = f"set spec.resources.{kind}.limit to -1, or to what it may use"
            yield Finding(check="queues", status="warning", text=text, advice=advice)


async def _access(target: Target, queues: Iterable[Queue]) -> list[Finding]:
    """Queues for which no role gives the right `use`, where that right is asked for."""
    configs = (await target.client.list(Config)).items
    if not any(each.metadata.annotations.get(labels.REVIEW_QUEUE_ACCESS) == "true" for each in configs):
        return []
    rules = [rule for role in (await target.client.list(ClusterRole)).items for rule in role.rules]
    granting = [rule for rule in rules if "use" in rule.verbs and "queues" in rule.resources]
    unused = [
        queue.name
        for queue in queues
        if not any(not rule.resource_names or queue.name in rule.resource_names for rule in granting)
    ]
    if not unused:
        return []
    text = f"nobody but administrators may use {shortened(sorted(unused))}"
    advice = f"kubectl create clusterrole NAME --verb=use --resource=queues --resource-name={unused[0]}, and bind it"
    return [Finding(check="queues", status="warning", text=text, advice=advice)]

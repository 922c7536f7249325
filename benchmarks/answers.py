"""How long answers take once everything is read: each verb, a what-if and a defragmentation on a large cluster.

Usage: python benchmarks/answers.py [--nodes 1000] [--pods 20000] [--repeat 3] [--trace FILE] [--out DIR]
Times are CPU seconds of one thread, the best of some. `read` is what is done once for all verbs: objects into arrays,
and the scheduler's plan. With a trace whose run times are known, it also tells how good expected starts are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spinney.answers.capacity import capacity
from spinney.answers.cluster import Cluster
from spinney.answers.defrag import defrag
from spinney.answers.evictions import evictions
from spinney.answers.explanation import explanations
from spinney.answers.finding import find
from spinney.answers.queues import queues
from spinney.answers.reading import Objects, cluster_of
from spinney.answers.tree import tree_of
from spinney.answers.whatif.changes import AddNodes, DrainNode, SetQuota
from spinney.answers.whatif.difference import whatif
from spinney.answers.workloads import prospects_of, workloads
from spinney.api.core import Node, Pod
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import convert
from spinney.kube.clock import StoppedClock
from spinney.kube.gc_tuning import collect_rarely
from spinney.scheduler.config import Config
from spinney.sim.replay.foresight import foresight
from spinney.sim.replay.reading import read_trace

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
CREATED = "2026-05-04T11:00:00Z"
GANG = 4
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
Json = dict[str, Any]


def objects(nodes: int, pods: int) -> Objects:
    """Nodes of eight GPUs, six of them in use; pods without GPUs beside them; a tenth of the pods waits in gangs."""
    collected = Objects()
    collected.lists[Node.resource] = [convert(Node, _node(number)) for number in range(nodes)]
    collected.lists[Queue.resource] = [convert(Queue, _queue(number)) for number in range(20)]
    groups, members = [], []
    for number in range(pods // GANG):
        waits = number % 10 == 0
        node = "" if waits else f"node-{number % nodes}"
        gpus = 4 if waits else (1 if number < nodes * 6 // GANG * 10 // 9 else 0)
        groups.append(convert(PodGroup, _group(number)))
        members += [convert(Pod, _pod(number, each, node, gpus)) for each in range(GANG)]
    collected.lists[PodGroup.resource] = groups
    collected.lists[Pod.resource] = members
    return collected


def _node(number: int) -> Json:
    size = {"cpu": "128", "memory": "1Ti", "pods": "250", "nvidia.com/gpu": "8"}
    marks = {"kubernetes.io/hostname": f"node-{number}", "kubernetes.io/rack": f"rack-{number // 20}"}
    return {"metadata": {"name": f"node-{number}", "labels": marks}, "status": {"allocatable": size}}


def _queue(number: int) -> Json:
    resources = {"gpu": {"quota": 300, "limit": -1, "overQuotaWeight": 1}, "cpu": FREE, "memory": FREE}
    return {"metadata": {"name": f"queue-{number}"}, "spec": {"resources": resources}}


def _group(number: int) -> Json:
    metadata = {"name": f"pg-{number}", "namespace": "default", "uid": f"pg-{number}", "creationTimestamp": CREATED}
    return {"metadata": metadata, "spec": {"minMember": GANG, "queue": f"queue-{number % 20}"}}


def _pod(gang: int, number: int, node: str, gpus: int) -> Json:
    name = f"job-{gang}-{number}"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{gang}", "uid": f"job-{gang}", "controller": True}
    limits = {"cpu": "500m", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": CREATED,
            "annotations": {"pod-group-name": f"pg-{gang}"},
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}],
            **({"nodeName": node, "activeDeadlineSeconds": 4000 + gang % 3600} if node else {}),
        },
        "status": {"phase": "Running", "startTime": CREATED} if node else {"phase": "Pending"},
    }


def seconds(work: Callable[[], object], repeat: int) -> float:
    """CPU seconds of some work, the best of some."""
    times = []
    for _ in range(repeat):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return round(min(times), 3)


def measure(nodes: int, pods: int, repeat: int) -> dict[str, float]:
    """CPU seconds of each verb."""
    scene = objects(nodes, pods)

    def fresh() -> Cluster:
        return cluster_of(scene, StoppedClock(NOW))

    # Answers keep what they worked out with the cluster, and each command reads it anew.
    verbs: dict[str, Callable[[Cluster], object]] = {
        "ls": workloads,
        "status": lambda cluster: tree_of(
            cluster, find(cluster, "job", "job-10", "default")[0].parts, prospects_of(cluster)
        ),
        "explain": lambda cluster: explanations(cluster, "job", "job-10", "default"),
        "queues": queues,
        "capacity": capacity,
        "evictions": evictions,
        "whatif": lambda cluster: whatif(
            cluster, [AddNodes(count=4, gpus=8), DrainNode(node="node-1"), SetQuota(queue="queue-1", gpus=16)]
        ),
        "defrag": lambda cluster: defrag(cluster, 100),
    }
    result = {"read": seconds(fresh, repeat)}
    for name, verb in verbs.items():
        clusters = [fresh() for _ in range(repeat)]
        result[name] = seconds(lambda verb=verb, clusters=clusters: verb(clusters.pop()), repeat)  # type: ignore[misc]  # of this round
        print(f"{name}: {result[name]} s", flush=True)
    return result


def main() -> None:
    """Measure and print."""
    # As commands do.
    collect_rarely()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--trace", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {"nodes": arguments.nodes, "pods": arguments.pods}
    if arguments.pods:
        results["seconds"] = measure(arguments.nodes, arguments.pods, arguments.repeat)
    for path in arguments.trace:
        trace = read_trace(path, 3600.0)
        results[trace.name] = foresight(trace, Config(), max(trace.span / 5000, 0.001))
    print(json.dumps(results, indent=2))
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "answers.json").write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()

"""How fast and how lean the controller runtime is, beside the official client on the same server.

A server of a few lines, in a process of its own, serves pods of the usual size over TLS: lists in pages, streaming
lists, watches. Each client runs in a fresh process, so that its memory is its own. The numbers come out as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import platform
import resource
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import trustme
import uvloop
from aiohttp import web

Result = dict[str, Any]

KINDS = {"pods": "Pod", "nodes": "Node"}
STAMP = "2026-11-15T10:00:00Z"
IMAGE = "registry.example.com/team/trainer:2026.11"
FIRST_EVENT = 10_000_000


def pod(index: int, version: int) -> Result:
    """A pod of about 4.7 KB, as training jobs have them."""
    job = f"trainer-{index // 64}"
    name = f"{job}-worker-{index % 64}"
    amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    mount = {"name": "kube-api-access-x7k2p", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io"}
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python", "-m", "trainer", "--steps", "100000"],
        "env": [{"name": f"SETTING_{number}", "value": f"value-of-setting-{number}"} for number in range(12)],
        "resources": {"requests": amounts, "limits": amounts},
        "volumeMounts": [mount],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _pod_metadata(index, version, name, job),
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": f"node-{index % 10000}",
            "restartPolicy": "Never",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "containers": [container],
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "volumes": [{"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": []}}],
        },
        "status": _pod_status(index),
    }


def _pod_metadata(index: int, version: int, name: str, job: str) -> Result:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    fields = {f"f:field-{number}": {} for number in range(30)}
    return {
        "name": name,
        "namespace": f"team-{index % 50}",
        "uid": f"{index:08x}-0000-4000-8000-000000000000",
        "resourceVersion": str(version),
        "creationTimestamp": STAMP,
        "labels": {
            "app": "trainer",
            "batch.kubernetes.io/job-name": job,
            "kai.scheduler/queue": f"queue-{index % 20}",
            "topology": f"rack-{index % 100}",
        },
        "annotations": {"note": "a line of text that someone left here for others to find", "pod-group-name": name},
        "ownerReferences": [owner],
        "managedFields": [
            {"manager": who, "operation": "Update", "apiVersion": "v1", "time": STAMP, "fieldsV1": fields}
            for who in ("kube-controller-manager", "kubelet")
        ],
    }


def _pod_status(index: int) -> Result:
    container = {
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "image": IMAGE,
        "imageID": "registry.example.com/team/trainer@sha256:" + "0" * 64,
        "containerID": "containerd://" + f"{index:064x}",
        "lastState": {},
        "state": {"running": {"startedAt": STAMP}},
    }
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": STAMP}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "startTime": STAMP,
        "qosClass": "Guaranteed",
        "containerStatuses": [container],
    }


def node(index: int, version: int) -> Result:
    """A node of about 2 KB."""
    name = f"node-{index}"
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8", "ephemeral-storage": "3Ti"}
    conditions = [
        {"type": kind, "status": "False", "reason": f"KubeletHasNo{kind}", "message": f"kubelet has no {kind}"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{index % 4}",
        "rack": f"rack-{index % 100}",
        "nvidia.com/gpu.product": "H100",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"n-{index:08x}", "resourceVersion": str(version), "labels": labels},
        "spec": {"podCIDR": "10.1.0.0/24", "providerID": f"cloud:///{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [*conditions, {"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": [{"names": [f"registry.example.com/image-{n}:1"], "sizeBytes": 10**9} for n in range(10)],
        },
    }


class Server:
    """Serves pods and nodes from bytes that are made once."""

    def __init__(self, pods: int, nodes: int, events: int) -> None:
        self._bodies = {
            "pods": [msgspec.json.encode(pod(index, index + 1)) for index in range(pods)],
            "nodes": [msgspec.json.encode(node(index, index + 1)) for index in range(nodes)],
        }
        self._events = [
            b'{"type":"MODIFIED","object":' + msgspec.json.encode(pod(index % pods, FIRST_EVENT + index)) + b"}\n"
            for index in range(events)
        ]
        self._watches: list[web.StreamResponse] = []
        self.writes = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        plural = request.path.rsplit("/", 1)[-1]
        if request.path == "/burst":
            return await self._burst()
        if request.method != "GET":
            self.writes += 1
            return web.Response(body=await request.read(), content_type="application/json", status=201)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "35", "gitVersion": "v1.35.0"})
        if plural not in self._bodies and "limit" not in request.query and "watch" not in request.query:
            return web.json_response({"kind": "Status", "reason": "NotFound", "code": 404}, status=404)
        if request.query.get("watch") in ("true", "True", "1"):
            return await self._watch(request, plural)
        return self._list(request, plural)

    def _list(self, request: web.BaseRequest, plural: str) -> web.Response:
        bodies = self._bodies.get(plural, [])
        start = int(request.query.get("continue") or 0)
        end = min(start + int(request.query.get("limit") or len(bodies)), len(bodies))
        metadata: Result = {"resourceVersion": str(FIRST_EVENT - 1)}
        if end < len(bodies):
            metadata |= {"continue": str(end), "remainingItemCount": len(bodies) - end}
        head = msgspec.json.encode({"kind": f"{KINDS.get(plural, '')}List", "apiVersion": "v1", "metadata": metadata})
        body = head[:-1] + b',"items":[' + b",".join(bodies[start:end]) + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.BaseRequest, plural: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        if request.query.get("sendInitialEvents") == "true":
            bodies = self._bodies.get(plural, [])
            for start in range(0, len(bodies), 100):
                lines = [b'{"type":"ADDED","object":' + body + b"}\n" for body in bodies[start : start + 100]]
                await response.write(b"".join(lines))
            annotations = {"k8s.io/initial-events-end": "true"}
            metadata = {"resourceVersion": str(FIRST_EVENT - 1), "annotations": annotations}
            line = {
                "type": "BOOKMARK",
                "object": {"kind": KINDS.get(plural, ""), "apiVersion": "v1", "metadata": metadata},
            }
            await response.write(msgspec.json.encode(line) + b"\n")
        if plural == "pods":
            self._watches.append(response)
        await asyncio.Event().wait()
        return response

    async def _burst(self) -> web.Response:
        for watch in self._watches:
            for start in range(0, len(self._events), 20):
                await watch.write(b"".join(self._events[start : start + 20]))
        return web.Response(text="{}")


def serve(counts: tuple[int, int, int], folder: str, ready: Connection) -> None:
    """The server's process."""

    async def run() -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(f"{folder}/ca.pem")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        runner = web.ServerRunner(web.Server(Server(*counts).answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        ready.send(f"https://127.0.0.1:{runner.addresses[0][1]}")
        await asyncio.Event().wait()

    gc.disable()
    uvloop.run(run())


def megabytes() -> float:
    """What this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak() -> float:
    """The most this process ever held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def ours(url: str, folder: str, pods: int, events: int) -> Result:
    """Spinney's caches and controllers."""
    return uvloop.run(_ours(url, folder, events))


async def _ours(url: str, folder: str, events: int) -> Result:
    from spinney.api.core import Node  # noqa: PLC0415  # its memory counts
    from spinney.api.pod import Pod  # noqa: PLC0415  # as above
    from spinney.kube.caches.cache import Caches  # noqa: PLC0415  # as above
    from spinney.kube.client.credentials import StaticToken  # noqa: PLC0415  # as above
    from spinney.kube.client.https import connect  # noqa: PLC0415  # as above
    from spinney.kube.client.kubeconfig import Server as Target  # noqa: PLC0415  # as above

    client = connect(Target(url, StaticToken(), ssl.create_default_context(cafile=f"{folder}/ca.pem")))
    before = megabytes()
    started, cpu = time.perf_counter(), time.process_time()
    caches = Caches(client)
    cache = caches.of(Pod)
    cache.index("node", lambda pod: [pod.spec.node_name])
    nodes = caches.of(Node)
    running = asyncio.create_task(caches.run())
    await caches.synced()
    result: Result = {
        "pods": len(cache),
        "nodes": len(nodes),
        "synced_seconds": round(time.perf_counter() - started, 2),
        "synced_cpu_seconds": round(time.process_time() - cpu, 2),
    }
    gc.collect()
    gc.freeze()
    result |= {"held_mb": round(megabytes() - before), "peak_mb": peak()}
    result |= await _our_events(client, cache, events)
    result |= await _our_reconciles(client, caches, cache)
    result["peak_mb"] = peak()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await client.close()
    return result


async def _our_events(client: Any, cache: Any, events: int) -> Result:
    last = asyncio.Event()
    wanted = str(FIRST_EVENT + events - 1)

    def changed(change: Any) -> None:
        if change.new.metadata.resource_version == wanted:
            last.set()

    cache.on_change(changed)
    started, cpu = time.perf_counter(), time.process_time()
    await client.call("GET", "/burst")
    await last.wait()
    return {
        "events_per_second": round(events / (time.perf_counter() - started)),
        "event_cpu_us": round((time.process_time() - cpu) / events * 1e6),
    }


async def _our_reconciles(client: Any, caches: Any, cache: Any) -> Result:
    from spinney.kube.clock import SystemClock  # noqa: PLC0415  # its memory counts
    from spinney.kube.controllers.controller import Controller  # noqa: PLC0415  # as above
    from spinney.kube.runtime import Runtime  # noqa: PLC0415  # as above

    left = len(cache)
    done = asyncio.Event()

    async def reconcile(_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    started = time.perf_counter()
    controller = Controller("bench", Runtime(client, caches, SystemClock()), reconcile).watch(cache)
    working = asyncio.create_task(controller.run())
    await done.wait()
    seconds = time.perf_counter() - started
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return {"reconciles_per_second": round(len(cache) / seconds)}


def everything(url: str, folder: str, pods: int, events: int) -> Result:
    """All components of Spinney in one process, on one set of caches, once every one of them acts."""
    return uvloop.run(_everything(url, folder))


async def _everything(url: str, folder: str) -> Result:
    from spinney.api.meta import convert  # noqa: PLC0415  # its memory counts
    from spinney.app.components import load_all  # noqa: PLC0415  # as above
    from spinney.kube.client.credentials import StaticToken  # noqa: PLC0415  # as above
    from spinney.kube.client.https import connect  # noqa: PLC0415  # as above
    from spinney.kube.client.kubeconfig import Server as Target  # noqa: PLC0415  # as above
    from spinney.kube.clock import SystemClock  # noqa: PLC0415  # as above
    from spinney.kube.controllers.host import Host  # noqa: PLC0415  # as above
    from spinney.kube.logs import configure  # noqa: PLC0415  # as above

    configure(level="error")
    client = connect(Target(url, StaticToken(), ssl.create_default_context(cafile=f"{folder}/ca.pem")))
    started = time.perf_counter()
    # These speak for the pod or the node they run on, and here is none.
    chosen = [each for each in load_all() if each.name not in ("reservation", "numa-placement-exporter")]
    components = [(each, convert(each.settings, {}) if each.settings else None) for each in chosen]
    host = Host(client, SystemClock(), components)
    running = asyncio.create_task(host.run())
    waiting = asyncio.create_task(host.ready.wait())
    await asyncio.wait({running, waiting}, timeout=300, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    result: Result = {
        "components": len(components),
        "not_ready": host.not_ready,
        "ready_seconds": round(time.perf_counter() - started, 2),
    }
    gc.collect()
    gc.freeze()
    await asyncio.sleep(10)
    result |= {"held_mb": round(megabytes()), "peak_mb": peak()}
    running.cancel()
    ended = await asyncio.gather(running, return_exceptions=True)
    result["ended"] = type(ended[0]).__name__
    await client.close()
    return result


def official(url: str, folder: str, pods: int, events: int) -> Result:
    """The official client with its own informer."""
    import kubernetes  # noqa: PLC0415  # its memory counts
    from kubernetes.informer import SharedInformer  # noqa: PLC0415  # as above

    configuration = kubernetes.client.Configuration(host=url)
    configuration.ssl_ca_cert = f"{folder}/ca.pem"
    api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    before = megabytes()
    last = threading.Event()
    wanted = str(FIRST_EVENT + events - 1)

    def changed(item: Any) -> None:
        if item.metadata.resource_version == wanted:
            last.set()

    informer = SharedInformer(list_func=api.list_pod_for_all_namespaces)
    informer.add_event_handler("MODIFIED", changed)
    started, cpu = time.perf_counter(), time.process_time()
    informer.start()
    while len(informer.cache.list()) < pods:
        time.sleep(0.05)
    result: Result = {
        "version": kubernetes.__version__,
        "pods": pods,
        "synced_seconds": round(time.perf_counter() - started, 2),
        "synced_cpu_seconds": round(time.process_time() - cpu, 2),
    }
    gc.collect()
    result |= {"held_mb": round(megabytes() - before)}
    time.sleep(1)  # its watch starts after its list, and says nothing
    started, cpu = time.perf_counter(), time.process_time()
    api.api_client.rest_client.request("GET", f"{url}/burst")
    if last.wait(300):
        result["events_per_second"] = round(events / (time.perf_counter() - started))
        result["event_cpu_us"] = round((time.process_time() - cpu) / events * 1e6)
    result["peak_mb"] = peak()
    return result


def measure(client: Callable[..., Result], pods: int, nodes: int, events: int) -> Result:
    """A client in a fresh process, against a fresh server."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        listening, to_parent = context.Pipe()
        server = context.Process(target=serve, args=((pods, nodes, events), folder, to_parent), daemon=True)
        server.start()
        answers, answer = context.Pipe()
        arguments = (client, (listening.recv(), folder, pods, events), answer)
        process = context.Process(target=_report, args=arguments, daemon=True)
        process.start()
        answer.close()
        try:
            result: Result = answers.recv()
        finally:
            for each in (process, server):
                each.terminate()
                each.join()
        return result


def _report(client: Callable[..., Result], arguments: tuple[Any, ...], answer: Connection) -> None:
    answer.send(client(*arguments))


def draw(report: Result, file: str) -> None:
    """Both clients with the same pods, side by side."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # only for those who want a picture

    panels = [
        ("synced_cpu_seconds", "CPU seconds to synced"),
        ("held_mb", "MB held"),
        ("event_cpu_us", "µs of CPU per event"),
    ]
    figure = Figure(figsize=(9, 3), layout="constrained")
    figure.suptitle(f"{report['official_small']['pods']:,} pods, {report['setting']}")
    for axes, (key, title) in zip(figure.subplots(1, 3), panels, strict=True):
        bars = axes.bar(
            ["Spinney", "official"], [report[each].get(key, 0) for each in ("spinney_small", "official_small")]
        )
        axes.bar_label(bars)
        axes.set_title(title)
    figure.savefig(file)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--official-pods", type=int, default=10_000, help="the official client is too slow for more")
    parser.add_argument("--official-events", type=int, default=2_000)
    parser.add_argument("--chart", default="", metavar="FILE", help="draw the comparison into a file, too")
    given = parser.parse_args()
    report: Result = {
        "setting": f"Python {platform.python_version()}, {multiprocessing.cpu_count()} cores, server beside it",
        "pod_bytes": len(msgspec.json.encode(pod(1, 1))),
        "spinney": measure(ours, given.pods, given.nodes, given.events),
        "all_components": measure(everything, given.pods, given.nodes, 1),
        "spinney_small": measure(ours, given.official_pods, 1, given.official_events),
        "official_small": measure(official, given.official_pods, 1, given.official_events),
    }
    json.dump(report, sys.stdout, indent=1)
    print()
    if given.chart:
        draw(report, given.chart)


if __name__ == "__main__":
    main()

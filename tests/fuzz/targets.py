"""What is attacked: each target reads one mutated input, and may refuse it only in the way that its users see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from spinney.api import groveconfig
from spinney.api.core import Node, Pod
from spinney.api.crd import OUR_GROUPS, crds
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import PodGroup, Queue
from spinney.api.meta import Json, convert
from spinney.api.schedulerfile import SchedulerFile
from spinney.api.yaml_reader import MOST_LEVELS, YamlError, read_all_yaml, read_yaml
from spinney.app.errors import UserError
from spinney.app.offline_checks import admission_problems, typed
from spinney.app.rendering import defaulted, levels, render
from spinney.app.snapshots import picture_of
from spinney.backends.kube_scheduler.releases import LATEST, served_by
from spinney.backends.registry import NoChoice, Registry
from spinney.embedded.apiserver.server import ApiServer
from spinney.embedded.nodes.behaviour import BehaviourError, behaviour
from spinney.grove.admission.sets import pods_of
from spinney.kube.chance import Chance
from spinney.kube.client.transport import Request, User
from spinney.kube.clock import LoopClock
from spinney.scheduler.config import ConfigError
from spinney.scheduler.intake.config_file import from_file
from spinney.scheduler.intake.snapshot import Snapshot, SnapshotError, read, write
from spinney.services.admission import gpu_sharing
from spinney.services.pods import usage
from tests import make
from tests.fuzz.mutations import TEXTS, Mutator

Target = Callable[[Mutator], Awaitable[None]]
ADMIN = User("admin", ("system:masters", "system:authenticated"))
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))
_REFUSED = (UserError, YamlError, NoChoice)
_MOST_PODS = 200


class Defect(AssertionError):
    """An answer that no input may cause."""


class Api:
    """Requests to an API server with our definitions: created, patched, applied, listed, deleted."""

    def __init__(self) -> None:
        self._server: ApiServer | None = None
        self._paths = _paths()

    async def __call__(self, mutator: Mutator) -> None:
        server = self._server or await self._started()
        path, document = mutator.choice(self._paths)
        body = mutator.document(document)
        name = mutator.choice(("x", "y", "x/status", "x/scale", "x/binding", "x/eviction"))
        method, kind = mutator.choice(_WAYS)
        if kind == "application/json-patch+json" and mutator.chance(0.8):
            body = mutator.document([{"op": "add", "path": "/metadata/labels", "value": body}] * 2)
        # JSON is YAML, and its writer bears deeper documents.
        sent = msgspec.json.encode(body)
        if mutator.chance(0.15):
            sent = mutator.text(sent)
        query = tuple((key, mutator.choice(TEXTS)) for key in _QUERY if mutator.chance(0.08))
        if "apply" in kind:
            query += (("fieldManager", "f"), ("force", "true"))
        path = path if method == "POST" or mutator.chance(0.1) else f"{path}/{name}"
        response = await server.handle(Request(method, path, query, {"content-type": kind}, sent, ADMIN))
        if response.stream is not None:
            closing = getattr(response.stream, "aclose", None)
            if closing is not None:
                await closing()
        if response.status == 500:
            raise Defect(f"{method} {path} {query} {kind} {sent[:1500]!r}: {response.body[:300]!r}")

    async def _started(self) -> ApiServer:
        server = ApiServer(LoopClock(datetime(2026, 1, 1, tzinfo=UTC)), Chance(1))
        await server.start()
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in crds(OUR_GROUPS):
            body = msgspec.json.encode(definition)
            await server.handle(Request("POST", path, (), {"content-type": "application/json"}, body, ADMIN))
        self._server = server
        return server


_WAYS = (
    ("POST", "application/json"),
    ("POST", "application/json"),
    ("POST", "application/yaml"),
    ("PUT", "application/json"),
    ("PATCH", "application/merge-patch+json"),
    ("PATCH", "application/strategic-merge-patch+json"),
    ("PATCH", "application/json-patch+json"),
    ("PATCH", "application/apply-patch+yaml"),
    ("GET", "application/json"),
    ("DELETE", "application/json"),
)
_QUERY = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "dryRun", "fieldValidation")


def _paths() -> list[tuple[str, Any]]:
    pod = make.pod("x").gpus(1).annotate("gpu-fraction", "0.5").build()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    workload = {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    schema = {"type": "object", "properties": {"spec": {"type": "string", "pattern": "^a+$"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "metadata": {"name": "things.a.example"},
        "spec": {"group": "a.example", "scope": "Cluster", "names": names, "versions": [version]},
    }
    group = {"metadata": {"name": "x"}, "spec": {"minMember": 1, "queue": "q", "subGroups": [{"name": "a"}]}}
    role = {"metadata": {"name": "x"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    pcs = make.pcs("x").clique("w", 2).build()
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}, "user": "a"}}
    here = "/namespaces/default"
    return [
        (f"/api/v1{here}/pods", pod),
        (f"/api/v1{here}/configmaps", make.config_map("x", a="b")),
        (f"/api/v1{here}/services", {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}),
        ("/api/v1/nodes", make.node("x").build()),
        (f"/apis/apps/v1{here}/deployments", workload),
        (f"/apis/apps/v1{here}/statefulsets", workload),
        (f"/apis/batch/v1{here}/jobs", {"metadata": {"name": "x"}, "spec": {"template": template}}),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", role),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", review),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
        ("/apis/scheduling.run.ai/v2/queues", make.queue("x").gpu(quota=1).build()),
        (
            f"/apis/scheduling.run.ai/v2alpha2{here}/podgroups",
            {**group, "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"},
        ),
        (f"/apis/grove.io/v1alpha1{here}/podcliquesets", pcs),
    ]


def _is_deeper(value: object, levels: int) -> bool:
    """Whether a document has more levels."""
    waiting = [value]
    for _ in range(levels + 1):
        containers = [each for each in waiting if isinstance(each, dict | list)]
        waiting = [part for each in containers for part in (each.values() if isinstance(each, dict) else each)]
    return bool(waiting)


class Manifests:
    """Files of sets, as `spinney render` reads, defaults, checks and renders them."""

    def __init__(self) -> None:
        self._registry = Registry.load()
        self._served = served_by(LATEST, self._registry)
        self._documents = [item for path in EXAMPLES for item in read_all_yaml(path.read_text()) if item]
        self._sets = [item for item in self._documents if item["kind"] == PodCliqueSet.resource.kind]
        self._texts = [path.read_bytes() for path in EXAMPLES]

    async def __call__(self, mutator: Mutator) -> None:
        try:
            if mutator.chance(0.2):
                read_all_yaml(mutator.text(mutator.choice(self._texts)), 50_000)
                return
            document = mutator.document(mutator.choice(self._sets))
            # What is deeper is refused as the file is read, which the texts above are for.
            if isinstance(document, dict) and not _is_deeper(document, MOST_LEVELS):
                self._render(document)
        except _REFUSED:
            return

    def _render(self, document: Json) -> None:
        complete = defaulted(document)
        pcs = typed(PodCliqueSet, complete)
        domains, _ = levels(pcs, [])
        if admission_problems(complete, domains) or pods_of(complete) > _MOST_PODS:
            return
        render(pcs, self._registry.choose(pcs), self._served, domains)


class Annotations:
    """Pods with annotations and labels that others wrote, as admission, scheduler, binder and nodes read them."""

    def __init__(self) -> None:
        self._pod = make.pod("x").gpus(1).build()
        self._node = make.node("x").build()

    async def __call__(self, mutator: Mutator) -> None:
        notes = {key: mutator.choice(TEXTS) for key in _ANNOTATIONS if mutator.chance(0.3)}
        pod = {**self._pod, "metadata": {**self._pod["metadata"], "annotations": notes}}
        marks = {key: mutator.choice(TEXTS) for key in _NODE_LABELS if mutator.chance(0.5)}
        node = convert(Node, {**self._node, "metadata": {**self._node["metadata"], "labels": marks}})
        gpu_sharing.problems(pod, sharing_is_on=True)
        typed = convert(Pod, pod)
        usage.quantities(usage.requested(typed))
        usage.quantities(usage.allocated(typed, node))
        try:
            behaviour(notes, "c", ("sleep", mutator.choice(TEXTS)))
        except BehaviourError:
            return


_ANNOTATIONS = (
    *("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "gpu-fraction-container-name", "pod-group-name"),
    *("kai.scheduler/received-resource-type", "received-resource-type", "spinney.dev/run-for", "spinney.dev/exit-code"),
    *("spinney.dev/start-after", "spinney.dev/crashes", "kai.scheduler/batch-min-member"),
)
_NODE_LABELS = ("nvidia.com/gpu.memory", "nvidia.com/gpu.count", "nvidia.com/mig.strategy", "kubernetes.io/hostname")


class Configurations:
    """Configuration files of the operator and of the scheduler."""

    async def __call__(self, mutator: Mutator) -> None:
        text = msgspec.json.encode(mutator.document(mutator.choice((_GROVE, _SCHEDULER))))
        if mutator.chance(0.3):
            text = mutator.text(text)
        try:
            groveconfig.problems(convert(groveconfig.OperatorConfiguration, read_yaml(text) or {}))
        except (YamlError, msgspec.ValidationError):
            pass
        try:
            from_file(convert(SchedulerFile, next(iter(read_all_yaml(text, 50_000)), None) or {}))
        except (ConfigError, YamlError, msgspec.ValidationError):
            return


_GROVE: Json = {
    "apiVersion": "operator.config.grove.io/v1alpha1",
    "kind": "OperatorConfiguration",
    "runtimeClientConnection": {"qps": 100, "burst": 200},
    "leaderElection": {"enabled": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"},
    "server": {"webhooks": {"port": 9443}, "healthProbes": {"port": 9444}, "metrics": {"port": 9445}},
    "controllers": {"podCliqueSet": {"concurrentSyncs": 3}},
}
_SCHEDULER: Json = {
    "actions": "allocate, consolidation, reclaim, preempt, stalegangeviction",
    "tiers": [{"plugins": [{"name": "predicates"}, {"name": "minruntime", "arguments": {"defaultPreempt": "10m"}}]}],
    "queueDepthPerAction": {"allocate": 10},
    "args": {"schedule-period": "1s"},
}


class Snapshots:
    """Snapshot files, and a plan on those that can be read."""

    def __init__(self) -> None:
        group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1, "queue": "q"}}
        pod = make.pod("x").gpus(1).scheduler("kai-scheduler").annotate("pod-group-name", "g").build()
        objects = {
            Pod.resource: [pod],
            Node.resource: [make.node("n").build()],
            Queue.resource: [make.queue("q").unlimited().build()],
            PodGroup.resource: [group],
        }
        self._content = write(Snapshot(objects))
        self._objects = objects

    async def __call__(self, mutator: Mutator) -> None:
        content = self._content
        if mutator.chance(0.3):
            content = mutator.text(content)
        else:
            raw = {"pods": Pod, "nodes": Node, "queues": Queue, "podGroups": PodGroup}
            lists = {name: self._objects[kind.resource] for name, kind in raw.items()}
            content = msgspec.json.encode(mutator.document({"rawObjects": lists, "config": {}, "schedulerParams": {}}))
        try:
            picture_of(read(content))
        except (SnapshotError, UserError):
            return


def targets() -> dict[str, Target]:
    """Every target, by name."""
    return {
        "api": Api(),
        "manifests": Manifests(),
        "annotations": Annotations(),
        "configurations": Configurations(),
        "snapshots": Snapshots(),
    }

"""What the writes that a gang of two pods cannot do without cost the API server by itself, and how they add up."""

from __future__ import annotations

import asyncio
from typing import Any

from _writes import cost

from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique
from spinney.api.kai import PodGroup
from spinney.api.podgang import PodGang
from spinney.kube.client.client import Client, Patch

Json = dict[str, Any]
GATE = "grove.io/podgang"
# As many as the operator puts on its objects.
_LABELS = {f"bench.io/label-{number}": "some-value" for number in range(8)}
_READY = {
    "type": "BackendReady",
    "status": "True",
    "reason": "Synced",
    "message": "PodGroup written",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-11-15T10:00:00Z",
}
# Per gang, until its gates are gone; its Service may follow.
NEEDED = {"pod": 2, "clique": 1, "gang": 1, "PodGroup": 1, "BackendReady": 1, "gate off": 2}


async def gang_costs(client: Client, pod_spec: Json, count: int = 400) -> Json:
    """Milliseconds of server time for each kind of write, and their sum for one gang in times of two bare pods."""
    names = [f"cost-{number}" for number in range(count)]
    gated = {**pod_spec, "schedulingGates": [{"name": GATE}]}
    references = [{"namespace": "default", "name": name} for name in ("one", "two")]
    gang = {"podgroups": [{"name": "worker", "minReplicas": 2, "podReferences": references}]}
    clique = {"roleName": "worker", "replicas": 2, "minAvailable": 2, "podSpec": pod_spec}
    group = {"minMember": 2, "queue": "default-queue", "subGroups": [{"name": "worker", "minMember": 2}]}
    off = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
    said = {"status": {"phase": "Pending", "conditions": [_READY]}}

    def made(kind: Any, spec: Json) -> Any:
        body = {"metadata": {"labels": _LABELS}, "spec": spec}
        return lambda name, _: client.create(kind, {**body, "metadata": {**body["metadata"], "name": name}}, "default")

    def gone(kind: Any) -> Any:
        return lambda name, _: client.delete(kind, ("default", name))

    writes = {
        "pod": made(Pod, gated),
        "clique": made(PodClique, clique),
        "gang": made(PodGang, gang),
        "PodGroup": made(PodGroup, group),
        "BackendReady": lambda name, _: client.patch(PodGang, ("default", name), said, subresource="status"),
        "gate off": lambda name, _: client.patch(Pod, ("default", name), off, kind=Patch.STRATEGIC),
        "Service": made(Service, {"clusterIP": "None", "selector": {"bench.io/nobody": "true"}}),
        "pod gone": gone(Pod),
        "gang gone": gone(PodGang),
        "clique gone": gone(PodClique),
        "PodGroup gone": gone(PodGroup),
        "Service gone": gone(Service),
    }
    # The first requests of a server's life cost more than those that follow.
    warm = [f"warm-{number}" for number in range(count)]
    await cost(writes["pod"], warm)
    await cost(writes["pod gone"], warm)
    milliseconds = {kind: await cost(write, names) for kind, write in writes.items()}
    await asyncio.sleep(1)
    needed = sum(times * milliseconds[kind] for kind, times in NEEDED.items())
    return {"milliseconds": milliseconds, "timesBare": round(needed / (2 * milliseconds["pod"]), 1)}

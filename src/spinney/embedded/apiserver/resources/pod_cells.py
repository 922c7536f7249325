"""The cells of a pod in `kubectl get`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources.ages import age
from spinney.embedded.apiserver.resources.cells import true_conditions

_ENDS = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_cells(pod: Json, now: datetime) -> list[Any]:
    """Name, ready, status, restarts, age; and for wide output address, node, nomination and gates."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or []
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    inits = status.get("initContainerStatuses") or []
    beside = [entry for entry in inits if entry.get("name") in sidecars]
    ready = sum(bool(entry.get("ready") and entry.get("started")) for entry in beside)
    initializing = _initializing(spec, status)
    if not initializing:
        ready += sum(
            bool(entry.get("ready") and (entry.get("state") or {}).get("running") is not None) for entry in statuses
        )
    total = len(spec.get("containers") or ()) + len(sidecars)
    addresses = status.get("podIPs") or ()
    gates = spec.get("readinessGates") or ()
    return [
        metadata["name"],
        f"{ready}/{total}",
        reason(pod),
        _restarts(inits if initializing else [*statuses, *beside], now),
        age(metadata.get("creationTimestamp"), now),
        (addresses[0].get("ip") if addresses else status.get("podIP")) or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(gates, status) if gates else "<none>",
    ]


def reason(pod: Json) -> str:
    """The status of a pod in one word."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    shown = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            shown = "SchedulingGated"
    shown = _init_reason(spec, status) or shown
    if not _initializing(spec, status):
        shown = _container_reason(status, shown)
    if metadata.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(shown)


def row_conditions(pod: Json) -> list[Json]:
    """The conditions of a table row for a pod that has ended."""
    phase = (pod.get("status") or {}).get("phase", "")
    message = _ENDS.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


def _initializing(spec: Json, status: Json) -> bool:
    """Whether an init container is still running, and the pod is not Initialized."""
    return bool(_init_reason(spec, status)) and "Initialized" not in true_conditions(status)


def _init_reason(spec: Json, status: Json) -> str:
    containers = {container["name"]: container for container in spec.get("initContainers") or ()}
    for at, entry in enumerate(status.get("initContainerStatuses") or ()):
        state = entry.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended and ended.get("exitCode") == 0:
            continue
        restarts = (containers.get(entry.get("name", "")) or {}).get("restartPolicy") == "Always"
        if restarts and entry.get("started"):
            continue
        if ended:
            return f"Init:{_ended(ended)}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{at}/{len(containers)}"
    return ""


def _ended(state: Json) -> str:
    if state.get("reason"):
        return str(state["reason"])
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode', 0)}"


def _container_reason(status: Json, shown: str) -> str:
    running, failed = False, ""
    for entry in reversed(status.get("containerStatuses") or ()):
        state = entry.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            shown = waiting["reason"]
        elif ended:
            shown = _ended(ended)
            failed = shown if ended.get("exitCode") else failed
        elif entry.get("ready") and state.get("running") is not None:
            running = True
    if shown != "Completed":
        return shown
    if running and "Ready" in true_conditions(status):
        return "Running"
    return failed or ("NotReady" if running else shown)


def _restarts(statuses: list[Json], now: datetime) -> str:
    count = sum(entry.get("restartCount", 0) for entry in statuses)
    ends = [
        ended["finishedAt"]
        for entry in statuses
        if (ended := (entry.get("lastState") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    return f"{count} ({age(max(ends), now)} ago)" if count and ends else str(count)


def _gates(gates: list[Json], status: Json) -> str:
    met = true_conditions(status)
    return f"{sum(gate.get('conditionType') in met for gate in gates)}/{len(gates)}"

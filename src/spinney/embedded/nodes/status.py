"""The status that a kubelet reports for a pod, as one patch."""

from __future__ import annotations

from datetime import UTC, datetime

from spinney.api.conditions import find, is_true
from spinney.api.core import Container, ContainerStatus, Pod
from spinney.api.meta import Json
from spinney.api.times import rfc3339
from spinney.embedded.controllers.writes import ConditionRow
from spinney.embedded.nodes.pod_run import SUCCEEDED, TERMINAL, PodRun
from spinney.embedded.nodes.stages import ContainerRun, Ended


def status_patch(pod: Pod, run: PodRun, host_ip: str, now: datetime) -> Json | None:
    """The strategic merge patch from a pod's status to its run, or None where nothing changes."""
    status: Json = {}
    phase = run.phase
    if pod.status.phase != phase:
        status["phase"] = phase
    if run.rejected and pod.status.reason != run.rejected[0]:
        status["reason"], status["message"] = run.rejected
    if not pod.status.start_time:
        status |= _addresses(pod, run, host_ip) | {"startTime": _time(run.started)}
    waits = "ContainerCreating" if run.initialized else "PodInitializing"
    statuses = [_container_status(c, run.mains.get(c.name), waits) for c in pod.spec.containers]
    if _differs(statuses, pod.status.container_statuses):
        status["containerStatuses"] = statuses
    if pod.spec.init_containers:
        inits = [_init_status(c, run.inits.get(c.name)) for c in pod.spec.init_containers]
        if _differs(inits, pod.status.init_container_statuses):
            status["initContainerStatuses"] = inits
    conditions = _changed_conditions(pod, run, now)
    if conditions:
        status["conditions"] = conditions
    return {"metadata": {"uid": pod.uid}, "status": status} if status else None


def _addresses(pod: Pod, run: PodRun, host_ip: str) -> Json:
    address = host_ip if pod.spec.host_network else run.address
    return {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}], "podIP": address, "podIPs": [{"ip": address}]}


def _container_status(container: Container, run: ContainerRun | None, reason: str) -> Json:
    base: Json = {"name": container.name, "image": container.image, "imageID": "", "lastState": {}}
    if run is None:
        return {**base, "state": {"waiting": {"reason": reason}}, "ready": False, "started": False, "restartCount": 0}
    stage = run.stage
    shown: Json = {
        **base,
        "state": _state(run),
        "ready": stage.ready,
        "started": stage.state == "running",
        "restartCount": stage.restarts,
        "containerID": f"sim://{container.name}/{stage.restarts}",
    }
    if run.ended and stage.state != "terminated":
        shown["lastState"] = {"terminated": _terminated(run.ended)}
    return shown


def _init_status(container: Container, run: ContainerRun | None) -> Json:
    """The status of an init container; a successful one is ready."""
    status = _container_status(container, run, "PodInitializing")
    done = run is not None and run.over and run.stage.exit_code == 0
    return {**status, "ready": True} if done else status


def _state(run: ContainerRun) -> Json:
    stage = run.stage
    if stage.state == "waiting":
        return {"waiting": {"reason": stage.reason}}
    if stage.state == "running":
        return {"running": {"startedAt": _time(run.started)}}
    return {"terminated": _terminated(run.ended or Ended(stage.exit_code, run.started, run.since))}


def _terminated(ended: Ended) -> Json:
    return {
        "exitCode": ended.exit_code,
        "reason": "Error" if ended.exit_code else "Completed",
        "startedAt": _time(ended.started),
        "finishedAt": _time(ended.finished),
    }


def _differs(wanted: list[Json], current: tuple[ContainerStatus, ...]) -> bool:
    """Whether anything except times changes."""
    return [_shape_wanted(status) for status in wanted] != [_shape_current(status) for status in current]


def _shape_wanted(status: Json) -> tuple[object, ...]:
    ((state, detail),) = status["state"].items()
    return (
        status["name"],
        status["ready"],
        status["restartCount"],
        state,
        detail.get("exitCode", detail.get("reason", "")),
    )


def _shape_current(status: ContainerStatus) -> tuple[object, ...]:
    state: tuple[str, object] = ("", "")
    if status.state.waiting:
        state = ("waiting", status.state.waiting.reason)
    elif status.state.running:
        state = ("running", "")
    elif status.state.terminated:
        state = ("terminated", status.state.terminated.exit_code)
    return (status.name, status.ready, status.restart_count, *state)


def _changed_conditions(pod: Pod, run: PodRun, now: datetime) -> list[Json]:
    """The conditions whose status or reason changes."""
    changed = []
    for type_, status, reason, message in _conditions(pod, run):
        old = find(pod.status.conditions, type_)
        if old and old.status == status and old.reason == reason:
            continue
        condition: Json = {"type": type_, "status": status, "lastProbeTime": None}
        if reason or (old and old.reason):
            # Null removes what is there.
            condition |= {"reason": reason or None, "message": message or None}
        if not old or old.status != status:
            condition["lastTransitionTime"] = _time(now.timestamp())
        changed.append(condition)
    return changed


def _conditions(pod: Pod, run: PodRun) -> list[ConditionRow]:
    """Type, status, reason and message of every condition that a kubelet owns."""
    scheduled = ("PodScheduled", "True", "", "")
    if run.phase in TERMINAL:
        reason = "PodCompleted" if run.phase == SUCCEEDED else "PodFailed"
        if run.rejected and not run.mains:
            return [("Ready", "False", reason, ""), ("ContainersReady", "False", reason, ""), scheduled]
        return [
            ("PodReadyToStartContainers", "False", "", ""),
            ("Initialized", "True", reason if run.phase == SUCCEEDED else "", ""),
            ("Ready", "False", reason, ""),
            ("ContainersReady", "False", reason, ""),
            scheduled,
        ]
    unready = [c.name for c in pod.spec.containers if c.name not in run.mains or not run.mains[c.name].stage.ready]
    message = f"containers with unready status: [{' '.join(unready)}]"
    containers_ready = (
        ("ContainersReady", "True", "", "")
        if run.containers_ready
        else ("ContainersReady", "False", "ContainersNotReady", message)
    )
    return [
        ("PodReadyToStartContainers", "True", "", ""),
        _initialized(pod, run),
        _ready(pod, run, message),
        containers_ready,
        scheduled,
    ]


def _initialized(pod: Pod, run: PodRun) -> ConditionRow:
    if run.initialized:
        return ("Initialized", "True", "", "")
    waiting = [c.name for c in pod.spec.init_containers if c.name not in run.inits or not run.inits[c.name].over]
    message = f"containers with incomplete status: [{' '.join(waiting)}]"
    return ("Initialized", "False", "ContainersNotInitialized", message)


def _ready(pod: Pod, run: PodRun, message: str) -> ConditionRow:
    if not run.containers_ready:
        return ("Ready", "False", "ContainersNotReady", message)
    for gate in pod.spec.readiness_gates:
        if not is_true(pod.status.conditions, gate.condition_type):
            message = f'the status of pod readiness gate "{gate.condition_type}" is not "True", but False'
            return ("Ready", "False", "ReadinessGatesNotReady", message)
    return ("Ready", "True", "", "")


def _time(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))

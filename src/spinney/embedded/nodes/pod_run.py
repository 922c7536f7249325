"""The run of one pod on a simulated node: init containers in sequence, then the main containers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from spinney.api.core import Container, Pod
from spinney.embedded.nodes.behaviour import Behaviour, behaviour
from spinney.embedded.nodes.stages import ContainerRun, Ended, Stage, life_cycle

SUCCEEDED = "Succeeded"
FAILED = "Failed"
TERMINAL = (SUCCEEDED, FAILED)

# The exit code of a killed container.
KILLED = 137


class PodRun:
    """The state of a pod's run; the kubelet advances it and reports it.

    `programs` are init containers that run a real program, whose exit code comes through `program_done`.
    Everything else follows from the pod's annotations and commands.
    """

    def __init__(self, pod: Pod, now: float, address: str, programs: frozenset[str] = frozenset()) -> None:
        self.uid = pod.uid
        self.node = pod.spec.node_name
        self.address = address
        self.started = now
        self.stopping: float | None = None
        self.rejected: tuple[str, str] | None = None
        # Whether all referenced ConfigMaps and Secrets exist.
        self.complete = False
        # The pod's version after our last report: a change to it is not new.
        self.reported = ""
        self._policy = pod.spec.restart_policy
        self._deadline = now + (pod.spec.active_deadline_seconds or math.inf)
        self._programs = programs
        self._specs = {container.name: container for container in (*pod.spec.init_containers, *pod.spec.containers)}
        self._behaviours = _behaviours(pod)
        self.inits: dict[str, ContainerRun] = {}
        self.mains: dict[str, ContainerRun] = {}
        self._waiting_inits = list(pod.spec.init_containers)
        self._mains = pod.spec.containers

    @property
    def stop_after(self) -> float:
        """How long the slowest container takes to stop."""
        return max((behaviour.stop_after for behaviour in self._behaviours.values()), default=0.0)

    @property
    def initialized(self) -> bool:
        """Whether every init container has succeeded, or is a running sidecar."""
        return not self._waiting_inits and all(self._init_done(run) for run in self.inits.values())

    @property
    def phase(self) -> str:
        """The pod's phase."""
        if self.rejected or any(run.over and run.stage.exit_code for run in self.inits.values()):
            return FAILED
        if not self.mains or all(run.stage.state == "waiting" and not run.ended for run in self.mains.values()):
            return "Pending"
        if all(run.over for run in self.mains.values()):
            return FAILED if any(run.stage.exit_code for run in self.mains.values()) else SUCCEEDED
        return "Running"

    @property
    def containers_ready(self) -> bool:
        """Whether all containers are ready, sidecars included."""
        sidecars = [run for run in self.inits.values() if self._sidecar(run.name)]
        return bool(self.mains) and all(run.stage.ready for run in (*self.mains.values(), *sidecars))

    @property
    def wakes(self) -> float:
        """When the next change is due."""
        if self.phase in TERMINAL:
            return math.inf
        runs = (*self.inits.values(), *self.mains.values())
        return min(self._deadline, *(run.wakes for run in runs)) if runs else self._deadline

    def advance(self, now: float) -> list[Container]:
        """Advance to this time; returns the init containers whose program has to start."""
        if self.phase in TERMINAL:
            return []
        for run in self.inits.values():
            run.advance(now)
        to_start = self._next_inits(now)
        if self.initialized and not self.mains and self.phase != FAILED:
            self.mains = {container.name: self._run(container, now, self._policy) for container in self._mains}
        for run in self.mains.values():
            run.advance(now)
        self._end_sidecars(now)
        if now >= self._deadline and self.phase not in TERMINAL:
            self.reject("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", now)
        return to_start

    def program_done(self, name: str, exit_code: int, now: float) -> bool:
        """Set the exit code of an init container's program; returns whether it has to run again."""
        run = self.inits[name]
        self.reported = ""
        if exit_code and self._policy != "Never":
            run.ended = Ended(exit_code, run.started, now)
            run.stage = Stage("running", math.inf, restarts=run.stage.restarts + 1)
            run.started = run.since = now
            return True
        run.finish(exit_code, now)
        return False

    def reject(self, reason: str, message: str, now: float) -> None:
        """Fail the pod: the node does not run it, or no longer."""
        self.rejected = (reason, message)
        self.kill(now)

    def kill(self, now: float) -> None:
        """End every running container."""
        self.reported = ""
        for run in (*self.inits.values(), *self.mains.values()):
            if not run.over:
                run.finish(KILLED, now)

    def resume(self, pod: Pod) -> None:
        """Resume a pod that already ran when this kubelet started, by its status."""
        self.started = _timestamp(pod.status.start_time, self.started)
        self._deadline = self.started + (pod.spec.active_deadline_seconds or math.inf)
        self.address = pod.status.pod_ip or self.address
        if not any(status.state.running for status in pod.status.container_statuses):
            return
        self.complete = True
        for container in self._waiting_inits:
            self.inits[container.name] = self._resumed_init(container)
        self._waiting_inits = []
        statuses = {status.name: status for status in pod.status.container_statuses}
        for container in self._mains:
            status = statuses.get(container.name)
            running = status.state.running if status else None
            since = _timestamp(running.started_at if running else None, self.started)
            restarts = status.restart_count if status else 0
            run = self._run(container, since, self._policy, restarts)
            self.mains[container.name] = run

    def _resumed_init(self, container: Container) -> ContainerRun:
        run = self._run(container, self.started, self._init_policy(container))
        if container.restart_policy != "Always":
            run.finish(0, self.started)
        return run

    def _next_inits(self, now: float) -> list[Container]:
        """Start the next init containers, each once the one before it is done."""
        programs = []
        while self._waiting_inits and all(self._init_done(run) for run in self.inits.values()):
            container = self._waiting_inits.pop(0)
            run = self._run(container, now, self._init_policy(container))
            self.inits[container.name] = run
            if container.name in self._programs:
                run.stage = Stage("running", math.inf)
                programs.append(container)
            run.advance(now)
        return programs

    def _init_done(self, run: ContainerRun) -> bool:
        if self._sidecar(run.name):
            return run.stage.state != "waiting" or run.stage.restarts > 0
        return run.over and run.stage.exit_code == 0

    def _end_sidecars(self, now: float) -> None:
        """End sidecars once all other containers have ended."""
        if self.mains and all(run.over for run in self.mains.values()):
            for run in self.inits.values():
                if not run.over:
                    run.finish(0, now)

    def _run(self, container: Container, now: float, policy: str, restarts: int = 0) -> ContainerRun:
        return ContainerRun(container.name, life_cycle(self._behaviours[container.name], policy, restarts), now)

    def _init_policy(self, container: Container) -> str:
        if container.restart_policy == "Always":
            return "Always"
        return "Never" if self._policy == "Never" else "OnFailure"

    def _sidecar(self, name: str) -> bool:
        return self._specs[name].restart_policy == "Always"


def _behaviours(pod: Pod) -> dict[str, Behaviour]:
    annotations = pod.metadata.annotations
    inits = {
        container.name: behaviour(
            annotations, container.name, _command(container), init=container.restart_policy != "Always"
        )
        for container in pod.spec.init_containers
    }
    mains = {
        container.name: behaviour(annotations, container.name, _command(container), probe_delay=_probe_delay(container))
        for container in pod.spec.containers
    }
    return inits | mains


def _command(container: Container) -> tuple[str, ...]:
    return (*container.command, *container.args)


def _probe_delay(container: Container) -> float:
    """The delay until readiness: probes succeed at their first attempt."""
    probes: tuple[Mapping[str, Any], ...] = (container.startup_probe or {}, container.readiness_probe or {})
    return float(sum(probe.get("initialDelaySeconds") or 0 for probe in probes))


def _timestamp(moment: Any, default: float) -> float:
    return float(moment.timestamp()) if moment is not None else default

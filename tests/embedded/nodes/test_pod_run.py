"""A pod's life on a simulated node, without an API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from spinney.api.core import Pod
from spinney.api.meta import convert
from spinney.embedded.nodes.pod_run import PodRun
from spinney.embedded.nodes.status import status_patch
from tests import make

START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> Pod:
    """A pod on a node, with annotations under `spinney.dev/`."""
    builder = make.pod("a").on("node-1").metadata(uid="uid-a").spec(**spec)
    for key, value in (annotations or {}).items():
        builder.annotate(f"spinney.dev/{key}", value)
    return builder.typed(Pod)


def container(name: str, *command: str, **more: Any) -> dict[str, Any]:
    """A container with a command."""
    return {"name": name, "image": "busybox", "command": list(command), **more}


def started(made: Pod, *programs: str) -> PodRun:
    """A run of the pod from its first moment."""
    run = PodRun(made, START, "10.128.0.1", frozenset(programs))
    run.advance(START)
    return run


def test_a_plain_pod_is_running_and_ready_at_once() -> None:
    """So that one write shows both."""
    run = started(pod())
    assert (run.phase, run.containers_ready, run.initialized) == ("Running", True, True)


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", "0", "Succeeded"), ("Never", "1", "Failed"), ("OnFailure", "0", "Succeeded")],
)
def test_a_pod_whose_containers_have_ended_has_a_result(policy: str, code: str, phase: str) -> None:
    """Succeeded where all exit with 0, Failed otherwise."""
    run = started(pod({"run-for": "5s", "exit-code": code}, restartPolicy=policy))
    assert run.phase == "Running"

    run.advance(START + 5)

    assert run.phase == phase


def test_init_containers_run_one_after_the_other_and_hold_the_rest() -> None:
    """The second starts when the first is done, the main container when both are."""
    inits = [container("one", "sleep", "3"), container("two", "sleep", "4")]
    run = started(pod(initContainers=inits))
    assert (run.phase, set(run.inits), run.mains) == ("Pending", {"one"}, {})

    run.advance(START + 3)
    assert set(run.inits) == {"one", "two"}
    assert not run.initialized

    run.advance(START + 7)
    assert (run.initialized, run.phase) == (True, "Running")


def test_a_failed_init_container_fails_a_pod_that_must_not_restart() -> None:
    """With restartPolicy Never there is no second try."""
    run = started(pod({"exit-code.setup": "1"}, restartPolicy="Never", initContainers=[container("setup")]))
    assert run.phase == "Failed"


def test_a_program_decides_when_an_init_container_is_done() -> None:
    """The start waits for the coroutine's exit code, and failure means another try."""
    made = pod(initContainers=[container("wait", "spinney", "initc")])
    run = PodRun(made, START, "10.128.0.1", frozenset({"wait"}))
    assert [c.name for c in run.advance(START)] == ["wait"]
    run.advance(START + 1000)
    assert run.phase == "Pending"

    assert run.program_done("wait", 1, START + 1001)
    assert not run.program_done("wait", 0, START + 1002)
    run.advance(START + 1002)

    assert run.phase == "Running"
    assert run.inits["wait"].stage.restarts == 1


def test_a_sidecar_does_not_hold_the_start_and_does_not_hold_the_end() -> None:
    """An init container with restartPolicy Always runs beside the others and ends after them."""
    side = container("side", restartPolicy="Always")
    run = started(pod({"run-for.main": "5s"}, restartPolicy="Never", initContainers=[side]))
    assert (run.phase, run.containers_ready) == ("Running", True)

    run.advance(START + 5)

    assert run.phase == "Succeeded"
    assert run.inits["side"].over


def test_a_pod_past_its_deadline_fails() -> None:
    """activeDeadlineSeconds counts from the start on the node."""
    run = started(pod(activeDeadlineSeconds=60))
    assert run.wakes == START + 60

    run.advance(START + 60)

    assert run.phase == "Failed"
    assert run.rejected is not None
    assert run.rejected[0] == "DeadlineExceeded"


def test_probes_delay_readiness() -> None:
    """A readiness probe succeeds at its first try, which comes after its initial delay."""
    made = pod(containers=[container("main", readinessProbe={"initialDelaySeconds": 5})])
    run = started(made)
    assert (run.phase, run.containers_ready) == ("Running", False)

    run.advance(START + 5)

    assert run.containers_ready


def test_one_patch_shows_running_and_ready() -> None:
    """The first patch carries phase, addresses, start time, container and all conditions."""
    made = pod()
    patch = status_patch(made, started(made), "10.0.0.1", datetime(2026, 1, 1, tzinfo=UTC))

    assert patch is not None
    status = patch["status"]
    assert status["phase"] == "Running"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert (status["hostIP"], status["podIP"]) == ("10.0.0.1", "10.128.0.1")
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def test_a_status_that_shows_everything_is_not_written_again() -> None:
    """Once the patch is in, there is nothing left to patch."""
    made = pod()
    run = started(made)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    patch = status_patch(made, run, "10.0.0.1", now)
    assert patch is not None

    written = convert(Pod, {**msgspec.to_builtins(made), "status": patch["status"]})

    assert status_patch(written, run, "10.0.0.1", now) is None


def test_readiness_gates_hold_readiness() -> None:
    """A pod with a gate is ready when the gate's condition is True, however ready its containers are."""
    made = pod(readinessGates=[{"conditionType": "example.com/ok"}])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    patch = status_patch(made, started(made), "10.0.0.1", now)
    assert patch is not None
    conditions = {c["type"]: c["status"] for c in patch["status"]["conditions"]}
    assert (conditions["ContainersReady"], conditions["Ready"]) == ("True", "False")


def test_a_pod_is_taken_up_where_it_was() -> None:
    """A kubelet that restarts goes on from the status: same start, same restarts, same end."""
    made = pod({"run-for": "60s"}, restartPolicy="Never")
    first = started(made)
    patch = status_patch(made, first, "10.0.0.1", datetime(2026, 1, 1, tzinfo=UTC))
    assert patch is not None
    seen = convert(Pod, {**msgspec.to_builtins(made), "status": patch["status"]})

    run = PodRun(seen, START + 30, "10.128.0.9")
    run.resume(seen)
    run.advance(START + 30)

    assert (run.phase, run.address, run.wakes) == ("Running", "10.128.0.1", START + 60)

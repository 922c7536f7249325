"""Why a gang waits, from what each kind of scheduler leaves behind."""

from __future__ import annotations

import pytest

from spinney.api.core import Event
from spinney.api.meta import Json, convert
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.backends.blockers import Seen, blocker
from spinney.backends.registry import Registry
from tests import make

REGISTRY = Registry.load()


def gang(*conditions: Json) -> PodGang:
    """A gang of one role with a minimum of 2, and these conditions."""
    body = make.gang("a-0").group("x", 2).build()
    body["status"] = {"phase": "Pending", "conditions": list(conditions)}
    return convert(PodGang, body)


def condition(kind: str, status: str, reason: str, message: str = "") -> Json:
    """A condition."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


READY = condition("BackendReady", "True", "Synced")
WAITING = condition("Scheduled", "False", "WaitingForScheduler")
PLACED = condition("Scheduled", "True", "PodsScheduled")


def pod(name: str, message: str = "", on: str = "", reason: str = "Unschedulable") -> Pod:
    """A pod of the role that a scheduler refused, or placed."""
    body = make.pod(name).label("grove.io/podclique", "a-0-x").scheduler("volcano").build()
    body["spec"] |= {"nodeName": on} if on else {}
    conditions = [condition("PodScheduled", "False", reason, message)] if message else []
    body["status"] = {"phase": "Pending", "conditions": conditions}
    return convert(Pod, body)


def failed(reason: str, message: str) -> Pod:
    """A pod that its scheduler failed."""
    body = make.pod("f").scheduler("yunikorn").build()
    body["status"] = {"phase": "Failed", "reason": reason, "message": message}
    return convert(Pod, body)


def warning(message: str) -> Event:
    """A scheduler's event."""
    return convert(
        Event, {"metadata": {"name": "e"}, "type": "Warning", "reason": "FailedScheduling", "message": message}
    )


REPORTED = condition("BackendReady", "True", "SchedulerReports", "NotEnoughResources: 2/2 tasks in gang unschedulable")


@pytest.mark.parametrize(
    ("seen", "code", "text"),
    [
        (Seen(gang()), "BackendNotReady", "backend volcano has not looked at the gang"),
        (Seen(gang(condition("BackendReady", "False", "QueueNotFound", "no Queue x"))), "QueueNotFound", "no Queue x"),
        (
            Seen(gang(READY, condition("Scheduled", "False", "WaitingForBaseGang", "the base gang is placed first"))),
            "WaitingForBaseGang",
            "the base gang is placed first",
        ),
        (
            Seen(gang(REPORTED, WAITING), [pod("p")]),
            "WaitingForScheduler",
            "on nodes: a-0-x 0 of 2; volcano says: NotEnoughResources: 2/2 tasks in gang unschedulable",
        ),
        (
            Seen(gang(READY, WAITING), [pod("p", on="n"), pod("q", "0/4 nodes are available")]),
            "WaitingForScheduler",
            "on nodes: a-0-x 1 of 2; volcano says: 0/4 nodes are available",
        ),
        (
            Seen(gang(READY, WAITING), [pod("p")], placeholders=[pod("tg-1", on="n"), pod("tg-2", "no room")]),
            "WaitingForScheduler",
            "on nodes: a-0-x 0 of 2; volcano says: 1 of 2 placeholders hold room: no room",
        ),
        (
            Seen(gang(READY, WAITING), [failed("ApplicationRejected", " queue root.x does not exist")]),
            "WaitingForScheduler",
            "on nodes: a-0-x 0 of 2; volcano says: ApplicationRejected: queue root.x does not exist",
        ),
        (
            Seen(gang(READY, WAITING), [pod("p")], events=[warning("quota exceeded")]),
            "WaitingForScheduler",
            "on nodes: a-0-x 0 of 2; volcano says: FailedScheduling: quota exceeded",
        ),
        (
            Seen(gang(READY, WAITING), [pod("p")]),
            "WaitingForScheduler",
            "on nodes: a-0-x 0 of 2; volcano has the gang and has said nothing about it: "
            "only volcano knows why it waits",
        ),
        (
            Seen(gang(READY, PLACED), [pod("p", on="n"), pod("q", on="n"), pod("r", "0/4 nodes are available")]),
            "SurplusWaiting",
            "1 pods beyond the minimum wait: 0/4 nodes are available",
        ),
    ],
    ids=["no backend", "held", "base gang", "object", "pod", "placeholder", "rejected", "event", "silence", "surplus"],
)
def test_the_surest_source_is_quoted(seen: Seen, code: str, text: str) -> None:
    """One reason, and where only the scheduler knows, that is said."""
    blocked = blocker(REGISTRY.get("volcano"), seen)
    assert blocked is not None
    assert (blocked.code, blocked.text) == (code, text)


def test_a_gang_that_is_placed_is_blocked_by_nothing() -> None:
    """All pods have nodes."""
    assert blocker(REGISTRY.get("volcano"), Seen(gang(READY, PLACED), [pod("p", "old words", on="n")])) is None


def test_a_pod_that_volcano_could_place_is_no_reason() -> None:
    """explain said "can possibly be assigned to node-1", which tells nothing about why the gang waits."""
    copied = "NotEnoughResources: 1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending"
    possible = pod("p", "Pod p can possibly be assigned to node-1", reason="Schedulable")
    refused = pod("q", "pod group is not ready, 2 Pending")
    waits = gang(condition("BackendReady", "True", "SchedulerReports", copied), WAITING)
    blocked = blocker(REGISTRY.get("volcano"), Seen(waits, [possible, possible, refused]))
    assert blocked is not None
    assert blocked.text.endswith(f"volcano says: {copied}")


def test_a_message_of_the_backend_was_told_as_the_schedulers() -> None:
    """Only what the backend has copied is what the scheduler says: the condition's reason tells, not a colon."""
    own = "Workload train-0 cannot change while its pods exist: spec.priority → 2"
    waits = gang(condition("BackendReady", "True", "Synced", own), WAITING)
    blocked = blocker(REGISTRY.get("default"), Seen(waits, [pod("p")]))
    assert blocked is not None
    assert own not in blocked.text

"""One scheduler's entry in the status of a ClusterTopologyBinding."""

from __future__ import annotations

from datetime import UTC, datetime

from spinney.api.grove import ClusterTopologyBinding, SchedulerTopologyStatus
from spinney.api.meta import Json, convert
from spinney.backends.topology_controller import plan_topology_status


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)


def binding(**status: object) -> ClusterTopologyBinding:
    """A binding with a status."""
    metadata = {"name": "t", "resourceVersion": "7", "generation": 2}
    return convert(ClusterTopologyBinding, {"metadata": metadata, "status": status})


def entry(scheduler: str, message: str = "") -> SchedulerTopologyStatus:
    """What one scheduler's topology looks like."""
    return SchedulerTopologyStatus(
        scheduler_name=scheduler, topology_reference="t", in_sync=not message, message=message
    )


def status(binding: ClusterTopologyBinding, scheduler: str, new: SchedulerTopologyStatus | None) -> Json:
    """The status that would be patched."""
    patch = plan_topology_status(binding, scheduler, new, Noon())
    assert patch is not None
    assert patch["metadata"] == {"resourceVersion": "7"}
    written: Json = patch["status"]
    return written


def test_an_entry_is_added_beside_those_of_others() -> None:
    """Each backend owns its own entry, on the version it read."""
    other = {"schedulerName": "volcano", "topologyReference": "x", "inSync": True}
    written = status(binding(schedulerTopologyStatuses=[other]), "kai-scheduler", entry("kai-scheduler"))
    assert [status_entry["schedulerName"] for status_entry in written["schedulerTopologyStatuses"]] == [
        "volcano",
        "kai-scheduler",
    ]
    assert written["conditions"][0]["reason"] == "InSync"
    assert written["observedGeneration"] == 2


def test_the_condition_speaks_for_all_schedulers() -> None:
    """One that is out of step makes Drift True, with its words."""
    written = status(binding(), "volcano", entry("volcano", "no HyperNode has the tier name r"))
    condition = written["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("True", "Drift")
    assert condition["message"] == "volcano: no HyperNode has the tier name r"


def test_a_topology_that_is_missing_is_drift_as_well() -> None:
    """So upstream tells it (TAS18); the message says what is missing."""
    written = status(binding(), "kai-scheduler", entry("kai-scheduler", "Topology x does not exist"))
    condition = written["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("True", "Drift")
    assert "Topology x does not exist" in condition["message"]


def test_what_is_told_already_is_not_written_again() -> None:
    """A second look makes no write."""
    first = status(binding(), "kai-scheduler", entry("kai-scheduler"))
    assert plan_topology_status(binding(**first), "kai-scheduler", entry("kai-scheduler"), Noon()) is None


def test_a_scheduler_that_is_not_used_leaves_no_trace() -> None:
    """No entry, no condition, no write."""
    assert plan_topology_status(binding(), "volcano", None, Noon()) is None

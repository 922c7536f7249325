"""Small parts of the wire: conditions, owners, percentages, tolerations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from spinney.api import conditions, intstr, owners
from spinney.api.affinity import Taint, Toleration
from spinney.api.core import Pod
from spinney.api.meta import Condition, ObjectMeta, convert
from spinney.api.times import rfc3339, rfc3339_micro, rfc3339_milli
from tests import make

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


class TestConditions:
    """Conditions are written when they change, with times that mean something."""

    OURS = Condition(type="Ready", status="True", reason="Up", last_transition_time=NOW)
    THEIRS = Condition(type="Other", status="False", reason="Theirs", last_transition_time=NOW)

    def test_the_time_moves_with_the_status_only(self) -> None:
        """A new reason keeps the time, a new status moves it."""
        reworded = conditions.merged([self.OURS], [conditions.condition("Ready", True, "Running")], LATER)
        assert (reworded[0].reason, reworded[0].last_transition_time) == ("Running", NOW)
        turned = conditions.merged([self.OURS], [conditions.condition("Ready", False, "Down")], LATER)
        assert turned[0].last_transition_time == LATER

    def test_what_says_so_already_is_equal(self) -> None:
        """So nothing needs to be written."""
        existing = (self.OURS, self.THEIRS)
        assert conditions.merged(existing, [conditions.condition("Ready", True, "Up")], LATER) == existing

    def test_a_new_condition_may_date_from_the_start(self) -> None:
        """`first` tells "so from the start" from "changed later"."""
        new = conditions.condition("Ready", False, "Down")
        assert conditions.merged([], [new], LATER, first=NOW)[0].last_transition_time == NOW
        assert conditions.merged([], [new], LATER)[0].last_transition_time == LATER

    def test_others_keep_their_place(self) -> None:
        """Conditions of other writers stay, in order; those of dropped types go."""
        wanted = [conditions.condition("Ready", False, "Down"), conditions.condition("New", "Unknown", "x")]
        result = conditions.merged([self.THEIRS, self.OURS], wanted, LATER)
        assert result[0] is self.THEIRS
        assert [each.type for each in result] == ["Other", "Ready", "New"]
        assert conditions.merged([self.THEIRS, self.OURS], [], LATER, drop=["Ready"]) == (self.THEIRS,)

    def test_questions(self) -> None:
        """Neither a condition that is False nor an absent one is true."""
        existing = (self.OURS, self.THEIRS)
        assert conditions.is_true(existing, "Ready")
        assert not conditions.is_true(existing, "Other")
        assert not conditions.is_true(existing, "Absent")

    def test_the_wire_form_has_every_required_member(self) -> None:
        """The schema requires a message even where it is empty."""
        assert conditions.as_json([self.OURS]) == [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Up",
                "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ]


class TestOwners:
    """Owners are told by UID."""

    def test_a_child_knows_its_controller(self) -> None:
        """Only the owner that says so controls; a namesake with another UID does not."""
        pod = convert(Pod, {**make.pod("a").build(), "metadata": {"name": "a", "uid": "1"}})
        child = convert(ObjectMeta, {"ownerReferences": [owners.controller_reference(pod)]})
        other = convert(Pod, {"metadata": {"name": "a", "uid": "2"}})
        assert owners.controlled_by(child, pod)
        assert not owners.controlled_by(child, other)

    def test_a_plain_owner_does_not_control(self) -> None:
        """A plain reference is enough for garbage collection, not for control."""
        pod = convert(Pod, {"metadata": {"name": "a", "uid": "1"}})
        child = convert(ObjectMeta, {"ownerReferences": [owners.reference(pod)]})
        assert owners.controller_of(child) is None


@pytest.mark.parametrize(
    ("value", "up", "down"), [(3, 3, 3), ("3", 3, 3), ("25%", 3, 2), ("0%", 0, 0), ("100%", 10, 10)]
)
def test_percentages(value: int | str, up: int, down: int) -> None:
    """A minimum rounds up, a maximum rounds down."""
    assert (intstr.at_least(value, 10), intstr.at_most(value, 10)) == (up, down)


@pytest.mark.parametrize("value", ["x", "25 %", "-5%", ""])
def test_what_is_no_percentage_is_refused(value: str) -> None:
    """The message says what is allowed."""
    with pytest.raises(intstr.PercentError, match="neither a count nor a percentage"):
        intstr.at_least(value, 10)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "value": "yes", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    """An empty operator means Equal, an empty effect every effect, an empty key with Exists every taint."""
    taint = Taint(key="gpu", value="yes", effect="NoSchedule")
    assert convert(Toleration, toleration).tolerates(taint) is expected


def test_times_are_in_utc() -> None:
    """A time of another zone is converted; fractions of a second stay in a MicroTime only."""
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(moment) == "2026-01-02T01:04:05Z"
    assert rfc3339_milli(moment) == "2026-01-02T01:04:05.000Z"
    assert rfc3339_micro(moment) == "2026-01-02T01:04:05.000678Z"

"""`explain` in forty situations: the first line names the true blocker, and the advice makes the gang run."""

from __future__ import annotations

import pytest

from spinney.answers.explanation import explanations
from spinney.answers.remedies import remedy
from spinney.answers.workloads import workloads
from tests.answers.scene import Scene
from tests.answers.situations import SITUATIONS, Situation


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_the_first_line_names_the_blocker_and_the_advice_helps(situation: Situation) -> None:
    """The blocker in the first sentence, the advice below it, tried on the scheduler's own state."""
    cluster = situation.build(Scene()).cluster()
    (explanation,) = explanations(cluster, "job", "waits", "default")
    assert explanation.why is not None
    assert situation.blocker.lower() in explanation.why.text.lower()
    assert situation.advice.lower() in " ".join(explanation.why.advice).lower()
    assert explanation.advice_tried is situation.curable


@pytest.mark.parametrize("situation", SITUATIONS, ids=[situation.name for situation in SITUATIONS])
def test_the_advice_of_a_listing_is_the_first_step_of_the_advice_that_is_tried(situation: Situation) -> None:
    """A listing tries nothing. Nodes that are ruled out hide one whose room would be enough, until that is tried."""
    cluster = situation.build(Scene()).cluster()
    (explanation,) = explanations(cluster, "job", "waits", "default")
    listed = next(each.why for each in workloads(cluster).items if each.ref.name == "waits")
    assert explanation.why is not None
    assert listed is not None
    if situation.name == "the nodes that the selector fits are full, and another is cordoned":
        assert listed.advice != explanation.why.advice
    else:
        assert (listed.text, listed.advice[:1]) == (explanation.why.text, explanation.why.advice[:1])


def test_a_trial_leaves_the_state_as_it_was() -> None:
    """What was tried for one question does not show in the answer to the next."""
    scene = Scene().nodes(1).queue("team", limit=4).job("waits", 1, 16)
    cluster = scene.cluster()
    assert cluster.schedule is not None
    state = cluster.schedule.state
    before = (dict(state.queue_specs), list(state.nodes.rows), {uid: task.spec for uid, task in state.tasks.items()})
    assert remedy(cluster.schedule, "default/pg-waits").is_enough
    after = (dict(state.queue_specs), list(state.nodes.rows), {uid: task.spec for uid, task in state.tasks.items()})
    assert before == after

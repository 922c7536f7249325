"""Objects with absurd numbers stop no decision about others."""

from __future__ import annotations

from typing import Any

import pytest

from spinney.api.core import Node
from spinney.api.meta import convert
from spinney.scheduler.intake.cluster_objects import MOST_GPUS, node_spec
from spinney.scheduler.state import status as st
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import NodeSpec, TaskSpec
from spinney.scheduler.state.tasks import UNSERVED, mig_slices
from spinney.scheduler.state.validation import validate_state
from tests import make

LABEL = {"nvidia.com/gpu.count": "9" * 18, "nvidia.com/gpu.memory": "9" * 18}


def node(gpus: Any = 8, **labels: str) -> NodeSpec:
    """A node whose kubelet reports so many GPUs."""
    stored = make.node("n").build()
    stored["metadata"].setdefault("labels", {}).update(labels)
    stored["status"]["allocatable"]["nvidia.com/gpu"] = gpus
    return node_spec(convert(Node, stored))


def task(uid: str, *, on: str = "", job: str = "", **request: float) -> TaskSpec:
    """A pod that asks for resources by name."""
    status = st.RUNNING if on else st.PENDING
    return TaskSpec(uid, job, status=status, node=on, request={"cpu": 1000.0, **request})


@pytest.mark.parametrize("reported", [node("1e999999999"), node(**LABEL), node("9e18", **LABEL)])
def test_a_node_of_2_63_gpus_stopped_the_scheduler(reported: NodeSpec) -> None:
    """A node that reports more GPUs than a machine can have counts with as many as one can have, at most."""
    state = State()
    state.set_node(reported)
    assert state.nodes.gpu_count[0] <= MOST_GPUS
    assert state.nodes.allocatable[0].max() < 1e15
    validate_state(state)


def test_a_mig_profile_of_thirty_digits_is_none() -> None:
    """No GPU has more than 99 slices."""
    assert mig_slices("nvidia.com/mig-3g.40gb") == 3
    assert mig_slices(f"nvidia.com/mig-{'9' * 30}g.5gb") == 0


def test_pods_that_ask_for_thousands_of_resources_filled_the_memory() -> None:
    """Resources that no node offers take no column in the tables of nodes and classes."""
    state = State()
    state.set_node(node())
    width = len(state.columns)
    for number in range(20):
        state.set_task(task(str(number), **{f"x{number}/r{each}": 1.0 for each in range(500)}))
    assert len(state.columns) == width
    assert all(state.tasks[str(number)].cls.request[UNSERVED] == 500 for number in range(20))


def test_a_resource_that_a_node_brings_later_is_counted() -> None:
    """Pods that asked for it before are held against what the node offers, wherever they are."""
    state = State()
    state.set_node(NodeSpec("other", {"cpu": 4000.0, "pods": 10.0}))
    state.set_task(task("early", on="other", **{"x/new": 2.0}))
    state.set_task(task("waiting", **{"x/new": 3.0, "x/never": 1.0}))
    state.set_node(NodeSpec("n", {"cpu": 4000.0, "pods": 10.0, "x/new": 4.0}))
    column = state.columns.find("x/new")
    assert state.tasks["waiting"].cls.request[[column, UNSERVED]].tolist() == [3.0, 1.0]
    assert state.tasks["early"].cls.request[[column, UNSERVED]].tolist() == [2.0, 0.0]
    validate_state(state)
    state.set_task(task("late", on="n", **{"x/new": 1.0}))
    assert state.nodes.idle[state.nodes.rows["n"], column] == 3.0
    state.drop_task("early")
    validate_state(state)

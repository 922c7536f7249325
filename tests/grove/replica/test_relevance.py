"""What wakes no controller changes no plan: checked on every change of whole scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spinney.api.core import Pod
from spinney.api.meta import Object
from spinney.grove.model.changes import Change as Planned
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.view import View
from spinney.grove.observe import observe
from spinney.grove.operator import Operator
from spinney.grove.replica.facts import Facts
from spinney.grove.replica.plan import plan_replica
from spinney.grove.replica.relevance import changes_plan, changes_status
from spinney.grove.status.plan import plan_status
from spinney.grove.world import replica_key, split
from spinney.kube.caches.cache import Change
from spinney.kube.writer import NameTaken
from tests import make
from tests.grove.stage import Stage
from tests.grove.virtual import play


class Checked:
    """Plans the replica of every changed object as it was and as it is."""

    def __init__(self) -> None:
        self.ignored_by_plan = 0
        self.ignored_by_status = 0
        self.missed: list[object] = []

    def check(self, operator: Operator, change: Change[Any]) -> None:
        """A change that wakes nobody must ask for nothing that the state before did not."""
        views = list(self._views(operator, change))
        if not views:
            return
        if not changes_plan(change):
            self.ignored_by_plan += 1
            before, after = (planned(operator, view) for view in views)
            self.missed += [(change, item) for item in after if item not in before]
        if isinstance(change.new, Pod) and not changes_status(change):
            self.ignored_by_status += 1
            before, after = (statuses(operator, view) for view in views)
            self.missed += [(change, before, after)] if before != after else []

    def _views(self, operator: Operator, change: Change[Any]) -> Iterator[View]:
        key = replica_key(change.object)
        if key is None or change.old is None or change.new is None:
            return
        namespace, name, index = split(key)
        pcs = operator.world.sets.get((namespace, name))
        if pcs is None or index >= pcs.spec.replicas:
            return
        for seen in (change.old, change.new):
            view = observe(operator.world, pcs, index)
            put_back(view, seen)
            yield view


def put_back(view: View, item: Object) -> None:
    """Let a view show an object in another state."""
    tables: list[dict[str, Any]] = [view.groups, view.cliques, view.gangs, view.autoscalers, view.claims]
    for table in tables:
        if item.name in table and type(table[item.name]) is type(item):
            table[item.name] = item
    for pods in view.pods.values():
        pods[:] = [item if isinstance(item, Pod) and pod.uid == item.uid else pod for pod in pods]


def planned(operator: Operator, view: View) -> list[object]:
    """What a replica's plan asks for, with objects by their identity alone, and when it wants to look again."""
    world = operator.world
    choice = world.choose(view.pcs)
    names = PodNames(lambda clique: f"{clique}-new")
    gates = frozenset(backend.gate for backend in world.registry) - {choice.backend.gate}
    now = operator._runtime.clock.now()
    try:
        steps = list(plan_replica(view, Facts(choice, world.served, "image", gates, names, now)))
        again = [step.look_again for step in steps if step.look_again is not None]
        return [*again, *(described(change) for step in steps for change in step.changes)]
    except NameTaken as error:
        return [str(error)]


def described(change: Planned) -> object:
    """A change with its objects by their identity."""
    return type(change), {
        name: value.uid if isinstance(value, Object) else value for name, value in vars(change).items()
    }


def statuses(operator: Operator, view: View) -> list[object]:
    """What a replica's statuses should change."""
    plan = plan_status(view, "", operator.world.nodes, operator._runtime.clock.now())
    return [described(patch) for patch in plan.patches]


def test_a_change_that_wakes_nobody_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Creation, placement, scaling, an update, a lost node and deletion: no relevant change is left out."""
    checked = Checked()
    watch = Operator._watch

    def watch_checked(operator: Operator) -> None:
        watch(operator)
        for cache in operator.world.by_replica:
            cache.on_change(lambda change: checked.check(operator, change))

    monkeypatch.setattr(Operator, "_watch", watch_checked)

    async def scenario(stage: Stage) -> None:
        body = make.pcs("all").clique("a", 2).clique("b", 2).group("g", ["b"], 2, 1).build()
        body["spec"]["template"]["terminationDelay"] = "30s"
        await stage.apply(body)
        await stage.runs(6)
        for pod in await stage.pods():
            await stage.client.patch(Pod, pod.key, {"metadata": {"annotations": {"noted": "by someone"}}})
        await stage.change_image("all", "new:1")
        await stage.updated("all")
        await stage.delete(Pod, (await stage.pods("all-0-a"))[0].name)
        await stage.runs(6)
        await stage.cordon(10)
        await stage.delete(Pod, (await stage.pods("all-0-a"))[0].name)
        await stage.settle(60)
        await stage.cordon(0)
        await stage.runs(6)

    play(scenario, nodes=10)
    assert not checked.missed
    assert checked.ignored_by_plan > 50
    assert checked.ignored_by_status > 5

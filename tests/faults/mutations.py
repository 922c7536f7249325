"""Proof that the fault search can fail: mistakes put into each component on purpose, and the fault that reveals them.

`python -m tests.faults.mutations [NAME …]` makes the mistakes one by one, and exits with 1 if one goes unnoticed.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec
import structlog

from spinney.sim.faults.campaign import search_in
from spinney.sim.faults.forks import Forks
from spinney.sim.faults.kinds import Kind
from spinney.sim.faults.scenarios import SCENARIOS
from spinney.sim.faults.search import Result, Search


@dataclass(frozen=True)
class At:
    """A fault at the first write of the scenario that starts so."""

    kind: Kind
    write: str


@dataclass(frozen=True)
class Mutation:
    """A mistake in a component: what replaces `module:attribute`, and what reveals it in which scenario."""

    component: str
    mistake: str
    target: str
    # Makes the replacement from the original.
    replacement: Callable[[Any], Any]
    scenario: str
    revealed_by: At | None = None

    @property
    def name(self) -> str:
        """Component and mistake."""
        return f"{self.component}: {self.mistake}"


def always(value: object) -> Callable[[Any], Any]:
    """A function that gives one answer to everything."""
    return lambda original: lambda *args, **kwargs: value


def idle(original: Any) -> Any:
    """A coroutine function that does nothing."""

    async def nothing(*args: Any, **kwargs: Any) -> None:
        """Nothing."""

    return nothing


def without_owner(original: Any) -> Any:
    """An object without its owner reference."""

    def built(*args: Any, **kwargs: Any) -> Any:
        document = original(*args, **kwargs)
        document.get("metadata", document).pop("ownerReferences")
        return document

    return built


def never_subtracted(original: Any) -> Any:
    """A queue's usage that only grows."""

    def move(self: Any, queue: str, usage: Any, sign: int) -> Any:
        return original(self, queue, usage, abs(sign))

    return move


def ready_without_objects(original: Any) -> Any:
    """A backend that reports ready before it wrote anything."""

    async def sync(self: Any, owner: Any, objects: Any) -> Any:
        return [], (), []

    return sync


def as_it_was(original: Any) -> Any:
    """A backend that changes nothing about pods."""

    def prepare(self: Any, pod: Any, *others: Any) -> Any:
        return pod

    return prepare


def without_gpu(original: Any) -> Any:
    """A reservation pod that asks for no GPU."""

    def pod(*args: Any) -> Any:
        document = original(*args)
        document["spec"]["containers"][0]["resources"] = {}
        return document

    return pod


def nothing_unneeded(original: Any) -> Any:
    """Scaling pods that stay when nobody needs them any more."""

    def plan(*args: Any) -> Any:
        return [], original(*args)[1]

    return plan


def pool_less(original: Any) -> Any:
    """A scheduler's file without the node pool of its shard."""

    def plan_file(*args: Any) -> Any:
        return msgspec.structs.replace(original(*args), partition_label_value="")

    return plan_file


MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "grove", "finalizers are not released", "spinney.kube.writer:Writer.release", idle, "deleted-while-deployed"
    ),
    Mutation("grove", "gates stay on", "spinney.grove.replica.gates:own_gates", always(()), "gang-kai"),
    Mutation(
        "grove",
        "a replica that was removed half is left",
        "spinney.grove.replica.controller:plan_removed_replica",
        always(()),
        "scaling-kai",
    ),
    Mutation(
        "backends",
        "ready before the object exists",
        "spinney.backends.sync:Targets.sync",
        ready_without_objects,
        "gang-kai",
    ),
    Mutation(
        "backend kai", "an object without its owner", "spinney.backends.kai:owned_metadata", without_owner, "gang-kai"
    ),
    Mutation(
        "backends",
        "readiness is not told",
        "spinney.backends.controller:BackendController._write_status",
        idle,
        "gang-kai",
    ),
    Mutation(
        "scheduler",
        "evictions that an earlier scheduler left half done are forgotten",
        "spinney.scheduler.service.loop:Scheduler._resume_evictions",
        always(None),
        "reclaim",
        At(Kind.CRASH_AFTER, "scheduler: POST /api/v1/namespaces/default/pods/bb-"),
    ),
    Mutation(
        "scheduler",
        "decisions that were written in part are left",
        "spinney.scheduler.service.partial_decisions:PartialDecisions.take",
        always([]),
        "gang-kai",
        At(Kind.CRASH_AFTER, "scheduler: POST /apis/scheduling.run.ai/v1alpha2/namespaces/default/bindrequests"),
    ),
    Mutation(
        "scheduler",
        "the quota for pods that must not be preempted is forgotten",
        "spinney.scheduler.plugins.proportion:Proportion.beyond_quota",
        always(None),
        "quota",
    ),
    Mutation(
        "scheduler",
        "the required domain of a group is forgotten",
        "spinney.scheduler.intake.cluster_objects:_constraint",
        always(None),
        "topology",
    ),
    Mutation(
        "scheduler",
        "devices that another claim has are given out again",
        "spinney.scheduler.service.device_claims:DeviceClaims._taken",
        lambda original: lambda self: set(),
        "claims",
    ),
    Mutation(
        "binder",
        "a bind that failed is forgotten",
        "spinney.services.binder.controller:Binder._failed",
        idle,
        "shared",
        At(Kind.REFUSED, "binder: POST /api/v1/namespaces/default/pods/part-0/binding"),
    ),
    Mutation(
        "binder",
        "GPUs that nobody shares any more stay reserved",
        "spinney.services.binder.shared_gpus:SharedGpus._delete",
        idle,
        "shared",
    ),
    Mutation(
        "podgrouper",
        "a group without its owner",
        "spinney.services.podgrouper.plan:_new_group",
        without_owner,
        "reclaim",
    ),
    Mutation(
        "podgrouper",
        "pods do not refer to their group",
        "spinney.services.podgrouper.controller:plan_pod",
        always(None),
        "shared",
    ),
    Mutation(
        "podgroups",
        "allocated resources are not counted",
        "spinney.services.podgroups.controller:allocated",
        always({}),
        "queue-moved",
    ),
    Mutation(
        "podgroups",
        "the phase stays Pending",
        "spinney.services.podgroups.controller:phase_of",
        always("Pending"),
        "queue-moved",
    ),
    Mutation("queues", "usage only grows", "spinney.services.queues.tree:Tree._move", never_subtracted, "queue-moved"),
    Mutation(
        "queues",
        "usage does not reach the queues above",
        "spinney.services.queues.tree:Tree.upwards",
        always([]),
        "queue-moved",
    ),
    Mutation(
        "admission",
        "shares of GPUs are not mounted",
        "spinney.services.admission.gpu_sharing:mount_sharing_config",
        always(None),
        "shared",
    ),
    Mutation("admission", "nothing is ours", "spinney.services.admission.webhooks:_is_ours", always(False), "shared"),
    Mutation(
        "nodescale",
        "scaling pods stay when nobody needs them",
        "spinney.services.nodescale.controller:plan",
        nothing_unneeded,
        "scale-adjuster",
    ),
    Mutation(
        "nodescale",
        "nobody waits for room",
        "spinney.services.nodescale.controller:waits_for_room",
        always(False),
        "scale-adjuster",
    ),
    Mutation(
        "platform", "a shard's pool is forgotten", "spinney.services.platform.processes:plan_file", pool_less, "shard"
    ),
    Mutation(
        "platform",
        "conditions are not told",
        "spinney.services.platform.controller:plan_conditions",
        always(None),
        "shard",
    ),
    Mutation(
        "backend volcano",
        "an object without its owner",
        "spinney.backends.volcano.backend:owned_metadata",
        without_owner,
        "gang-volcano",
    ),
    Mutation(
        "backend volcano",
        "pods do not name their group",
        "spinney.backends.volcano.backend:Volcano.prepare",
        as_it_was,
        "gang-volcano",
    ),
    Mutation(
        "backend koordinator",
        "an object without its owner",
        "spinney.backends.koordinator.groups:owned_metadata",
        without_owner,
        "gang-koordinator",
    ),
    Mutation(
        "backend koordinator",
        "pods do not name their group",
        "spinney.backends.koordinator.backend:Koordinator.prepare",
        as_it_was,
        "gang-koordinator",
    ),
    Mutation(
        "backend yunikorn",
        "pods do not name their application",
        "spinney.backends.yunikorn.backend:YuniKorn.prepare",
        as_it_was,
        "gang-yunikorn",
    ),
    Mutation(
        "backend yunikorn",
        "nothing is reserved for a gang",
        "spinney.backends.yunikorn.backend:task_groups",
        always([]),
        "gang-yunikorn",
    ),
    Mutation(
        "backend default",
        "an object without its owner",
        "spinney.backends.kube_scheduler.v1_35:owned_metadata",
        without_owner,
        "gang-default",
    ),
    Mutation(
        "backend default",
        "no gang is ever complete",
        "spinney.backends.kube_scheduler.in_turn.release_queue:is_complete",
        always(False),
        "gang-default",
    ),
    Mutation(
        "backend kai",
        "pods do not name their group",
        "spinney.backends.kai:Kai.prepare",
        as_it_was,
        "gang-kai",
    ),
    Mutation(
        "reservation",
        "a reservation holds no GPU",
        "spinney.services.binder.shared_gpus:reservation_pod",
        without_gpu,
        "shared",
    ),
    Mutation(
        "reservation",
        "a reservation is looked for by another name",
        "spinney.services.binder.shared_gpus:reservation_name",
        always("gpu-reservation-0000000000000000"),
        "shared",
    ),
    Mutation(
        "nodes",
        "pods that are deleted go on",
        "spinney.embedded.nodes.kubelet:Kubelets._stop",
        idle,
        "volumes",
    ),
    Mutation(
        "nodes",
        "a reserved GPU is not told",
        "spinney.embedded.nodes.kubelet:Kubelets._annotate_gpu",
        idle,
        "shared",
    ),
    Mutation(
        "garbage collector",
        "objects of a deleted owner are not looked for",
        "spinney.embedded.apiserver.followers.garbage_collector:GarbageCollector._owner",
        always(None),
        "stale-gang",
    ),
    Mutation(
        "garbage collector",
        "objects without owners stay",
        "spinney.embedded.apiserver.followers.garbage_collector:GarbageCollector._dependent",
        always(None),
        "gang-kai",
    ),
)


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Replace the target; instances that exist already are changed with their class."""
    module, _, path = mutation.target.partition(":")
    *parents, attribute = path.split(".")
    owner: Any = import_module(module)
    for parent in parents:
        owner = getattr(owner, parent)
    original = getattr(owner, attribute)
    setattr(owner, attribute, mutation.replacement(original))
    try:
        yield
    finally:
        setattr(owner, attribute, original)


async def revealed(search: Search, mutation: Mutation) -> Result | None:
    """The first run that breaks a rule because of the mistake."""
    fault = mutation.revealed_by
    with applied(mutation):
        if fault is None:
            result = await search.no_fault()
        else:
            writes = enumerate(search.clean.writes, 1)
            number = next(number for number, write in writes if write.startswith(fault.write))
            result = await search.one_write(number, fault.kind)
    return result if result.problem else None


def try_in(scenario: str, mutations: list[Mutation]) -> int:
    """Make the mistakes of one scenario; how many went unnoticed."""

    async def search(own: Search) -> int:
        missed = 0
        for mutation in mutations:
            result = await revealed(own, mutation)
            missed += result is None
            outcome = result.problem.strip().splitlines()[0][:160] if result else "UNNOTICED"
            print(f"{mutation.name} [{scenario}]: {outcome}", flush=True)
        return missed

    return search_in(SCENARIOS[scenario], 1, search)


def try_all(mutations: tuple[Mutation, ...]) -> int:
    """Make the mistakes, two scenarios side by side; how many went unnoticed."""
    by_scenario: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        by_scenario[mutation.scenario].append(mutation)
    forks = Forks(2)
    for scenario, own in by_scenario.items():
        deliver = forks.fork()
        if deliver:
            deliver(try_in(scenario, own))
    return sum(forks.results())


def main() -> int:
    """Make the mistakes that are named, or all."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.faults.mutations", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )
    warnings.simplefilter("ignore", DeprecationWarning)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    chosen = tuple(mutation for mutation in MUTATIONS if not sys.argv[1:] or mutation.name in sys.argv[1:])
    return min(try_all(chosen), 1)


if __name__ == "__main__":
    sys.exit(main())

"""Small clusters, and exhaustive search over everything that could be decided for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from hypothesis import strategies as some

from spinney.scheduler.plan import Plan
from spinney.scheduler.state import status as st
from tests.scheduler.clusters import Cluster, outcome

SIZES = some.sampled_from([1, 2, 4])


@dataclass(frozen=True)
class Running:
    """A gang that runs: its queue, the GPUs of each task, the nodes they are on, and who may have it evicted."""

    queue: str
    gpus: float
    nodes: tuple[int, ...]
    priority: int = 50
    preemptible: bool = True

    @property
    def total(self) -> float:
        return self.gpus * len(self.nodes)


@dataclass
class Small:
    """A cluster of at most four nodes with what its running gangs leave free; later gangs are less deserving."""

    cluster: Cluster
    left: list[float]
    quotas: dict[str, int]
    running: dict[str, Running] = field(default_factory=dict)

    def held(self, queue: str) -> float:
        return sum(workload.total for workload in self.running.values() if workload.queue == queue)

    def without(self, gone: Iterable[str]) -> list[float]:
        rooms = list(self.left)
        for name in gone:
            for node in self.running[name].nodes:
                rooms[node] += self.running[name].gpus
        return rooms

    def fits(self, rooms: Sequence[float], wanted: Iterable[float], moved: Iterable[str] = ()) -> bool:
        """Whether tasks of so many GPUs, and gangs that were moved, go onto the nodes in any way at all."""
        again = [workload.gpus for workload in map(self.running.__getitem__, moved) for _ in workload.nodes]
        return pack(tuple(rooms), sorted([*wanted, *again], reverse=True))


def pack(rooms: tuple[float, ...], sizes: list[float]) -> bool:
    """Whether tasks, the largest first, go onto nodes with so much room in any way at all."""
    if not sizes:
        return min(rooms) >= 0
    return any(
        pack((*rooms[:node], rooms[node] - sizes[0], *rooms[node + 1 :]), sizes[1:])
        for node in {room: node for node, room in enumerate(rooms)}.values()
        if rooms[node] >= sizes[0]
    )


@some.composite
def small(draw: some.DrawFn, queues: int = 1, priorities: Sequence[int] = (50,)) -> Small:
    """Up to four nodes, and up to six gangs of one or two tasks that run on them, in one queue or several."""
    sizes = draw(some.lists(SIZES, min_size=1, max_size=4))
    quotas = {f"q{number}": draw(some.integers(0, sum(sizes))) for number in range(queues)}
    setting = Small(Cluster(*sizes), [float(size) for size in sizes], quotas)
    for queue, quota in quotas.items():
        setting.cluster.queue(queue, quota if queues > 1 else 100, weight=draw(some.integers(0, 2)))
    for number in range(draw(some.integers(0, 6))):
        gpus, count = draw(some.sampled_from([1, 1, 2])), draw(some.sampled_from([1, 1, 2]))
        rooms, nodes = list(setting.left), []
        for _ in range(count):
            node = draw(some.integers(0, len(sizes) - 1))
            if rooms[node] >= gpus:
                rooms[node] -= gpus
                nodes.append(node)
        if len(nodes) == count:
            queue = draw(some.sampled_from(list(quotas)))
            workload = Running(
                queue, gpus, tuple(nodes), draw(some.sampled_from(priorities)), draw(some.integers(0, 6)) > 0
            )
            _run(setting, f"r{number}", workload)
            setting.left = rooms
    return setting


def _run(setting: Small, name: str, workload: Running) -> None:
    places = [f"n{node}" for node in workload.nodes]
    setting.running[name] = workload
    setting.cluster.job(
        name, workload.queue, places, gpus=workload.gpus, priority=workload.priority, preemptible=workload.preemptible
    )


def subsets(names: Iterable[str]) -> list[tuple[str, ...]]:
    all_names = list(names)
    return [subset for size in range(len(all_names) + 1) for subset in combinations(all_names, size)]


def after_moves(done: Plan, setting: Small) -> tuple[set[str], list[float]]:
    """Gangs that lost their place, and what is free with them still there and moved ones in their new place."""
    lost: set[str] = set()
    rooms = list(setting.left)
    for key, (status, node, _) in outcome(done).items():
        name, _, number = key.rpartition("-")
        if status == st.RELEASING:
            lost.add(name)
        elif status == st.PIPELINED and name in setting.running:
            workload = setting.running[name]
            rooms[workload.nodes[int(number)]] += workload.gpus
            rooms[int(node[1:])] -= workload.gpus
    return lost, rooms


def assert_nobody_left_in_vain(done: Plan, setting: Small, wanted: Sequence[float]) -> None:
    """No proper part of those who lost their place would have been enough."""
    lost, rooms = after_moves(done, setting)
    for fewer in subsets(lost):
        if len(fewer) < len(lost):
            still = [room + back for room, back in zip(rooms, _freed(setting, fewer), strict=True)]
            assert min(still) < 0 or not setting.fits(still, wanted)


def _freed(setting: Small, names: Iterable[str]) -> list[float]:
    return [after - before for after, before in zip(setting.without(names), setting.left, strict=True)]


Device = tuple[int, int]


Holding = dict[str, tuple[float, list[Device]]]


@some.composite
def sharing(
    draw: some.DrawFn, priorities: Sequence[int] = (10, 20, 95)
) -> tuple[Cluster, dict[Device, float], Holding]:
    """Up to three nodes whose GPUs gangs share; what is left of each, and what lesser gangs hold of which."""
    sizes = draw(some.lists(some.integers(1, 3), min_size=1, max_size=3))
    cluster = Cluster(*sizes).queue("q", 100)
    left = {(node, number): 1.0 for node, size in enumerate(sizes) for number in range(size)}
    lesser: Holding = {}
    for name in (f"r{number}" for number in range(draw(some.integers(1, 6)))):
        part, devices = draw(some.sampled_from([0.25, 0.5, 1.0])), list[Device]()
        for _ in range(draw(some.integers(1, 2))):
            device = draw(some.sampled_from(sorted(left)))
            if left[device] >= part:
                left[device] -= part
                devices.append(device)
        priority = draw(some.sampled_from(priorities))
        cluster.job(name, "q", [f"n{node}" for node, _ in devices], gpus=part, priority=priority)
        for number, (node, index) in enumerate(devices):
            spec = cluster.state.tasks[f"{name}-{number}"].spec
            groups = (f"n{node}-{index}",) if part < 1 else ()
            cluster.state.set_task(replace(spec, gpu_groups=groups))
        if priority < 90:
            lesser[name] = part, devices
    return cluster, left, lesser


def room_for(left: dict[Device, float], gpus: float) -> int:
    """How many tasks the devices hold: parts go onto one device, whole ones are counted on each node."""
    if gpus < 1:
        return sum(int(part // gpus) for part in left.values())
    whole = Counter(node for (node, _), part in left.items() if part == 1)
    return sum(count // int(gpus) for count in whole.values())

"""What moving pods together would gain: which moves, stranded GPUs, and the largest gang that fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from spinney.answers.cluster import Cluster, Schedule
from spinney.answers.model import Defrag, Displacement, LevelGain
from spinney.answers.ownership import owner_of
from spinney.answers.whatif.changes import ChangeError
from spinney.answers.whatif.playing import is_recreated
from spinney.answers.whatif.trial import Trial, trial
from spinney.api.numbers import number
from spinney.scheduler.defragment import Migration, Obstacle, defragment
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.tasks import GPU
from spinney.scheduler.why.advice import counted
from spinney.scheduler.why.texts import sentence_case

_NODE, _CLUSTER = "node", "cluster"
Room = Mapping[str, tuple[float, float]]
# Why a node stays as it is.
_OBSTACLES = {
    Obstacle.NOT_OURS: "the pods are not ours",
    Obstacle.SHARED_GPUS: "the pods share GPUs",
    Obstacle.IN_TRANSITION: "a pod comes or goes",
    Obstacle.NOT_PREEMPTIBLE: "a pod is not preemptible",
    Obstacle.NOT_RECREATED: "nobody creates a pod again",
    Obstacle.MINIMUM_RUN_TIME: "a pod is within its minimum run time",
    Obstacle.DISRUPTION_BUDGET: "a disruption budget keeps a pod",
    Obstacle.TOO_MANY_MOVES: "too many pods would move",
    Obstacle.NO_ROOM: "the pods fit nowhere else",
}


def defrag(cluster: Cluster, most: int) -> Defrag:
    """The moves that free the most nodes, at most so many, and what they gain; the cluster is the same afterwards."""
    schedule = cluster.schedule
    if schedule is None:
        raise ChangeError("this needs to read nodes, queues, pods and PodGroups of the whole cluster")
    recreated = {pod.uid for pod in cluster.pods if is_recreated(pod)}
    with trial(schedule.state) as changed:
        _keep_to_volumes(cluster, schedule, changed)
        plan = defragment(schedule.state, schedule.config, schedule.plan.now, most, recreated.__contains__)
    before, after = _room(schedule.state, plan.before), _room(schedule.state, plan.after)
    gains = [
        LevelGain(level=level, before=_largest(cluster, before, level), after=_largest(cluster, after, level))
        for level in (_NODE, *reversed(cluster.levels), _CLUSTER)
    ]
    stranded, left = _stranded(before), _stranded(after)
    nodes = len({move.node for move in plan.moves})
    gain = f"{number(stranded - left)} of {number(stranded)} stranded GPUs would be together"
    nothing = f"no move would help: {counted(stranded, 'GPU')} {'is' if stranded == 1 else 'are'} stranded"
    text = f"{counted(len(plan.moves), 'move')} would empty {counted(nodes, 'node')}: {gain}"
    return Defrag(
        moves=[_move(cluster, schedule.state, move) for move in plan.moves],
        stranded_before=stranded,
        stranded_after=left,
        levels=gains,
        kept={_OBSTACLES[obstacle]: count for obstacle, count in plan.kept.items()},
        text=sentence_case(text if plan.moves else nothing),
    )


def _keep_to_volumes(cluster: Cluster, schedule: Schedule, changed: Trial) -> None:
    """Let placed pods move only where their volumes can be reached."""
    nodes = schedule.picture.volume_nodes(cluster.pods) if schedule.picture is not None else {}
    for uid in nodes.keys() & schedule.state.tasks.keys():
        spec = schedule.state.tasks[uid].spec
        changed.set_task(replace(spec, constraints=replace(spec.constraints, volume_nodes=nodes[uid])))


def _move(cluster: Cluster, state: State, move: Migration) -> Displacement:
    spec = state.tasks[move.task].spec
    pod = cluster.pod_of[spec.namespace, spec.name]
    return Displacement(
        pod=f"{spec.namespace}/{spec.name}",
        workload=owner_of(cluster, pod).ref,
        node=move.node,
        to=move.to,
        right="defrag",
        text=f"it goes to {move.to}",
        gpus=state.tasks[move.task].cls.quota,
    )


def _room(state: State, idle: Mapping[str, float]) -> Room:
    """Idle and all GPUs of every node that takes pods."""
    nodes = state.nodes
    return {
        name: (gpus, float(nodes.allocatable[row, GPU]))
        for name, gpus in idle.items()
        if nodes.spec(row := nodes.rows[name]).blocked is None and nodes.allocatable[row, GPU] > 0
    }


def _stranded(room: Room) -> float:
    """Idle GPUs beside others that are used: no pod that needs a whole node can have them."""
    return round(sum(idle for idle, total in room.values() if 0 < idle < total), 3)


def _largest(cluster: Cluster, room: Room, level: str) -> float:
    """GPUs of the largest gang that fits: on one node, or on whole nodes of one domain."""
    if level == _NODE:
        return max((idle for idle, _ in room.values()), default=0.0)
    domains: dict[str, float] = defaultdict(float)
    for name, (idle, total) in room.items():
        if idle == total:
            domains["" if level == _CLUSTER else cluster.domain_of(name).get(level, "")] += total
    return max((gpus for domain, gpus in domains.items() if domain or level == _CLUSTER), default=0.0)

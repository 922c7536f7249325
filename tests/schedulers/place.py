"""One story's corner of a cluster: a namespace, nodes that only its pods may use, and what becomes of its gangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spinney.api import labels
from spinney.api.conditions import find
from spinney.api.core import Event, Node
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Condition, Json
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.kube.errors import ApiError
from tests import make
from tests.schedulers import topology
from tests.waiting import cache_until, object_until, until

if TYPE_CHECKING:
    from tests.schedulers.stage import Stage

WHERE = "example.com/where"


class Place:
    """What a story holds: it makes nodes and sets, and waits for what a user would see of them."""

    def __init__(self, stage: Stage, namespace: str) -> None:
        self.stage = stage
        self.entry = stage.entry
        self.client = stage.client
        self.namespace = namespace
        self.node_names: list[str] = []
        self._ever_bound: set[str] = set()
        stage.pods.on_change(lambda _: self._ever_bound.update(pod.uid for pod in self.pods() if pod.spec.node_name))

    async def nodes(self, count: int, gpus: int = 2, rack: str = "", block: str = "") -> list[str]:
        """Add nodes, in a rack of a block where told; each story has racks and blocks of its own."""
        names: list[str] = []
        for _ in range(count):
            name = f"{self.namespace}-{len(self.node_names)}"
            self.node_names.append(name)
            builder = make.node(name, gpus).annotate(labels.SIMULATED, "true").label(WHERE, self.namespace)
            if rack:
                builder.label(topology.RACK, f"{self.namespace}-{rack}")
                builder.label(topology.BLOCK, f"{self.namespace}-{block or 'block'}")
            await self.client.create(Node, builder.build())
            names.append(name)
        if rack:
            await topology.follow(self.stage, self.node_names)
        return names

    def set(self, name: str, replicas: int = 1) -> make.SetBuilder:
        """A set of this story's scheduler."""
        return make.pcs(name, self.namespace, replicas)

    def role(self, pcs: make.SetBuilder, name: str, pods: int, least: int | None = None, gpus: int = 1) -> Json:
        """Add a role whose pods ask for so many GPUs and run on this story's nodes; returns the clique."""
        amount = {"nvidia.com/gpu": str(gpus)}
        container = {"name": "main", "image": "busybox", "resources": {"requests": amount, "limits": amount}}
        spec = {"nodeSelector": {WHERE: self.namespace}, "containers": [container]}
        pcs.clique(name, pods, least, schedulerName=self.entry.scheduler_name, **spec)
        clique: Json = pcs.object["spec"]["template"]["cliques"][-1]
        return clique

    def workers(self, name: str, pods: int, least: int | None = None, gpus: int = 1) -> make.SetBuilder:
        """A set of one role."""
        pcs = self.set(name)
        self.role(pcs, "workers", pods, least, gpus)
        return pcs

    async def apply(self, pcs: make.SetBuilder) -> None:
        """Create a set, again if our own webhook took too long: it shares a process with everything else here."""
        while True:
            try:
                await self.client.create(PodCliqueSet, pcs.build(), self.namespace)
                return
            except ApiError as error:
                if "context deadline exceeded" not in str(error):
                    raise

    async def delete(self, name: str) -> None:
        """Delete a set and wait until nothing of it is left."""
        key = (self.namespace, name)
        await self.client.delete(PodCliqueSet, key)
        await object_until(self.client, PodCliqueSet, key, lambda pcs: pcs is None)
        await self.until(f"{name} is gone", lambda: not self.pods(name) and not self._gangs(name))

    def pods(self, prefix: str = "") -> list[Pod]:
        """All pods of the story's gangs, also those on their way out."""
        return [
            pod
            for pod in self.stage.pods
            if pod.namespace == self.namespace
            and labels.PODGANG in pod.metadata.labels
            and pod.metadata.labels[labels.PODGANG].startswith(prefix)
        ]

    def living(self, prefix: str = "") -> list[Pod]:
        """The pods that are not on their way out."""
        return [pod for pod in self.pods(prefix) if pod.metadata.deletion_timestamp is None]

    def bound(self, prefix: str = "") -> dict[str, int]:
        """How many living pods have a node, by role."""
        counts: dict[str, int] = {}
        for pod in self.living(prefix):
            role = pod.metadata.labels[labels.PODCLIQUE].rpartition("-")[2]
            counts[role] = counts.get(role, 0) + bool(pod.spec.node_name)
        return counts

    def running(self, prefix: str = "") -> list[Pod]:
        """The living pods that run."""
        return [pod for pod in self.living(prefix) if pod.status.phase == "Running"]

    def ever_bound(self, prefix: str = "") -> list[str]:
        """The pods here now that have had a node at any time."""
        return [pod.name for pod in self.pods(prefix) if pod.uid in self._ever_bound]

    def gang(self, name: str) -> PodGang | None:
        """A gang by its name."""
        return self.stage.gangs.get((self.namespace, name))

    def condition(self, name: str, kind: str) -> Condition | None:
        """A condition of a gang."""
        gang = self.gang(name)
        return find(gang.status.conditions, kind) if gang else None

    def holds(self, name: str, kind: str) -> bool:
        """Whether a condition of a gang is True."""
        condition = self.condition(name, kind)
        return condition is not None and condition.status == "True"

    def told(self, name: str, kind: str) -> str:
        """The message of a condition that is True; empty while it is not."""
        condition = self.condition(name, kind)
        return condition.message if condition is not None and condition.status == "True" else ""

    def score(self, name: str) -> float | None:
        """The placement score of a gang."""
        gang = self.gang(name)
        return gang.status.placement_score if gang is not None else None

    def reason(self, name: str) -> str:
        """What a user reads on a gang that waits; empty once it is scheduled."""
        condition = self.condition(name, "Scheduled")
        return f"{condition.reason}: {condition.message}" if condition and condition.status == "False" else ""

    def waits_for(self, name: str, *words: str) -> bool:
        """Whether the gang says that it waits, with one of these words."""
        return any(word.lower() in self.reason(name).lower() for word in words)

    async def spinney(self, *arguments: str) -> str:
        """What the `spinney` command prints about this namespace."""
        return await self.stage.spinney(*arguments, "--namespace", self.namespace)

    async def event(self, reason: str) -> None:
        """Wait for an event with a reason: events are written behind what they tell of."""

        async def told() -> bool:
            return any(event.reason == reason for event in (await self.client.list(Event, self.namespace)).items)

        await until(told)

    async def runs(self, name: str, pods: int) -> None:
        """Wait until so many pods of a gang run, and its PodGang says that it is scheduled."""
        await self.until(
            f"{pods} pods of {name} run", lambda: len(self.running(name)) == pods and self.holds(name, "Scheduled")
        )

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looking whenever a pod or a gang changes."""
        await cache_until(holds, self.stage.pods, self.stage.gangs, describe=lambda: f"{what}\n{self.story()}")

    def story(self) -> str:
        """What a person would look at."""
        lines = [
            f"{gang.name} {condition.type}={condition.status} {condition.reason}: {condition.message}"
            for gang in self._gangs("")
            for condition in gang.status.conditions
        ]
        for pod in self.pods():
            gates = [gate.name for gate in pod.spec.scheduling_gates]
            scheduled = find(pod.status.conditions, "PodScheduled")
            why = f"{scheduled.reason} {scheduled.message}" if scheduled else ""
            lines.append(f"{pod.name} {pod.status.phase} on {pod.spec.node_name or '-'} {gates or ''} {why}")
        return "\n".join(lines)

    def _gangs(self, prefix: str) -> list[PodGang]:
        return [g for g in self.stage.gangs if g.namespace == self.namespace and g.name.startswith(prefix)]

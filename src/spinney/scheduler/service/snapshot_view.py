"""The scheduler's view of a snapshot: caches with a fixed content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from spinney.api.core import ConfigMap, Pod
from spinney.api.meta import Json, Key, Object, Resource, convert, without_nulls
from spinney.api.resource import ResourceClaim, ResourceSlice
from spinney.api.volumes import reach_of
from spinney.kube.caches.cache import Caches, Change
from spinney.kube.chance import Chance
from spinney.kube.client.client import Client
from spinney.kube.client.transport import Request, Response
from spinney.kube.clock import Clock
from spinney.kube.errors import ConnectionLost
from spinney.kube.runtime import Runtime
from spinney.scheduler.config import Config
from spinney.scheduler.plan import Plan
from spinney.scheduler.service.bind_backoff import BindBackoff
from spinney.scheduler.service.descriptions import Descriptions
from spinney.scheduler.service.device_claims import DeviceClaims
from spinney.scheduler.service.failing_gangs import FailingGangs
from spinney.scheduler.service.feed import Feed
from spinney.scheduler.service.intentions import Intentions
from spinney.scheduler.service.saved_record import departures_of, reservations_of
from spinney.scheduler.service.shard import Shard
from spinney.scheduler.service.views import Views
from spinney.scheduler.state.cluster import State
from spinney.scheduler.state.specs import TaskSpec

T = TypeVar("T", bound=Object)
# Objects by kind, as plain data or typed already.
Objects = Mapping[Resource, Sequence[Any]]


class FrozenCache(Generic[T]):
    """A `Cache` with a fixed content."""

    has_synced = True

    def __init__(self, objects: Iterable[T]) -> None:
        self._objects: dict[Key, T] = {(item.namespace, item.name): item for item in objects}
        self._indexes: dict[str, dict[str, list[T]]] = {}

    def get(self, key: Key | str) -> T | None:
        """The object of that namespace and name; for cluster-scoped kinds the name is enough."""
        return self._objects.get(("", key) if isinstance(key, str) else key)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def index(self, name: str, keys: Callable[[T], Iterable[str]]) -> None:
        """Group objects by keys."""
        table: dict[str, list[T]] = defaultdict(list)
        for item in self:
            for key in keys(item):
                table[key].append(item)
        self._indexes[name] = table

    def by(self, index: str, value: str) -> list[T]:
        """The objects that an index groups under a value."""
        return self._indexes[index].get(value, [])

    def on_change(self, handler: Callable[[Change[T]], None]) -> None:
        """Call the handler once for every object, as new."""
        for item in list(self._objects.values()):
            handler(Change(None, item))

    async def synced(self) -> None:
        """Return at once."""


class FrozenCaches:
    """`Caches` with a fixed content."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._made: dict[type[Object], FrozenCache[Any]] = {}

    def of(self, kind: type[T]) -> FrozenCache[T]:
        """The cache for a kind."""
        if kind not in self._made:
            raw = self._objects.get(kind.resource, [])
            self._made[kind] = FrozenCache(_typed(kind, item) for item in raw)
        return self._made[kind]

    def joined(self, objects: Objects) -> FrozenCaches:
        """Caches that hold some objects more; the content of these is the same afterwards."""
        more = FrozenCaches(
            {**self._objects, **{each: [*self._objects.get(each, ()), *objects[each]] for each in objects}}
        )
        more._made = {kind: cache for kind, cache in self._made.items() if kind.resource not in objects}
        return more


def _typed(kind: type[T], item: Json | Object) -> T:
    if isinstance(item, kind):
        return item
    return convert(kind, without_nulls(_plain(item)))


def _plain(item: Json | Object) -> Any:
    return msgspec.to_builtins(item) if isinstance(item, Object) else item


class _Nowhere:
    """A transport that refuses every request."""

    async def send(self, request: Request) -> Response:
        raise ConnectionLost("this is a snapshot: nothing can be written")

    async def close(self) -> None: ...


def _ignored(key: Key) -> None:
    """Take no notice of a change: what is described here is not kept."""


class Picture:
    """A cluster at one moment, and the plan that the scheduler makes for it."""

    def __init__(self, objects: Objects, clock: Clock, shard: Shard, config: Config) -> None:
        self.caches = FrozenCaches(objects)
        client = Client(_Nowhere(), Chance(0))
        # The two kinds of caches are alike in all that is used here.
        runtime = Runtime(client=client, caches=cast(Caches, self.caches), clock=clock)
        self.shard = shard
        self.config = config
        self.state = State()
        self._clock = clock
        devices = bool(objects.get(ResourceSlice.resource) or objects.get(ResourceClaim.resource))
        zones = any(plugin.name == "numa" for plugin in config.plugins)
        feed = Feed(
            runtime, self.state, shard, lambda: None, devices=devices, zones=zones, stuck_after=config.stuck_after
        )
        feed.apply()
        self._storage = feed.views.storage
        self.now = clock.now()
        config_maps = [_plain(item) for item in objects.get(ConfigMap.resource, [])]
        self.state.departures.restore(departures_of(shard, config_maps))
        kept = reservations_of(shard, config_maps)
        self.plan: Plan = FailingGangs().plan(self.state, config, self.now.timestamp(), kept)

    def tasks_of(self, pods: Iterable[Pod], objects: Objects) -> list[TaskSpec]:
        """What pods that are not there yet would be to the scheduler, beside objects that come with them."""
        caches = cast(Caches, self.caches.joined(objects))
        views = Views(caches)
        describe = Descriptions(
            state=self.state,
            shard=self.shard,
            views=views,
            clock=self._clock,
            intentions=Intentions(_ignored),
            backoff=BindBackoff(_ignored),
            claims=DeviceClaims(caches, views, lambda item, message: None),
            zones=None,
            stand_in=None,
            budget_changed=_ignored,
            stuck_after=self.config.stuck_after,
        )
        return [describe.task(pod.key, pod) for pod in pods]

    def volume_nodes(self, pods: Iterable[Pod]) -> dict[str, frozenset[str]]:
        """The nodes that the volumes of placed pods would keep their successors to, by UID of the pod."""
        nodes_of: dict[str, frozenset[str]] = {}
        for pod in pods:
            kept = tuple(volume for volume in pod.spec.volumes if volume.persistent_volume_claim is not None)
            if kept and pod.spec.node_name:
                spec = msgspec.structs.replace(pod.spec, volumes=kept)
                nodes = reach_of(msgspec.structs.replace(pod, spec=spec), self._storage).nodes
                nodes_of.update({pod.uid: nodes} if nodes is not None else {})
        return nodes_of

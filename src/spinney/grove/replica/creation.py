"""Makes what a set replica is missing: scaling groups, cliques, autoscalers, gangs, pods and the Service."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from spinney.api import reasons
from spinney.api.autoscaling import HorizontalPodAutoscaler
from spinney.api.core import Pod, Service
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.meta import Json, Key, Object
from spinney.api.owners import controlled_by
from spinney.api.podgang import PodGang
from spinney.backends.registry import Choice
from spinney.grove.model import names, pod_manifest, scaling
from spinney.grove.model.cliques import clique as clique_body
from spinney.grove.model.cliques import clique_patch
from spinney.grove.model.gang_members import references
from spinney.grove.model.gangs import gang_body, gang_patch
from spinney.grove.model.layout import Clique, Gang
from spinney.grove.model.pod_names import PodNames
from spinney.grove.model.revisions import canonical
from spinney.grove.model.scaling_groups import scaling_group, scaling_group_patch
from spinney.grove.model.services import service, service_patch
from spinney.grove.model.view import View
from spinney.grove.world import World
from spinney.grove.writer import NameTaken, Writer
from spinney.kube.chance import Chance
from spinney.kube.controllers.events import Recorder
from spinney.kube.errors import ApiError
from spinney.kube.parallel import Work, all_of


class Maker:
    """Creates and corrects; what it makes it puts into the view, so that the next step builds on it."""

    def __init__(self, world: World, writer: Writer, recorder: Recorder, chance: Chance) -> None:
        self._world = world
        self._writer = writer
        self._recorder = recorder
        self._names = PodNames(lambda clique: f"{clique}-{chance.suffix()}")
        # Why pods could not be made, as far as it was told: by replica, then by clique.
        self._failures: dict[Key, dict[str, str]] = {}

    def forget(self, key: Key) -> None:
        """A replica does well, or is gone: what goes wrong next is news."""
        self._failures.pop(key, None)

    def check_service(self, view: View) -> None:
        """Raise where another holds the name of a Service that is still to be made."""
        namespace, name = view.pcs.namespace, names.replica(view.pcs.name, view.layout.index)
        found = self._world.services.get((namespace, name))
        if found is not None and not controlled_by(found.metadata, view.pcs):
            raise NameTaken(Service.resource.kind, namespace, name)

    async def make_service(self, view: View, key: Key) -> None:
        """The headless Service of the replica, as the set wants it."""
        stored = next(iter(self._world.of(self._world.services, key)), None)
        if stored is None:
            await self._writer.create(Service, service(view.layout))
        elif patch := service_patch(view.layout, stored):
            await self._writer.patch(stored, patch)

    async def make_groups(self, view: View) -> None:
        """The scaling groups."""

        async def make(group_name: str, body: Json) -> None:
            view.groups[group_name] = await self._writer.create(PodCliqueScalingGroup, body)

        work = []
        for group in view.layout.groups:
            found = view.groups.get(group.name)
            if found is None:
                if group.name not in view.blocked_names:
                    work.append(make(group.name, scaling_group(view.layout, group)))
                continue
            patch = scaling_group_patch(view.layout, group, found)
            if patch:
                work.append(self._change(view.groups, found, patch))
        await all_of(work)

    async def make_cliques(self, view: View) -> None:
        """The cliques whose names are free; those of scaling groups wait for their group."""

        async def make(clique: Clique, owner: PodCliqueSet | PodCliqueScalingGroup) -> None:
            body = clique_body(view.layout, clique, owner)
            view.cliques[clique.name] = await self._writer.create(PodClique, body)

        work = []
        for clique in view.layout.cliques:
            found = view.cliques.get(clique.name)
            owner = view.groups.get(clique.group) if clique.group else view.pcs
            if found is None:
                if owner is not None and clique.name not in view.blocked_names:
                    work.append(make(clique, owner))
                continue
            # Under RollingRecreate members of scaling groups are replaced, never changed.
            if clique.group and not view.on_delete and not view.is_current(clique):
                continue
            patch = clique_patch(view.layout, clique, found)
            if patch:
                work.append(self._change(view.cliques, found, patch))
        await all_of(work)

    async def _change(
        self, into: dict[str, PodClique] | dict[str, PodCliqueScalingGroup], found: Object, patch: Json
    ) -> None:
        changed = await self._writer.patch(found, patch)
        if changed is not None:
            into[found.name] = changed  # type: ignore[assignment]  # of the kind that was handed in

    async def make_autoscalers(self, view: View, key: Key) -> None:
        """The autoscalers that the template asks for, and no others."""
        found = {item.name: item for item in self._world.of(self._world.autoscalers, key)}
        work: list[Work] = []
        for body in scaling.autoscalers(view.layout, view.groups, view.cliques):
            known = found.pop(body["metadata"]["name"], None)
            if known is None:
                work.append(self._writer.create(HorizontalPodAutoscaler, body))
            elif canonical(msgspec.to_builtins(known.spec)) != canonical(body["spec"]):
                work.append(self._writer.patch(known, {"spec": body["spec"]}))
        await all_of([*work, *(self._writer.delete(excess) for excess in found.values())])

    async def make_gangs(self, view: View, choice: Choice) -> None:
        """The gangs, with the names of pods to come; none while the name of one of its cliques is not free yet."""

        async def make(gang: Gang) -> None:
            found = view.gangs.get(gang.name)
            body = gang_body(view, gang, choice, self._names)
            if found is None:
                view.gangs[gang.name] = await self._writer.create(PodGang, body)
                return
            patch = gang_patch(found, body)
            if patch:
                changed = await self._writer.patch(found, patch)
                if changed is not None:
                    view.gangs[gang.name] = changed

        await all_of(make(gang) for gang in view.layout.gangs if view.has_cliques(gang))

    async def make_pods(self, view: View, choice: Choice) -> int:
        """The pods that the gangs name; says how many were missing."""
        making = pod_manifest.Making(
            choice.backend, choice.scheduler_name, self._world.served, self._world.settings.init_image
        )

        async def make(place: pod_manifest.Place) -> None:
            try:
                pod = await self._writer.create(Pod, pod_manifest.build(view.layout, place, making))
            except ApiError as error:
                self._tell_failure(view, place, str(error))
                raise
            view.pods[place.stored.uid].append(pod)

        missing = [place for gang in view.layout.gangs for place in self._places(view, gang)]
        await all_of([make(place) for place in missing])
        return len(missing)

    def _tell_failure(self, view: View, place: pod_manifest.Place, error: str) -> None:
        """Say on a clique why its pods cannot be made: once, however many there are and often it is tried again."""
        told = self._failures.setdefault(view.key, {})
        why = error.replace(place.name, place.clique.name)
        if told.get(place.clique.name) == why:
            return
        told[place.clique.name] = why
        message = f"pod {place.name} could not be created: {error}"
        self._recorder.event(place.stored, "Warning", reasons.POD_CREATE_FAILED, message)

    def _places(self, view: View, gang: Gang) -> Iterator[pod_manifest.Place]:
        """The pods that a gang names and that do not exist yet."""
        stored = view.gangs.get(gang.name)
        if stored is None or not view.has_cliques(gang):
            return
        referenced = references(stored)
        for clique in gang.cliques:
            staying = view.active_pods(clique)
            known = {pod.name for pod in staying}
            missing = [name for name in referenced.get(clique.name, ()) if name not in known]
            free = scaling.free_indices(staying, len(missing))
            for name, index in zip(missing, free, strict=True):
                yield pod_manifest.Place(clique, view.cliques[clique.name], stored, name, index)

"""Kartas: descriptions of workload kinds without a rule, with their components and grouping."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from spinney.api.meta import Json
from spinney.services.podgrouper.context import Context, dig
from spinney.services.podgrouper.defaults import default_grouping
from spinney.services.podgrouper.grouping import Grouping, GroupingError, SubGroup, Topology, member_count
from spinney.services.podgrouper.kinds.jq import ask

KARTA = ("run.ai/v1alpha1", "Karta")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


async def karta_of(context: Context) -> Json | None:
    """The Karta of the top owner's kind, or None."""
    if not context.settings.karta_fallback:
        return None
    group, _, version = context.top["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": context.top["kind"]}
    marks = {f"run.ai/karta-{part}": value for part, value in kind.items()}
    kartas = [karta for karta in await context.lookup.all(*KARTA, marks) if _describes(karta, kind)]
    if len(kartas) > 1:
        names = ", ".join(sorted(karta["metadata"]["name"] for karta in kartas))
        raise GroupingError(f"Kartas {names} all tell how to group {context.top['kind']}; there must be one")
    return kartas[0] if kartas else None


def _describes(karta: Json, kind: Json) -> bool:
    if karta["metadata"].get("deletionTimestamp"):
        return False
    gang = dig(karta, "spec", "optimizationInstructions", "gangScheduling") or {}
    return dig(karta, "spec", "structureDefinition", "rootComponent", "kind") == kind and bool(
        gang.get("podGroup") or gang.get("podGroups")
    )


async def grouped_by(karta: Json, context: Context) -> Grouping:
    """The grouping that a Karta describes."""
    gang = karta["spec"]["optimizationInstructions"]["gangScheduling"]
    structure = Structure(karta, context.top, msgspec.to_builtins(context.pod))
    grouping = await default_grouping(context)
    base = f"pg-{context.top['metadata']['uid']}"
    if wanted := gang.get("podGroup"):
        grouping = replace(grouping, name=f"{base}-{wanted['name']}")
        return _with_subgroups(grouping, wanted, structure)
    return _by_keys(grouping, base, gang["podGroups"], structure)


def _with_subgroups(grouping: Grouping, wanted: Json, structure: Structure) -> Grouping:
    grouping = replace(grouping, topology=_topology(wanted) if wanted.get("topology") else grouping.topology)
    entries: list[Json] = wanted.get("subGroups") or []
    if not entries:
        return replace(grouping, min_member=structure.scale(structure.root))
    subgroups = []
    for entry in entries:
        name = entry.get("componentName", "")
        minimum = structure.scale(name)
        if not minimum:
            raise GroupingError(f"{structure.title}: component {name} says nowhere how many replicas it has")
        subgroups.append(SubGroup(name, min_member=minimum, topology=_topology(entry)))
    own = next((group.name for group in subgroups if structure.pod_is_below(group.name)), "")
    return replace(grouping, min_member=None, min_subgroup=len(subgroups), subgroups=tuple(subgroups), pod_subgroup=own)


def _by_keys(grouping: Grouping, base: str, groups: list[Json], structure: Structure) -> Grouping:
    """Grouping by keys, the older form: pods with equal keys form a group."""
    component = structure.pod_component()
    for candidate in structure.above(component):
        for member in (member for group in groups for member in group.get("members") or []):
            if member["componentName"] != candidate or not structure.pod_passes(member.get("filters") or []):
                continue
            keys = [structure.pod_key(path) for path in member.get("groupByKeyPaths") or []]
            name = "-".join([base, *keys])
            if not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
                raise GroupingError(f"{structure.title}: keys {', '.join(keys)} make no name for a group: {name}")
            instance = structure.pod_instance(component) if candidate == component else None
            return replace(grouping, name=name, min_member=structure.scale(candidate, instance))
    raise GroupingError(f"{structure.title}: component {component} of the pod belongs to no pod group")


def _topology(entry: Json) -> Topology:
    wanted = entry.get("topology") or {}
    if not wanted:
        return Topology()
    topology = Topology(
        wanted.get("topologyName", ""),
        wanted.get("requiredTopologyLevel", ""),
        wanted.get("preferredTopologyLevel", ""),
    )
    if not topology.name or not (topology.required or topology.preferred):
        raise GroupingError("a Karta's topology needs topologyName and a required or preferred level")
    return topology


@dataclass(frozen=True)
class Structure:
    """A Karta's components, and the workload and pod that its queries read."""

    karta: Json
    workload: Json
    pod: Json

    @property
    def title(self) -> str:
        """The Karta in messages."""
        return f"Karta {self.karta['metadata']['name']}"

    @cached_property
    def components(self) -> dict[str, Json]:
        """All components by name, the root first."""
        definition = self.karta["spec"]["structureDefinition"]
        entries = [definition["rootComponent"], *(definition.get("childComponents") or [])]
        return {entry["name"]: entry for entry in entries}

    @property
    def root(self) -> str:
        """The name of the workload itself."""
        return next(iter(self.components))

    def above(self, name: str) -> list[str]:
        """A component and its owners, up to the root."""
        way: list[str] = []
        while name in self.components and name not in way:
            way.append(name)
            name = self.components[name].get("ownerRef") or ""
        return way

    def scale(self, name: str, instance: str | None = None) -> int:
        """The minimum number of pods in a component's subtree."""
        if name not in self.components:
            raise GroupingError(f"{self.title}: component {name!r} is not defined")
        if not any(component.get("scaleDefinition") for component in self.components.values()):
            return self._leaves(name, instance)
        own = self._own_scale(name, instance)
        below = sum(self.scale(child) for child in self._children(name))
        return own * below if own and below else own or below

    def _children(self, name: str) -> list[str]:
        return [child for child, entry in self.components.items() if entry.get("ownerRef") == name]

    def _own_scale(self, name: str, instance: str | None) -> int:
        definition = self.components[name].get("scaleDefinition") or {}
        replicas, least = (
            ask(definition[path], self.workload) if path in definition else []
            for path in ("replicasPath", "minReplicasPath")
        )
        length = max(len(replicas), len(least))
        scales = [_number(least, index) or _number(replicas, index) for index in range(length)]
        if instance is None:
            return sum(scales)
        return dict(zip(self._instances(name), scales, strict=False)).get(instance, 0)

    def _leaves(self, name: str, instance: str | None) -> int:
        """One pod per instance of every component with pods, where no scale is given."""
        if not self._has_pods(name):
            return sum(self._leaves(child, None) for child in self._children(name))
        return len(self._instances(name)) if instance is None and self._instances(name) else 1

    def _has_pods(self, name: str) -> bool:
        definition = self.components[name].get("specDefinition") or {}
        return any(key in definition for key in ("podTemplateSpecPath", "podSpecPath", "fragmentedPodSpecDefinition"))

    def _instances(self, name: str) -> list[str]:
        path = self.components[name].get("instanceIdPath")
        return [str(instance) for instance in ask(path, self.workload)] if path else []

    def pod_is_below(self, name: str) -> bool:
        """Whether the pod belongs to a component or to one below it."""
        return self._selects(name) or any(self.pod_is_below(child) for child in self._children(name))

    def pod_component(self) -> str:
        """The component of the pod."""
        leaves = [name for name in self.components if self._has_pods(name)]
        matches = leaves if len(leaves) == 1 else [name for name in leaves if self._selects(name)]
        if not matches:
            raise GroupingError(f"{self.title}: pod {self.pod['metadata']['name']} is of none of its components")
        return matches[0]

    def pod_instance(self, component: str) -> str | None:
        """The instance of the pod, where its component has several."""
        path = dig(self.components[component], "podSelector", "componentInstanceSelector", "idPath")
        if not path or not self._instances(component):
            return None
        instance = self.pod_key(path)
        if instance not in self._instances(component):
            raise GroupingError(f"{self.title}: component {component} has no instance {instance!r}")
        return instance

    def pod_key(self, path: str) -> str:
        """The single result of a query on the pod."""
        values = [value for value in ask(path, self.pod) if value not in (None, "")]
        if len(values) != 1:
            raise GroupingError(f"{self.title}: {path} finds {len(values)} values in the pod; one is needed")
        return str(values[0])

    def pod_passes(self, filters: list[str]) -> bool:
        """Whether the pod passes all filters."""
        return all(ask(query, self.pod) == [True] for query in filters)

    def _selects(self, name: str) -> bool:
        selector = dig(self.components[name], "podSelector", "componentTypeSelector")
        if not selector:
            return False
        values = ask(selector["keyPath"], self.pod)
        wanted = selector.get("value")
        return any(value is not None for value in values) if wanted is None else wanted in values


def _number(values: list[Any], index: int) -> int:
    """The number at a path, which may be text."""
    value = values[index] if index < len(values) else None
    return member_count(str(value)) or 0

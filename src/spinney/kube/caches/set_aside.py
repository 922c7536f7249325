"""Objects that do not fit their wire type: set aside and reported, so that one of them hides no other."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from spinney.api.meta import Key, Resource
from spinney.kube.client.wire import Unreadable
from spinney.kube.metrics import Metrics

_log = structlog.get_logger("spinney.kube.caches.set_aside")

Report = Callable[[Resource, Unreadable], None]


class SetAside:
    """The objects that the caches of a process cannot read. Each is logged, counted and reported once per problem."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._objects: dict[tuple[Resource, Key], Unreadable] = {}
        self._reports: list[Report] = []

    def on_new(self, report: Report) -> None:
        """Call a function for every object that is set aside."""
        self._reports.append(report)
        for (resource, _), item in list(self._objects.items()):
            report(resource, item)

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, resource: Resource, item: Unreadable) -> None:
        """Set an object aside, and say so where its problem is new."""
        before = self._objects.get((resource, item.key))
        self._objects[resource, item.key] = item
        if before is not None and (before.uid, before.problem) == (item.uid, item.problem):
            return
        if before is None:
            self._metrics.unreadable(resource.kind).inc()
        _log.warning(
            "object.unreadable", kind=resource.kind, namespace=item.namespace, name=item.name, problem=item.problem
        )
        for report in self._reports:
            report(resource, item)

    def discard(self, resource: Resource, key: Key) -> None:
        """Forget an object that can be read again, or is gone."""
        if self._objects and self._objects.pop((resource, key), None) is not None:
            self._metrics.unreadable(resource.kind).dec()

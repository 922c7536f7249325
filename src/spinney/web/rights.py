"""What a user may list, by SubjectAccessReview, kept for a short while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from spinney.api.meta import Json, Resource
from spinney.kube.client.client import Client
from spinney.web.users import WebUser

_ACCESS_REVIEW = Resource("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
_KEPT_SECONDS = 10.0
_MOST_KEPT = 50_000
_AT_ONCE = 16


@dataclass(frozen=True)
class Scope:
    """The resources that a user may list: everywhere, or in some namespaces. Equal scopes see the same."""

    everything: bool = False
    everywhere: frozenset[Resource] = frozenset()
    somewhere: frozenset[tuple[Resource, str]] = frozenset()

    def allows(self, resource: Resource, namespace: str = "") -> bool:
        """Whether objects of a kind may be seen in a namespace; without one, in all of them."""
        return self.everything or resource in self.everywhere or (resource, namespace) in self.somewhere


EVERYTHING = Scope(everything=True)


@dataclass
class Reviewer:
    """Asks the API server what users may list."""

    client: Client
    time: Callable[[], float]
    _answers: dict[tuple[WebUser, Resource, str], tuple[float, asyncio.Future[bool]]] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def scope(self, user: WebUser | None, resources: Iterable[Resource], namespaces: Iterable[str]) -> Scope:
        """What a user may see of these kinds in these namespaces; no user means the rights of this process."""
        if user is None:
            return EVERYTHING
        wanted = list(resources)
        allowed = await asyncio.gather(*(self._may_list(user, resource, "") for resource in wanted))
        everywhere = frozenset(resource for resource, may in zip(wanted, allowed, strict=True) if may)
        pairs = [
            (resource, namespace)
            for resource in wanted
            if resource.namespaced and resource not in everywhere
            for namespace in namespaces
        ]
        allowed = await asyncio.gather(*(self._may_list(user, *pair) for pair in pairs))
        return Scope(
            everywhere=everywhere,
            somewhere=frozenset(pair for pair, may in zip(pairs, allowed, strict=True) if may),
        )

    async def _may_list(self, user: WebUser, resource: Resource, namespace: str) -> bool:
        key = (user, resource, namespace)
        until, answer = self._answers.get(key, (0.0, None))
        if answer is None or until <= self.time() or (answer.done() and answer.exception() is not None):
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            answer = asyncio.ensure_future(self._ask(user, resource, namespace))
            self._answers[key] = (self.time() + _KEPT_SECONDS, answer)
        return await asyncio.shield(answer)

    async def _ask(self, user: WebUser, resource: Resource, namespace: str) -> bool:
        attributes: Json = {
            "verb": "list",
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "namespace": namespace,
        }
        spec: Json = {
            "user": user.name,
            "groups": list(user.groups),
            "uid": user.uid,
            "extra": {key: list(values) for key, values in user.extra},
            "resourceAttributes": attributes,
        }
        async with self._turns:
            answer = await self.client.create(_ACCESS_REVIEW, {"spec": spec})
        return bool((answer.get("status") or {}).get("allowed"))

"""Protects what the operator manages: only it, and users named in its configuration, may change it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json
from spinney.grove.settings import Settings
from spinney.kube.admission.review import allowed, refused
from spinney.kube.runtime import Runtime

# They collect garbage, scale, and empty namespaces.
_CLUSTERS_OWN = frozenset(
    {
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
        "system:serviceaccount:kube-system:namespace-controller",
    }
)


def reviewer(runtime: Runtime, settings: Callable[[], Settings]) -> Callable[[Json], Awaitable[Json]]:
    """The review of a change to a managed object."""
    sets = runtime.caches.of(PodCliqueSet)

    async def review(request: Json) -> Json:
        now = settings()
        managed = request.get("object") or request.get("oldObject") or {}
        name = ((managed.get("metadata") or {}).get("labels") or {}).get(labels.PART_OF, "")
        pcs = sets.get((str(request.get("namespace") or ""), name)) if name else None
        if may_change(request, pcs, now):
            return allowed(request)
        who = (request.get("userInfo") or {}).get("username", "")
        return refused(
            request,
            f"{request['kind']['kind']} {request.get('namespace')}/{request.get('name')} is managed by the Grove "
            f"operator for PodCliqueSet {name}, and user {who!r} may not change it: change the PodCliqueSet, or set "
            f'its annotation {labels.DISABLE_PROTECTION}: "true"',
        )

    return review


def may_change(request: Json, pcs: PodCliqueSet | None, settings: Settings) -> bool:
    """Whether a request to change a managed object passes."""
    if not settings.config.authorizer.enabled or request.get("operation") == "CONNECT":
        return True
    if request["kind"]["kind"] == "Pod" and request.get("operation") == "DELETE":
        return True
    if pcs is None or pcs.metadata.annotations.get(labels.DISABLE_PROTECTION) == "true":
        return True
    user = (request.get("userInfo") or {}).get("username", "")
    return user in _CLUSTERS_OWN or user in {
        settings.user,
        *settings.config.authorizer.exempt_service_account_user_names,
    }

"""Rolling updates inside one set replica: which pods and which scaling-group replicas are replaced now."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api import labels, pod_state
from spinney.api.core import Pod
from spinney.api.grove import RollingUpdate
from spinney.api.intstr import at_least
from spinney.grove.model.layout import Clique, Group
from spinney.grove.model.view import View


def _max_unavailable(rollout: RollingUpdate | None, replicas: int) -> int:
    """`maxUnavailable` as a number: one by default, a percentage rounded up, never less than one."""
    value = rollout.max_unavailable if rollout is not None else None
    return max(1, at_least(value, replicas)) if value is not None else 1


def outdated_pods(view: View, clique: Clique) -> list[Pod]:
    """The clique's pods of an old revision."""
    stored = view.cliques.get(clique.name)
    if stored is None:
        return []
    revision = stored.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    return [pod for pod in view.active_pods(clique) if pod.metadata.labels.get(labels.POD_TEMPLATE_HASH) != revision]


def pods_to_replace(view: View, clique: Clique) -> list[Pod]:
    """The outdated pods of a clique to delete now.

    Pods that are not ready go at once. Ready ones go oldest first, while the clique has its minimum ready, and at most
    maxUnavailable are missing at a time. Pods go before their successors come: there is no surge.
    """
    old = outdated_pods(view, clique)
    not_ready = [pod for pod in old if not pod_state.is_ready(pod)]
    if not_ready:
        return not_ready
    ready = view.counts(clique).ready
    wanted = view.wanted(clique)
    room = _max_unavailable(clique.template.rolling_update, wanted) - max(0, wanted - ready)
    if room <= 0 or ready < clique.min_available:
        return []
    return sorted(old, key=_age)[:room]


def replicas_to_replace(view: View, group: Group) -> list[int]:
    """The outdated replicas of a scaling group to delete now: unavailable ones at once, others as far as allowed."""
    replicas = view.replicas_of(group)
    old = [index for index, cliques in enumerate(replicas) if not is_replica_current(view, cliques)]
    unavailable = [index for index in old if not is_replica_available(view, replicas[index])]
    if unavailable:
        return [index for index in unavailable if any(clique.name in view.cliques for clique in replicas[index])]
    available = sum(is_replica_available(view, cliques) for cliques in replicas)
    room = _max_unavailable(group.config.rolling_update, group.replicas) - (group.replicas - available)
    if room <= 0 or available < group.in_base:
        return []
    return old[:room]


def is_replica_current(view: View, cliques: Sequence[Clique]) -> bool:
    """Whether a scaling-group replica consists of cliques of the newest revision only."""
    return all(view.is_current(clique) for clique in cliques)


def is_replica_available(view: View, cliques: Sequence[Clique]) -> bool:
    """Whether every clique of a scaling-group replica has its minimum ready."""
    return all(clique.name in view.cliques and view.counts(clique).ready >= clique.min_available for clique in cliques)


def is_clique_converged(view: View, clique: Clique) -> bool:
    """Whether all pods of a clique have the newest revision, and enough are ready."""
    counts = view.counts(clique)
    return (
        view.is_current(clique)
        and counts.updated == counts.replicas == view.wanted(clique)
        and counts.ready >= clique.min_available
    )


def is_group_converged(view: View, group: Group) -> bool:
    """Whether all replicas of a scaling group have the newest revision, and enough are available."""
    replicas = view.replicas_of(group)
    if not all(is_replica_current(view, cliques) for cliques in replicas):
        return False
    if any(outdated_pods(view, clique) for cliques in replicas for clique in cliques):
        return False
    return sum(is_replica_available(view, cliques) for cliques in replicas) >= group.in_base


def _age(pod: Pod) -> tuple[float, str]:
    created = pod.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, pod.name)

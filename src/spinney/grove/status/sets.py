"""A PodCliqueSet's status: its replicas, its gangs, its errors, its update, and its topology."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from spinney.api import reasons
from spinney.api.conditions import as_json, merged
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Condition, Json
from spinney.grove.model import topology
from spinney.grove.model.metadata import set_selector
from spinney.grove.model.topology import Levels
from spinney.grove.status import rollout
from spinney.grove.status.patches import difference
from spinney.grove.status.summary import Summary

# With more gangs their conditions are left out: a status is sent whole on each change.
_GANGS_IN_DETAIL = 32


def status_patch(
    pcs: PodCliqueSet,
    summaries: Sequence[Summary],
    errors: Sequence[Json],
    topology_state: Condition | None,
    now: datetime,
) -> Json:
    """What the set's status must change."""
    available = sum(summary.available for summary in summaries)
    conditions = merged(
        pcs.status.conditions,
        [_available(available, pcs.spec.replicas), *([topology_state] if topology_state else [])],
        now,
        drop=() if topology_state else (reasons.TOPOLOGY_LEVELS_UNAVAILABLE,),
    )
    wanted: Json = {
        "observedGeneration": pcs.metadata.generation,
        "replicas": pcs.spec.replicas,
        "ready": f"{available}/{pcs.spec.replicas}",
        "availableReplicas": available,
        "updatedReplicas": sum(summary.available and summary.updated for summary in summaries),
        "hpaPodSelector": set_selector(pcs),
        "podGangStatuses": gang_statuses(summaries),
        "lastErrors": list(errors) or None,
        "conditions": as_json(conditions),
    }
    progress = rollout.progress(pcs, summaries, now)
    if progress is not None:
        wanted["updateProgress"] = progress
    patch = difference(pcs.status, wanted)
    if patch and not pcs.status.observed_generation:
        # The schema requires both counters in the first status.
        patch = {key: wanted[key] for key in ("availableReplicas", "updatedReplicas")} | patch
    return patch


def _available(available: int, replicas: int) -> Condition:
    """Whether all replicas are available, for `kubectl wait --for=condition=Available`."""
    enough = available >= replicas
    return Condition(
        type=reasons.AVAILABLE,
        status="True" if enough else "False",
        reason=reasons.SUFFICIENT_REPLICAS if enough else reasons.INSUFFICIENT_REPLICAS,
        message=f"{available} of {replicas} replicas are available",
    )


def gang_statuses(summaries: Sequence[Summary]) -> list[Json]:
    """The phase of every gang, and the conditions while there are few."""
    gangs = [gang for summary in summaries for gang in summary.gangs]
    detailed = len(gangs) <= _GANGS_IN_DETAIL
    return [
        {"name": gang.name, "phase": gang.phase, **({"conditions": list(gang.conditions)} if detailed else {})}
        for gang in gangs
    ]


def topology_condition(pcs: PodCliqueSet, levels: Levels, enabled: bool) -> Condition | None:
    """Whether every domain that the set asks for has a level; None where it asks for none."""
    if not topology.constraints(pcs):
        return None
    name = topology.topology_name(pcs)
    missing = topology.missing_domains(pcs, levels)
    if not enabled:
        status, reason = "Unknown", reasons.TOPOLOGY_AWARE_SCHEDULING_DISABLED
        message = "topology-aware scheduling is disabled: the set's constraints have no effect"
    elif not name:
        status, reason = "Unknown", reasons.TOPOLOGY_NAME_MISSING
        message = "no topologyName: add one beside packDomain"
    elif not levels.name:
        status, reason = "Unknown", reasons.CLUSTER_TOPOLOGY_NOT_FOUND
        message = f"ClusterTopologyBinding {name} does not exist; new gangs are placed without constraints"
    elif missing:
        status, reason = "True", reasons.LEVELS_UNAVAILABLE
        message = f"ClusterTopologyBinding {name} has no level for: {', '.join(missing)}"
    else:
        status, reason = "False", reasons.ALL_LEVELS_AVAILABLE
        message = f"every domain is a level of ClusterTopologyBinding {name}"
    return Condition(type=reasons.TOPOLOGY_LEVELS_UNAVAILABLE, status=status, reason=reason, message=message)

"""The application and the task groups of a gang."""

from __future__ import annotations

import msgspec

from spinney.api import labels
from spinney.api.meta import Json, convert
from spinney.api.pod import PodSpec
from spinney.api.podgang import PodGang
from spinney.api.quantity import binary
from spinney.api.requests import pod_requests
from spinney.backends.building import LABEL_LIMIT, fitted_name

# What a placeholder needs to look like the pod it stands for.
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")


def application_id(gang: PodGang) -> str:
    """The gang's name, part of its UID, and the attempt: an application that timed out cannot be used again."""
    attempt = gang.metadata.annotations.get(labels.ATTEMPT, "")
    suffix = f"-{gang.uid[:8]}" + (f"-{attempt}" if attempt else "")
    return f"{fitted_name(gang.name, LABEL_LIMIT - len(suffix))}{suffix}"


def task_groups(gang: PodGang) -> list[Json]:
    """One task group per role with a minimum: YuniKorn refuses a minimum of 0."""
    roles: dict[str, Json] = msgspec.json.decode(gang.metadata.annotations.get(labels.ROLE_REQUESTS) or "{}")
    return [
        {"name": fitted_name(group.name), "minMember": group.min_replicas, **roles.get(group.name, {"minResource": {}})}
        for group in gang.spec.podgroups
        if group.min_replicas > 0
    ]


def placeholder(pod_spec: Json) -> Json:
    """What a placeholder of a role requests, and where it may go."""
    placement = {key: pod_spec[key] for key in _PLACEMENT if pod_spec.get(key)}
    requests = pod_requests(convert(PodSpec, pod_spec))
    return {"minResource": {name: _quantity(name, amount) for name, amount in sorted(requests.items())}, **placement}


def _quantity(name: str, thousandths: int) -> str:
    whole, rest = divmod(thousandths, 1000)
    if rest:
        return f"{thousandths}m"
    return binary(whole) if name in ("memory", "ephemeral-storage") else str(whole)

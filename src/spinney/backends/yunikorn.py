"""YuniKorn: no objects; every pod carries its gang's task groups in an annotation.

Gangs are of style Hard: with Soft, YuniKorn gives up the guarantee after a while. A Hard gang that timed out leaves a
dead application id behind, so each attempt has an id of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Resource, convert
from spinney.api.pod import Pod, PodSpec
from spinney.api.podgang import PodGang
from spinney.api.quantity import binary
from spinney.api.requests import pod_requests
from spinney.backends.building import LABEL_LIMIT, edited_pod, fitted_name
from spinney.backends.capabilities import Capabilities, Feature
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.queue_names import QueueKeys
from spinney.backends.readiness import all_exist
from spinney.backends.required_features import gang_losses
from spinney.backends.served import Served
from spinney.kube.runtime import Rule

SCHEDULER = "yunikorn"
_TIMEOUT_SECONDS = 900
# The reason on pods that YuniKorn fails when it gives up.
_TIMED_OUT = "ResourceReservationTimeout"
_QUEUE_KEYS = QueueKeys(labels.YUNIKORN_QUEUE)
# What a placeholder needs to look like the pod it stands for.
_PLACEMENT = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")


class YuniKorn:
    """The backend for YuniKorn."""

    name = "yunikorn"
    gate = labels.YUNIKORN_GATE
    lease = ""
    resources: tuple[Resource, ...] = ()
    # Pods of an attempt that YuniKorn gave up are deleted.
    rules = (Rule(("",), ("pods",), ("delete",)),)
    crds: tuple[Json, ...] = ()

    def claims(self, scheduler_name: str) -> bool:
        """YuniKorn's own name."""
        return scheduler_name == SCHEDULER

    def scheduler_name(self, requested: str) -> str:
        """YuniKorn's own name."""
        return SCHEDULER

    def capabilities(self, served: Served) -> Capabilities:
        """Gangs at their start and queues; no topology."""
        features = {Feature.TOGETHER, Feature.GROUP_MINIMUM, Feature.ZERO_MINIMUM, Feature.PRIORITY, Feature.QUEUE}
        return Capabilities(
            "pod annotations",
            frozenset(features),
            status="events, pods",
            remarks=(
                "the gang holds at its start only; replacements and pods beyond the minimum are placed one by one",
                "placeholder pods count against a namespace's quota",
            ),
        )

    def check(self, pcs: PodCliqueSet, served: Served) -> tuple[Problem, ...]:
        """One queue, and requests that YuniKorn's placeholders can carry."""
        return (*_QUEUE_KEYS.conflicts(pcs), *_unreserved(pcs))

    def gang_annotations(self, pcs: PodCliqueSet, pod_specs: Mapping[str, Json]) -> dict[str, str]:
        """The queue, and each role's placeholder: every pod carries the requests of all roles."""
        roles = {name: _placeholder(spec) for name, spec in pod_specs.items()}
        return {
            **_QUEUE_KEYS.annotations(pcs),
            labels.ROLE_REQUESTS: msgspec.json.encode(roles).decode(),
        }

    def prepare(self, pod: Json, gang: PodGang, served: Served) -> Json:
        """The pod with its application, its task group, and the definition of all of them."""
        role = pod["metadata"]["labels"][labels.PODCLIQUE]
        groups = task_groups(gang)
        member = any(group["name"] == fitted_name(role) for group in groups)
        return edited_pod(
            pod,
            labels={
                labels.YUNIKORN_APP_ID: application_id(gang),
                **_QUEUE_KEYS.labels(gang),
            },
            annotations={
                **({labels.YUNIKORN_TASK_GROUP: fitted_name(role)} if member else {}),
                labels.YUNIKORN_TASK_GROUPS: msgspec.json.encode(groups).decode(),
                labels.YUNIKORN_POLICY: f"placeholderTimeoutInSeconds={_TIMEOUT_SECONDS} gangSchedulingStyle=Hard",
            },
            spec={"schedulerName": SCHEDULER},
        )

    def translate(self, gang: PodGang, cluster: Cluster) -> Translation:
        """Nothing to write."""
        return Translation((), gang_losses(gang, self.capabilities(cluster.served)))

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Always ready: the gang is defined by its pods."""
        return all_exist(objects, "the gang is defined by its pods' annotations")

    def spent(self, gang: PodGang, pods: Sequence[Pod]) -> bool:
        """Whether YuniKorn failed a pod of this attempt because placeholders were not placed in time."""
        return any(
            pod.status.reason == _TIMED_OUT and pod.metadata.labels.get(labels.YUNIKORN_APP_ID) == application_id(gang)
            for pod in pods
        )

    def outdated(self, gang: PodGang, pods: Sequence[Pod]) -> list[Pod]:
        """The pods of earlier applications, which YuniKorn would fail again."""
        current = application_id(gang)
        return [
            pod
            for pod in pods
            if not pod.spec.node_name and pod.metadata.labels.get(labels.YUNIKORN_APP_ID, current) != current
        ]


BACKEND = YuniKorn()


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


def _placeholder(pod_spec: Json) -> Json:
    placement = {key: pod_spec[key] for key in _PLACEMENT if pod_spec.get(key)}
    requests = pod_requests(convert(PodSpec, pod_spec))
    return {"minResource": {name: _quantity(name, amount) for name, amount in sorted(requests.items())}, **placement}


def _quantity(name: str, thousandths: int) -> str:
    whole, rest = divmod(thousandths, 1000)
    if rest:
        return f"{thousandths}m"
    return binary(whole) if name in ("memory", "ephemeral-storage") else str(whole)


def _unreserved(pcs: PodCliqueSet) -> tuple[Problem, ...]:
    """Problems with claims and volumes: a placeholder has none, so it would not reserve them."""
    return tuple(
        Problem(
            f"spec.template.cliques[{index}].spec.podSpec.resourceClaims",
            f"clique {clique.name} uses device claims, which YuniKorn's placeholders cannot reserve",
            waivable=True,
        )
        for index, clique in enumerate(pcs.spec.template.cliques)
        if clique.spec.pod_spec.get("resourceClaims")
    )

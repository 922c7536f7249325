"""The backend for YuniKorn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from spinney.api import labels
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Json, Resource
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.reasons import SYNCED
from spinney.backends.building import edited_pod, fitted_name, may_read_settings
from spinney.backends.capabilities import Capabilities, Feature, Loss
from spinney.backends.interface import Cluster, Problem, Readiness, Translation
from spinney.backends.queue_names import QueueKeys
from spinney.backends.required_features import gang_losses
from spinney.backends.served import Served
from spinney.backends.yunikorn import queues
from spinney.backends.yunikorn.task_groups import application_id, placeholder, task_groups
from spinney.kube.runtime import Rule

SCHEDULER = "yunikorn"
_TIMEOUT_SECONDS = 900
# The reason on pods that YuniKorn fails when it gives up.
_TIMED_OUT = "ResourceReservationTimeout"
_QUEUE_KEYS = QueueKeys(labels.YUNIKORN_QUEUE)


class YuniKorn:
    """The backend for YuniKorn."""

    name = "yunikorn"
    gate = labels.YUNIKORN_GATE
    lease = ""
    resources: tuple[Resource, ...] = ()
    # Pods of an attempt that YuniKorn gave up are deleted.
    rules = (Rule(("",), ("pods",), ("delete",)), *may_read_settings(*queues.SETTINGS))
    settings = queues.SETTINGS
    queue_resource = None
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
            status="placeholder pods, pods",
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
        roles = {name: placeholder(spec) for name, spec in pod_specs.items()}
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
        """Nothing to write; a queue is lost where rules choose another one."""
        queue = _QUEUE_KEYS.of(gang)
        ignored = queues.ignored_queue(queue, cluster.settings)
        field = f"metadata.annotations[{labels.YUNIKORN_QUEUE}]"
        lost = (Loss(Feature.QUEUE, field, queue, ignored),) if ignored else ()
        return Translation((), (*gang_losses(gang, self.capabilities(cluster.served)), *lost))

    def ready(self, gang: PodGang, objects: Sequence[Json]) -> Readiness:
        """Always ready: the gang is defined by its pods."""
        return Readiness(True, SYNCED, "the gang is defined by its pods' annotations")

    def reservation(self, gang: PodGang) -> str:
        """The gang's application."""
        return application_id(gang)

    def reserved_by(self, pod: Pod) -> str:
        """The application of a placeholder."""
        marks = (labels.YUNIKORN_PLACEHOLDER, labels.YUNIKORN_PLACEHOLDER_BEFORE)
        if not any(pod.metadata.annotations.get(mark) == "true" for mark in marks):
            return ""
        return pod.metadata.labels.get(labels.YUNIKORN_APP_ID, "")

    def missing_queue(self, gang: PodGang, cluster: Cluster) -> str:
        """YuniKorn fails the pods of an application whose queue it does not know."""
        return queues.missing_queue(_QUEUE_KEYS.of(gang), cluster.settings)

    def setup_problems(self, cluster: Cluster) -> tuple[str, ...]:
        """None: each gang reports by itself what it lacks."""
        return ()

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

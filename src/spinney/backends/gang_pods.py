"""The pods of a gang, as far as a backend looks at them."""

from __future__ import annotations

from spinney.api.labels import PODGANG
from spinney.api.pod import Pod
from spinney.api.podgang import PodGang
from spinney.api.reasons import FAILED, POD_SCHEDULED, SCHEDULING_GATED, SUCCEEDED
from spinney.kube.caches.cache import Cache
from spinney.kube.conditions import find

BY_GANG = "gang"


def gang_names(pod: Pod) -> tuple[str, ...]:
    """The index key of a pod: its gang's namespace and name."""
    name = pod.metadata.labels.get(PODGANG)
    return (f"{pod.namespace}/{name}",) if name else ()


def pods_of(pods: Cache[Pod], gang: PodGang) -> list[Pod]:
    """The living pods of a gang."""
    return [pod for pod in all_pods_of(pods, gang) if alive(pod)]


def all_pods_of(pods: Cache[Pod], gang: PodGang) -> list[Pod]:
    """Every pod of a gang, those that ended too."""
    return pods.by(BY_GANG, f"{gang.namespace}/{gang.name}")


def alive(pod: Pod) -> bool:
    """Whether a pod neither ended nor is on its way out."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in (SUCCEEDED, FAILED)


def gated(pod: Pod) -> bool:
    """Whether any gate holds a pod."""
    return bool(pod.spec.scheduling_gates)


def bound(pod: Pod) -> bool:
    """Whether a pod has its node."""
    return bool(pod.spec.node_name)


def judged(pod: Pod) -> bool:
    """Whether a scheduler has said anything about a pod; being gated is said by the API server."""
    found = find(pod.status.conditions, POD_SCHEDULED)
    return found is not None and found.reason != SCHEDULING_GATED


def sign(pod: Pod) -> tuple[bool, bool, bool, bool]:
    """What of a pod matters to its gang's backend."""
    return alive(pod), gated(pod), bound(pod), judged(pod)

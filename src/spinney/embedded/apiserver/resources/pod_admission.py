"""Admission of pods: priority, tolerations, QoS class, and the first status."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.apiserver.admission import limit_ranges
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.resources import token_volumes
from spinney.embedded.apiserver.resources.pod_defaults import default_container
from spinney.embedded.apiserver.resources.priorityclasses import SYSTEM, global_default

_PREEMPT = "PreemptLowerPriority"
_RESIZED = ("resources", "resizePolicy")
_UNREADY_NODE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
GATED: Json = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "lastTransitionTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def admit(core: Core, call: Call, pod: Json) -> None:
    """Set what admission sets in a new pod: priority, tolerations, service account, and limit range defaults."""
    spec = pod["spec"]
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _set_priority(core, call, spec)
    add_tolerations(spec)
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    limit_ranges.admit_pod(core, call, pod)
    runtime = spec.get("runtimeClassName")
    if spec.get("overhead") and not runtime:
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise forbidden(call.kind, call.name, why)
    if runtime and core.store.get("node.k8s.io/runtimeclasses", runtime) is None:
        raise forbidden(call.kind, call.name, f'pod rejected: RuntimeClass "{runtime}" not found')


def start(core: Core, call: Call, pod: Json) -> None:
    """Give an admitted pod its account's token and its first status. Its spec is shared, so it is replaced."""
    spec = pod["spec"]
    check_account(core, call, spec)
    pod["spec"] = token_volumes.with_token(core, spec)
    pod["status"] = first_status(core, spec)


def reset_status(core: Core, pod: Json) -> None:
    """Give a pod that webhooks changed the first status that follows from its spec."""
    pod["status"] = first_status(core, pod["spec"])


def check_account(core: Core, call: Call, spec: Json) -> None:
    """Refuse a pod whose service account does not exist."""
    name = spec["serviceAccountName"]
    if core.store.get("/serviceaccounts", f"{call.namespace}/{name}") is None:
        why = f'error looking up service account {call.namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(call.kind, call.name, why)


def first_status(core: Core, spec: Json, qos_class: str = "") -> Json:
    """The status of a new pod. The caller may know its QoS class."""
    status: Json = {"phase": "Pending", "qosClass": qos_class or qos_class_of(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [{**GATED, "lastTransitionTime": core.timestamp()}]
    return status


def _set_priority(core: Core, call: Call, spec: Json) -> None:
    """Set the priority and the preemption policy of the pod's priority class."""
    value, policy = _priority(core, call, spec)
    for key, shown, computed in (
        ("priority", "integer value of priority", value),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ):
        sent = spec.get(key)
        if sent is not None and sent != computed:
            why = (
                f"the {shown} ({sent}) must not be provided in pod spec; priority admission controller computed "
                f"{computed} from the given PriorityClass name"
            )
            raise forbidden(call.kind, call.name, why)
        spec[key] = computed


def _priority(core: Core, call: Call, spec: Json) -> tuple[int, str]:
    name = spec.get("priorityClassName", "")
    if not name:
        default = global_default(core)
        if default is None:
            return 0, _PREEMPT
        spec["priorityClassName"] = default.name
        return default.value, default.preemption_policy or _PREEMPT
    if name in SYSTEM:
        return SYSTEM[name], _PREEMPT
    item = core.store.get("scheduling.k8s.io/priorityclasses", name)
    if item is None:
        raise forbidden(call.kind, call.name, f"no PriorityClass with name {name} was found")
    priority_class = msgspec.json.decode(item.body)
    return priority_class.get("value", 0), priority_class.get("preemptionPolicy", _PREEMPT)


def readmitted(spec: Json, old: Json) -> Json:
    """A changed spec with what admission sets, where the writer left it out."""
    kept: Json = {key: old[key] for key in ("priority", "preemptionPolicy") if key in old and key not in spec}
    spec = {**spec, **kept}
    add_tolerations(spec)
    return spec


def add_tolerations(spec: Json) -> None:
    """Tolerate an unready or unreachable node for five minutes, unless the pod says otherwise."""
    tolerations: list[Json] = list(spec.get("tolerations") or ())
    for key in _UNREADY_NODE:
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations


def _covers(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


def with_part(part: str, new: Json, old: Json) -> Json:
    """The old spec with what a subresource may change."""
    if part == "ephemeralcontainers":
        added = [dict(container) for container in new.get("ephemeralContainers") or ()]
        for container in added:
            default_container(container)
        return {**old, "ephemeralContainers": added}
    result = dict(old)
    for key in ("containers", "initContainers"):
        before = {container["name"]: container for container in old.get(key) or ()}
        if new.get(key):
            result[key] = [_resized(container, before.get(container.get("name", ""))) for container in new[key]]
    return result


def _resized(container: Json, before: Json | None) -> Json:
    if before is None:
        return container
    rest = {key: value for key, value in before.items() if key not in _RESIZED}
    return {**rest, **{key: container[key] for key in _RESIZED if key in container}}


def qos_class_of(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort."""
    guaranteed, any_given = True, False
    for container in ({"resources": spec["resources"]},) if spec.get("resources") else _containers(spec):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            limit, request = limits.get(name), requests.get(name)
            any_given = any_given or _positive(limit) or _positive(request)
            if not _positive(limit) or (request not in (None, limit) and _differ(request, limit)):
                guaranteed = False
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _differ(text: str, other: str | None) -> bool:
    return other is None or quantity.exact(text) != quantity.exact(other)


@lru_cache(maxsize=4096)
def _positive(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return quantity.exact(text) > 0
    except ValueError:
        return False


def _containers(spec: Json) -> Iterable[Json]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def kept_status(status: Json, old: Json) -> Json:
    """A new status with the fields that a writer cannot remove."""
    kept = dict(status)
    if not kept.get("qosClass") and old.get("qosClass"):
        kept["qosClass"] = old["qosClass"]
    if not kept.get("observedGeneration") and old.get("observedGeneration"):
        kept["observedGeneration"] = old["observedGeneration"]
    return kept

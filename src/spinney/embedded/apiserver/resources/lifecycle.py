"""What the server itself writes into objects: first statuses, priorities, addresses, selectors of Jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spinney.api.meta import Json
from spinney.embedded.apiserver.admission import limit_ranges
from spinney.embedded.apiserver.calls import Call
from spinney.embedded.apiserver.core import Core
from spinney.embedded.apiserver.errors import forbidden
from spinney.embedded.apiserver.resources import defaults, pod_admission, services
from spinney.embedded.apiserver.schema import definition_status

# Built-in kinds with a status subresource whose status may be given at creation.
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
# What a write to the status of a built-in kind leaves alone in its metadata; None for all of it.
KEPT_BY_STATUS: dict[str, tuple[str, ...] | None] = {
    "/pods": ("ownerReferences",),
    "apiextensions.k8s.io/customresourcedefinitions": None,
}
STATUS_AT_CREATION = frozenset(("/nodes",))


def _update_service(core: Core, call: Call, new: Json, old: Json) -> None:
    if new.get("spec") is not old.get("spec"):
        services.update(core, call, new, old)


def _update_pod(core: Core, call: Call, new: Json, old: Json) -> None:
    if new.get("spec") is not old.get("spec"):
        new["spec"] = pod_admission.readmitted(new.get("spec") or {}, old["spec"])


def _update_definition(core: Core, call: Call, new: Json, old: Json) -> None:
    if new.get("spec") != old.get("spec"):
        new["status"] = definition_status.new_status(core, new, old.get("status") or {})


def _update_namespace(core: Core, call: Call, new: Json, old: Json) -> None:
    new["spec"] = old.get("spec") or {}
    defaults.namespace(new)


def _pod_status(core: Core, new: Json, old: Json) -> None:
    new["status"] = pod_admission.kept_status(new.get("status") or {}, old.get("status") or {})


def _finalize(new: Json, old: Json) -> Json:
    return {**old, "spec": new.get("spec") or {}, "metadata": dict(old["metadata"])}


def _approve(new: Json, old: Json) -> Json:
    return {**old, "status": new.get("status") or {}, "metadata": dict(old["metadata"])}


def _add_ephemeral_containers(new: Json, old: Json) -> Json:
    return _with_part("ephemeralcontainers", new, old)


def _resize(new: Json, old: Json) -> Json:
    return _with_part("resize", new, old)


def _with_part(part: str, new: Json, old: Json) -> Json:
    spec = pod_admission.with_part(part, new.get("spec") or {}, old["spec"])
    # The version that a writer has seen is a condition of the write.
    version = new["metadata"].get("resourceVersion")
    seen = {"resourceVersion": version} if version else {}
    return {**old, "spec": spec, "metadata": {**old["metadata"], **seen}}


def _note_phase(core: Core, volume: Json, old: Json) -> None:
    """A volume says since when it is in its phase."""
    status, before = volume.get("status") or {}, old.get("status") or {}
    if status.get("phase") != before.get("phase"):
        volume["status"] = {**status, "lastPhaseTransitionTime": core.timestamp()}
    elif "lastPhaseTransitionTime" in before:
        volume["status"] = {**status, "lastPhaseTransitionTime": before["lastPhaseTransitionTime"]}


def _namespace(core: Core, call: Call, document: Json) -> None:
    document["status"] = {"phase": "Active"}
    spec = document["spec"]
    if "kubernetes" not in spec.get("finalizers", ()):
        spec["finalizers"] = [*(spec.get("finalizers") or ()), "kubernetes"]


def _limit_range(core: Core, call: Call, document: Json) -> None:
    # The one kind that needs no name at all.
    call.name = document["metadata"].setdefault("name", core.chance.uid())


def _claim(core: Core, call: Call, document: Json) -> None:
    limit_ranges.admit_claim(core, call, document)
    document["status"] = {"phase": "Pending"}
    spec = document["spec"]
    if "storageClassName" not in spec:
        name = _default_storage_class(core)
        if name:
            spec["storageClassName"] = name
    finalizers = document["metadata"].get("finalizers") or []
    if "kubernetes.io/pvc-protection" not in finalizers:
        document["metadata"]["finalizers"] = [*finalizers, "kubernetes.io/pvc-protection"]


def _volume(core: Core, call: Call, document: Json) -> None:
    document["status"] = {"phase": "Pending", "lastPhaseTransitionTime": core.timestamp()}
    finalizers = document["metadata"].get("finalizers") or []
    if "kubernetes.io/pv-protection" not in finalizers:
        document["metadata"]["finalizers"] = [*finalizers, "kubernetes.io/pv-protection"]


def _signing_request(core: Core, call: Call, document: Json) -> None:
    """Who asks for a certificate is not for the request to say."""
    user = call.user
    extra = {key: list(values) for key, values in user.extra.items()}
    asker: Json = {"username": user.name, "groups": list(user.groups), "uid": user.uid, "extra": extra}
    document["spec"] |= {key: value for key, value in asker.items() if value}


def _attributes_class(core: Core, call: Call, document: Json) -> None:
    finalizers = document["metadata"].get("finalizers") or []
    if "kubernetes.io/vac-protection" not in finalizers:
        document["metadata"]["finalizers"] = [*finalizers, "kubernetes.io/vac-protection"]


def _priority_class(core: Core, call: Call, document: Json) -> None:
    if not document.get("globalDefault"):
        return
    for item in core.store.table(call.kind.table).range(""):
        if b'"globalDefault":true' in item.body:
            why = f"PriorityClass {item.name} is already marked as default. Only one default can exist"
            raise forbidden(call.kind, document["metadata"].get("name", ""), why)


def _definition(core: Core, call: Call, document: Json) -> None:
    document["status"] = definition_status.new_status(core, document, {})


def _node(core: Core, call: Call, document: Json) -> None:
    taints = document["spec"].get("taints") or []
    if not any(taint.get("key") == _NOT_READY["key"] for taint in taints):
        document["spec"]["taints"] = [*taints, dict(_NOT_READY)]
    document.setdefault("status", {})


CREATED: dict[str, Callable[[Core, Call, Json], None]] = {
    "/pods": pod_admission.admit,
    "/namespaces": _namespace,
    "/limitranges": _limit_range,
    "/nodes": _node,
    "/persistentvolumeclaims": _claim,
    "/persistentvolumes": _volume,
    "/services": services.create,
    "storage.k8s.io/volumeattributesclasses": _attributes_class,
    "certificates.k8s.io/certificatesigningrequests": _signing_request,
    "scheduling.k8s.io/priorityclasses": _priority_class,
    "apiextensions.k8s.io/customresourcedefinitions": _definition,
}


def _default_storage_class(core: Core) -> str:
    """The class that claims without one get."""
    for item in core.store.table("storage.k8s.io/storageclasses").range(""):
        if b'"storageclass.kubernetes.io/is-default-class":"true"' in item.body:
            return item.name
    return ""


UPDATED: dict[str, Callable[[Core, Call, Json, Json], None]] = {
    "/pods": _update_pod,
    "/namespaces": _update_namespace,
    "/services": _update_service,
    "apiextensions.k8s.io/customresourcedefinitions": _update_definition,
}
STATUS_UPDATED: dict[str, Callable[[Core, Json, Json], None]] = {
    "/persistentvolumes": _note_phase,
    "/pods": _pod_status,
}
PARTS: dict[str, Mapping[str, Callable[[Json, Json], Json]]] = {
    "/namespaces": {"finalize": _finalize},
    "/pods": {"ephemeralcontainers": _add_ephemeral_containers, "resize": _resize},
    "certificates.k8s.io/certificatesigningrequests": {"approval": _approve},
}

"""Defaults of built-in kinds, as the versioned API documents them."""

from __future__ import annotations

import base64
from collections.abc import Callable

from spinney.api.meta import Json
from spinney.embedded.apiserver.resources import pod_defaults
from spinney.embedded.apiserver.resources.pod_defaults import fill
from spinney.embedded.apiserver.resources.validation.service_specs import is_reachable

Default = Callable[[Json], None]


def _service(document: Json) -> None:
    spec = document.setdefault("spec", {})
    fill(spec, sessionAffinity="None", type="ClusterIP")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if is_reachable(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for point in ((document.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if point.get("ip"):
                point.setdefault("ipMode", "VIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)


def _secret(document: Json) -> None:
    document.setdefault("type", "Opaque")
    texts = document.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        document["data"] = {**(document.get("data") or {}), **encoded}


def namespace(document: Json) -> None:
    """A Namespace carries its name as a label, too."""
    metadata = document["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    document.setdefault("spec", {})
    document.setdefault("status", {}).setdefault("phase", "Active")


def _node(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.pop("configSource", None)
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    status = document.get("status")
    if status and status.get("capacity") and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def _claim(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    source = spec.get("dataSource")
    if source is not None and not source.get("apiGroup") and source.get("kind") not in (None, "PersistentVolumeClaim"):
        del spec["dataSource"]
    # Both names of the source say the same.
    if spec.get("dataSource") is not None:
        spec.setdefault("dataSourceRef", dict(spec["dataSource"]))
    elif spec.get("dataSourceRef") is not None and not spec["dataSourceRef"].get("namespace"):
        spec["dataSource"] = dict(spec["dataSourceRef"])
    document.setdefault("status", {}).setdefault("phase", "Pending")


def _volume_object(document: Json) -> None:
    spec = document.setdefault("spec", {})
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if spec.get("hostPath"):
        spec["hostPath"].setdefault("type", "")
    document.setdefault("status", {}).setdefault("phase", "Pending")


def _storage_class(document: Json) -> None:
    fill(document, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(document: Json) -> None:
    fill(document, preemptionPolicy="PreemptLowerPriority", value=0)


def _binding(document: Json) -> None:
    reference = document.setdefault("roleRef", {})
    reference.setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in document.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _webhooks(document: Json) -> None:
    mutating = document.get("kind") == "MutatingWebhookConfiguration"
    for hook in document.get("webhooks") or ():
        fill(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if mutating:
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _definition(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("conversion", {}).setdefault("strategy", "None")
    names = spec.setdefault("names", {})
    if names.get("kind"):
        fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


def _network_policy(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    for side in ("ingress", "egress"):
        for rule in spec.get(side) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _claim_requests(spec: Json) -> None:
    devices = spec.setdefault("devices", {})
    if not devices.get("requests"):
        devices["requests"] = None
    for request in devices.get("requests") or ():
        exact = request.get("exactly")
        for wish in (*((exact,) if exact is not None else ()), *(request.get("firstAvailable") or ())):
            wish.setdefault("allocationMode", "ExactCount")
            if wish["allocationMode"] == "ExactCount":
                wish.setdefault("count", 1)
            for key in ("tolerations", "capacity"):
                # The features that know them are not switched on.
                wish.pop(key, None)


def _device_class(document: Json) -> None:
    # The feature that knows it is not switched on.
    document.setdefault("spec", {}).pop("extendedResourceName", None)


def _slice(document: Json) -> None:
    for device in document.setdefault("spec", {}).get("devices") or ():
        device.pop("taints", None)


def _lease(document: Json) -> None:
    spec = document.setdefault("spec", {})
    for key in ("strategy", "preferredHolder"):
        spec.pop(key, None)


def _resource_claim(document: Json) -> None:
    _claim_requests(document.setdefault("spec", {}))


def _resource_claim_template(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _claim_requests(spec.setdefault("spec", {}))


def _endpoint_slice(document: Json) -> None:
    for endpoint in document.get("endpoints") or ():
        endpoint.setdefault("conditions", {})
        endpoint.pop("deprecatedTopology", None)
    for port in document.get("ports") or ():
        fill(port, name="", protocol="TCP")


def _ingress_class(document: Json) -> None:
    parameters = document.setdefault("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def only_spec(document: Json) -> None:
    """A spec, at least."""
    document.setdefault("spec", {})


def _endpoints(document: Json) -> None:
    for subset in document.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _limit_range(document: Json) -> None:
    for limit in document.setdefault("spec", {}).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        requests = {**(limit.get("min") or {}), **limits, **(limit.get("defaultRequest") or {})}
        if limits:
            limit["default"] = limits
        if requests:
            limit["defaultRequest"] = requests


def _csi_driver(document: Json) -> None:
    fill(
        document.setdefault("spec", {}),
        attachRequired=True,
        podInfoOnMount=False,
        volumeLifecycleModes=["Persistent"],
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )


def _policy(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        _match_resources(spec["matchConstraints"])


def _policy_binding(document: Json) -> None:
    spec = document.setdefault("spec", {})
    if spec.get("matchResources") is not None:
        _match_resources(spec["matchResources"])


def _match_resources(match: Json) -> None:
    fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in match.get("resourceRules") or ():
        rule.setdefault("scope", "*")


DEFAULTS: dict[str, Default] = {
    "admissionregistration.k8s.io/validatingadmissionpolicies": _policy,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _policy_binding,
    "/pods": pod_defaults.pod,
    "/endpoints": _endpoints,
    "/limitranges": _limit_range,
    "storage.k8s.io/csidrivers": _csi_driver,
    "/services": _service,
    "/secrets": _secret,
    "/namespaces": namespace,
    "/nodes": _node,
    "/persistentvolumeclaims": _claim,
    "/persistentvolumes": _volume_object,
    "storage.k8s.io/storageclasses": _storage_class,
    "scheduling.k8s.io/priorityclasses": _priority_class,
    "rbac.authorization.k8s.io/rolebindings": _binding,
    "rbac.authorization.k8s.io/clusterrolebindings": _binding,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _webhooks,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _webhooks,
    "apiextensions.k8s.io/customresourcedefinitions": _definition,
    "networking.k8s.io/networkpolicies": _network_policy,
    "networking.k8s.io/ingressclasses": _ingress_class,
    "networking.k8s.io/ingresses": only_spec,
    "/resourcequotas": only_spec,
    "discovery.k8s.io/endpointslices": _endpoint_slice,
    "resource.k8s.io/resourceclaims": _resource_claim,
    "resource.k8s.io/deviceclasses": _device_class,
    "resource.k8s.io/resourceslices": _slice,
    "coordination.k8s.io/leases": _lease,
    "resource.k8s.io/resourceclaimtemplates": _resource_claim_template,
}

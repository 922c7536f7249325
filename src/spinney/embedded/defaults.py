"""Defaults of built-in kinds, as the versioned API documents them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from spinney.api import quantity
from spinney.api.meta import Json
from spinney.embedded.validation.services import is_reachable

# A host (which has a dot, a port or capitals, or is localhost) may come before the path.
_IMAGE = re.compile(
    r"^((localhost|[A-Za-z0-9-]*[.A-Z][A-Za-z0-9.-]*|[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?/)?"
    r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?\Z"
)
Default = Callable[[Json], None]
# Kept for clients of the time when a DaemonSet counted its templates itself.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _fill(target: Json, **values: Any) -> None:
    for key, value in values.items():
        target.setdefault(key, value)


def pod_spec(spec: Json) -> None:
    """A pod spec, of a pod or of a template."""
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            default_container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]


def default_container(container: Json) -> None:
    """A container, of any sort."""
    if "stopSignal" in (container.get("lifecycle") or {}):
        # The feature that knows it is not switched on.
        rest = {key: value for key, value in container.pop("lifecycle").items() if key != "stopSignal"}
        container.update({"lifecycle": rest} if rest else {})
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image", "")) else "IfNotPresent"
    _fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", resources={})
    for amounts in container["resources"].values():
        if isinstance(amounts, dict):
            _round_up(amounts)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
        amount = (variable.get("valueFrom") or {}).get("resourceFieldRef")
        if amount is not None:
            amount.setdefault("divisor", "0")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe):
            _probe(container[probe])
    for hook in (container.get("lifecycle") or {}).values():
        if hook.get("httpGet"):
            _fill(hook["httpGet"], path="/", scheme="HTTP")


def _round_up(amounts: Json) -> None:
    """Nothing is counted more finely than by the thousandth."""
    for name, text in amounts.items():
        if text[-1:] in ("n", "u"):
            amounts[name] = quantity.from_milli(quantity.milli(text))


@lru_cache(maxsize=1024)
def _is_latest(image: str) -> bool:
    """Whether a name of an image means its newest version; one that cannot be read means none."""
    if "@" in image or not _IMAGE.match(image):
        return False
    return image.rpartition("/")[2].partition(":")[2] in ("", "latest")


def _probe(probe: Json) -> None:
    _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if "httpGet" in probe:
        _fill(probe["httpGet"], path="/", scheme="HTTP")
    if "grpc" in probe:
        _fill(probe["grpc"], service="")


def _volume(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for key in ("secret", "configMap", "projected", "downwardAPI"):
        if key in volume:
            volume[key].setdefault("defaultMode", 420)
    if "projected" in volume:
        volume["projected"].setdefault("sources", None)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        _downward(source.get("downwardAPI") or {})
    _downward(volume.get("downwardAPI") or {})
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "image" in volume:
        latest = _is_latest(volume["image"].get("reference", ""))
        volume["image"].setdefault("pullPolicy", "Always" if latest else "IfNotPresent")
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("metadata", {})
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _downward(source: Json) -> None:
    for item in source.get("items") or ():
        if item.get("fieldRef"):
            item["fieldRef"].setdefault("apiVersion", "v1")
        if item.get("resourceFieldRef"):
            item["resourceFieldRef"].setdefault("divisor", "0")


def _pod(document: Json) -> None:
    spec = document.setdefault("spec", {})
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            _own_container(container, spec)
    if spec.get("resources"):
        _own_resources(spec)


def _own_resources(spec: Json) -> None:
    """What all containers of a pod share: where only a limit is said, they ask for what they do, or for all of it."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    asked: Json = {}
    for container in spec.get("containers") or ():
        asked = dict(quantity.add(asked, (container.get("resources") or {}).get("requests") or {}))
    counted = {name: amount for name, amount in asked.items() if name in ("cpu", "memory")}
    resources["requests"] = {**limits, **counted, **(resources.get("requests") or {})}


def _own_container(container: Json, spec: Json) -> None:
    """What a container of a pod gets that one of a template does not."""
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests") or {}
        if any(name not in requests for name in limits):
            resources["requests"] = {**limits, **requests}
    if spec.get("hostNetwork"):
        for port in container.get("ports") or ():
            port.setdefault("hostPort", port.get("containerPort"))


def _template(spec: Json) -> Json:
    template: Json = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))
    return template


def _deployment(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def _replica_set(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _template(spec)
    spec.setdefault("replicas", 1)


def _stateful_set(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady", serviceName="")
    _fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("partition", 0)
        # The feature that knows it is not switched on.
        rolling.pop("maxUnavailable", None)
    for claim in spec.get("volumeClaimTemplates") or ():
        _fill(claim, kind="PersistentVolumeClaim", apiVersion="v1")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _daemon_set(document: Json) -> None:
    spec = document.setdefault("spec", {})
    metadata = document["metadata"]
    metadata["annotations"] = {TEMPLATE_GENERATION: "1", **(metadata.get("annotations") or {})}
    _template(spec)
    _fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)


def job_spec(spec: Json) -> None:
    """A Job's spec, of a Job or of a CronJob's template."""
    _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    each = spec.get("backoffLimitPerIndex") is not None
    _fill(
        spec,
        parallelism=1,
        backoffLimit=2**31 - 1 if each else 6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
    )
    policy = spec.get("podFailurePolicy")
    if policy is not None and not policy.get("rules"):
        policy["rules"] = None
    for rule in (policy or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition.setdefault("status", "True")
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")


def _job(document: Json) -> None:
    job_spec(document.setdefault("spec", {}))


def _cron_job(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    inner = template.setdefault("spec", {})
    _template(inner)


def _service(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _fill(spec, sessionAffinity="None", type="ClusterIP")
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
    _fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if spec.get("hostPath"):
        spec["hostPath"].setdefault("type", "")
    document.setdefault("status", {}).setdefault("phase", "Pending")


def _storage_class(document: Json) -> None:
    _fill(document, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(document: Json) -> None:
    _fill(document, preemptionPolicy="PreemptLowerPriority", value=0)


def _autoscaler(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if document.get("apiVersion") == "autoscaling/v1":
        spec.setdefault("targetCPUUtilizationPercentage", 80)
    if document.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if spec.get("behavior") is not None:
        percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
        up, down = spec["behavior"].setdefault("scaleUp", {}), spec["behavior"].setdefault("scaleDown", {})
        _fill(up, stabilizationWindowSeconds=0, selectPolicy="Max")
        _fill(up, policies=[{"type": "Pods", "value": 4, "periodSeconds": 15}, percent])
        _fill(down, selectPolicy="Max", policies=[percent])


def _binding(document: Json) -> None:
    reference = document.setdefault("roleRef", {})
    reference.setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in document.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _webhooks(document: Json) -> None:
    mutating = document.get("kind") == "MutatingWebhookConfiguration"
    for hook in document.get("webhooks") or ():
        _fill(
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
        _fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
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
        _fill(port, name="", protocol="TCP")


def _pod_template(document: Json) -> None:
    _template(document)


def _replication_controller(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if "template" not in spec:
        return
    labels = _template(spec)["metadata"].get("labels")
    if labels:
        _fill(spec, selector=dict(labels))
        _fill(document["metadata"], labels=dict(labels))


def _ingress_class(document: Json) -> None:
    parameters = document.setdefault("spec", {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _only_spec(document: Json) -> None:
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
    _fill(
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
    _fill(match, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for rule in match.get("resourceRules") or ():
        rule.setdefault("scope", "*")


DEFAULTS: dict[str, Default] = {
    "admissionregistration.k8s.io/validatingadmissionpolicies": _policy,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _policy_binding,
    "/pods": _pod,
    "/podtemplates": _pod_template,
    "/replicationcontrollers": _replication_controller,
    "/endpoints": _endpoints,
    "/limitranges": _limit_range,
    "storage.k8s.io/csidrivers": _csi_driver,
    "/services": _service,
    "/secrets": _secret,
    "/namespaces": namespace,
    "/nodes": _node,
    "/persistentvolumeclaims": _claim,
    "/persistentvolumes": _volume_object,
    "apps/deployments": _deployment,
    "apps/replicasets": _replica_set,
    "apps/statefulsets": _stateful_set,
    "apps/daemonsets": _daemon_set,
    "batch/jobs": _job,
    "batch/cronjobs": _cron_job,
    "storage.k8s.io/storageclasses": _storage_class,
    "scheduling.k8s.io/priorityclasses": _priority_class,
    "autoscaling/horizontalpodautoscalers": _autoscaler,
    "rbac.authorization.k8s.io/rolebindings": _binding,
    "rbac.authorization.k8s.io/clusterrolebindings": _binding,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _webhooks,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _webhooks,
    "apiextensions.k8s.io/customresourcedefinitions": _definition,
    "networking.k8s.io/networkpolicies": _network_policy,
    "networking.k8s.io/ingressclasses": _ingress_class,
    "networking.k8s.io/ingresses": _only_spec,
    "policy/poddisruptionbudgets": _only_spec,
    "/resourcequotas": _only_spec,
    "discovery.k8s.io/endpointslices": _endpoint_slice,
    "resource.k8s.io/resourceclaims": _resource_claim,
    "resource.k8s.io/deviceclasses": _device_class,
    "resource.k8s.io/resourceslices": _slice,
    "coordination.k8s.io/leases": _lease,
    "resource.k8s.io/resourceclaimtemplates": _resource_claim_template,
}

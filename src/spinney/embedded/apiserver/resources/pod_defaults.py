"""Defaults of pods and pod templates."""

from __future__ import annotations

from spinney.api import patterns, quantity
from spinney.api.meta import Json
from spinney.api.text_cache import text_cache
from spinney.embedded.apiserver.resources.defaults import fill

_LONGEST_IMAGE = 4096
# A host (which has a dot, a port or capitals, or is localhost) may come before the path.
_IMAGE = (
    r"^((localhost|[A-Za-z0-9-]*[.A-Z][A-Za-z0-9.-]*|[A-Za-z0-9.-]+:[0-9]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?/)?"
    r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?\z"
)


def pod_spec(spec: Json) -> None:
    """Fill in the defaults of a pod spec."""
    fill(
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
    """Fill in the defaults of a container."""
    if "stopSignal" in (container.get("lifecycle") or {}):
        # The feature gate of this field is off.
        rest = {key: value for key, value in container.pop("lifecycle").items() if key != "stopSignal"}
        container.update({"lifecycle": rest} if rest else {})
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image", "")) else "IfNotPresent"
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", resources={})
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
            fill(hook["httpGet"], path="/", scheme="HTTP")


def _round_up(amounts: Json) -> None:
    """Round amounts up to thousandths."""
    for name, text in amounts.items():
        if text[-1:] in ("n", "u"):
            amounts[name] = quantity.from_milli(quantity.milli(text))


@text_cache(1024)
def _is_latest(image: str) -> bool:
    """Whether an image has the tag `latest` or none."""
    if "@" in image or len(image) > _LONGEST_IMAGE or not patterns.found_in(_IMAGE, image):
        return False
    return image.rpartition("/")[2].partition(":")[2] in ("", "latest")


def _probe(probe: Json) -> None:
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if "httpGet" in probe:
        fill(probe["httpGet"], path="/", scheme="HTTP")
    if "grpc" in probe:
        fill(probe["grpc"], service="")


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


def pod(document: Json) -> None:
    """Fill in the defaults of a pod."""
    spec = document.setdefault("spec", {})
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            _own_container(container, spec)
    if spec.get("resources"):
        _own_resources(spec)


def _own_resources(spec: Json) -> None:
    """Fill in pod-level requests from the requests of containers, or from pod-level limits."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests: Json = {}
    for container in spec.get("containers") or ():
        requests = dict(quantity.add(requests, (container.get("resources") or {}).get("requests") or {}))
    counted = {name: amount for name, amount in requests.items() if name in ("cpu", "memory")}
    resources["requests"] = {**limits, **counted, **(resources.get("requests") or {})}


def _own_container(container: Json, spec: Json) -> None:
    """Fill in defaults that only containers of pods have, not those of templates."""
    resources = container["resources"]
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests") or {}
        if any(name not in requests for name in limits):
            resources["requests"] = {**limits, **requests}
    if spec.get("hostNetwork"):
        for port in container.get("ports") or ():
            port.setdefault("hostPort", port.get("containerPort"))


def default_template(spec: Json) -> None:
    """Fill in the defaults of the pod template in a spec."""
    template: Json = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))

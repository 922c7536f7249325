"""Checks of pods and pod templates."""

from __future__ import annotations

from spinney.api import naming
from spinney.api.meta import Json
from spinney.embedded.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.apiserver.resources.validation import (
    containers,
    names,
    pod_placement,
    security_contexts,
)
from spinney.embedded.apiserver.resources.validation.pod_volumes import check_volumes

_RESTARTS = ("Always", "Never", "OnFailure")
_LIFE = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def check_create(pod: Json) -> list[FieldError]:
    """Refuse what a new pod must not have."""
    if (pod.get("spec") or {}).get("ephemeralContainers"):
        return [forbidden_field("spec.ephemeralContainers", "cannot be set on create")]
    return []


def check(pod: Json) -> list[FieldError]:
    """Check a pod."""
    spec = pod.get("spec") or {}
    errors = check_spec(spec, "spec")
    # Kubernetes accepts spaces here in templates, for compatibility.
    for key in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(key) or ()):
            image = container.get("image", "")
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                errors.append(invalid(f"spec.{key}[{at}].image", image, detail))
    return errors


def check_template(template: Json, path: str) -> list[FieldError]:
    """Check the pod template of a workload."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = names.check_labels(metadata.get("labels"), f"{path}.labels")
    errors += names.check_annotations(metadata.get("annotations"), f"{path}.annotations")
    errors += check_spec(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden_field(f"{path}.spec.ephemeralContainers", detail))
    return errors


def check_spec(spec: Json, path: str) -> list[FieldError]:
    """Check a pod spec."""
    errors: list[FieldError] = []
    volumes: dict[str, Json] = {}
    if spec.get("volumes"):
        errors += check_volumes(spec["volumes"], f"{path}.volumes", volumes)
    errors += _claims(spec, path)
    mains = spec.get("containers") or []
    seen: set[str] = set()
    if not mains:
        errors.append(required(f"{path}.containers"))
    for at, container in enumerate(mains):
        errors += containers.check_container(container, f"{path}.containers[{at}]", volumes, seen, spec)
        errors += _restart(container, f"{path}.containers[{at}]")
    errors += containers.check_host_ports(mains, f"{path}.containers")
    for at, container in enumerate(spec.get("initContainers") or ()):
        errors += _init(container, f"{path}.initContainers[{at}]", volumes, seen, spec)
    if spec.get("resources"):
        errors += containers.check_resources(spec["resources"], f"{path}.resources")
    if spec.get("hostNetwork"):
        errors += _host_ports(spec, path)
    errors += _policies(spec, path)
    if spec.get("nodeSelector"):
        errors += names.check_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("securityContext"):
        errors += security_contexts.check_pod(spec["securityContext"], f"{path}.securityContext")
    if spec.get("affinity"):
        errors += pod_placement.check_affinity(spec["affinity"], f"{path}.affinity")
    for at, gate in enumerate(spec.get("readinessGates") or ()):
        name = gate.get("conditionType", "")
        where = f"{path}.readinessGates[{at}].conditionType"
        errors += [invalid(where, name, problem) for problem in naming.qualified_problems(name)]
    if spec.get("schedulingGates"):
        errors += _gates(spec, path)
    if spec.get("topologySpreadConstraints"):
        errors += pod_placement.check_spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    return errors + _rest(spec, path)


def _init(container: Json, path: str, volumes: dict[str, Json], seen: set[str], spec: Json) -> list[FieldError]:
    """Check an init container, which is a sidecar if it is always restarted."""
    if container.get("restartPolicy") == "Always":
        return containers.check_container(container, path, volumes, seen, spec)
    life = [key for key in _LIFE if container.get(key) is not None]
    plain = {key: value for key, value in container.items() if key not in life} if life else container
    errors = containers.check_container(plain, path, volumes, seen, spec) + _restart(container, path)
    errors += containers.check_host_ports([container], path.rpartition("[")[0])
    detail = "may not be set for init containers without restartPolicy=Always"
    return errors + [forbidden_field(f"{path}.{key}", detail) for key in life]


def _restart(container: Json, path: str) -> list[FieldError]:
    policy = container.get("restartPolicy")
    return [] if policy is None or policy in _RESTARTS else [unsupported(f"{path}.restartPolicy", policy, _RESTARTS)]


def _policies(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec.get("restartPolicy", "Always")
    if policy not in _RESTARTS:
        errors.append(unsupported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never")))
    dns = spec.get("dnsPolicy", "ClusterFirst")
    if dns not in ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"):
        allowed = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
        errors.append(unsupported(f"{path}.dnsPolicy", dns, allowed))
    if dns == "None" and spec.get("dnsConfig") is None:
        errors.append(required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
    return errors


def _rest(spec: Json, path: str) -> list[FieldError]:
    """Check names in a pod spec, and what Kubernetes reports last."""
    errors: list[FieldError] = []
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            errors += [invalid(f"{path}.{key}", spec[key], problem) for problem in naming.subdomain_problems(spec[key])]
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            errors += [invalid(f"{path}.{key}", spec[key], problem) for problem in naming.label_problems(spec[key])]
    if spec.get("tolerations"):
        errors += pod_placement.check_tolerations(spec["tolerations"], f"{path}.tolerations")
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key):
            errors += [invalid(f"{path}.{key}", spec[key], problem) for problem in naming.subdomain_problems(spec[key])]
    preemption = spec.get("preemptionPolicy", "Never")
    if preemption not in ("PreemptLowerPriority", "Never"):
        errors.append(unsupported(f"{path}.preemptionPolicy", preemption, ("PreemptLowerPriority", "Never")))
    if spec.get("workloadRef") is not None:
        errors += _workload(spec["workloadRef"], f"{path}.workloadRef")
    return errors


def _claims(spec: Json, path: str) -> list[FieldError]:
    """Check the resource claims of a pod, and the references of its containers."""
    errors: list[FieldError] = []
    claim_names: set[str] = set()
    for at, claim in enumerate(spec.get("resourceClaims") or ()):
        where = f"{path}.resourceClaims[{at}]"
        name = claim.get("name", "")
        if name and name in claim_names:
            errors.append(duplicate(f"{where}.name", name))
        else:
            errors += names.check_label_name(name, f"{where}.name")
        claim_names.add(name)
        sources = [claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")]
        which = "`resourceClaimName`{} `resourceClaimTemplateName`"
        if not any(sources):
            errors.append(invalid(where, claim, "must specify one of: " + which.format(",")))
        elif all(sources):
            errors.append(invalid(where, claim, f"at most one of {which.format(' or')} may be specified"))
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(key) is not None:
                problems = naming.subdomain_problems(claim[key])
                errors += [invalid(f"{where}.{key}", claim[key], problem) for problem in problems]
    for key in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(key) or ()):
            used: set[str] = set()
            for number, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
                where = f"{path}.{key}[{at}].resources.claims[{number}]"
                mark = "/".join(filter(None, (claim.get("name"), claim.get("request"))))
                if mark in used:
                    errors.append(duplicate(where, mark))
                used.add(mark)
                if claim.get("name") in claim_names:
                    continue
                detail = "must be one of the names in pod.spec.resourceClaims"
                error = not_found_field(where, claim.get("name"))
                suffix = f": {', '.join(sorted(claim_names))}" if claim_names else " which is empty"
                errors.append(FieldError(error.reason, error.field, f"{error.message}: {detail}{suffix}"))
    return errors


def _host_ports(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            # Pods get it later, so a template need not set it.
            if port.get("hostPort", port.get("containerPort")) != port.get("containerPort"):
                where = f"{path}.containers[{at}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(where, port.get("hostPort"), detail))
    return errors


def _workload(reference: Json, path: str) -> list[FieldError]:
    name, group = reference.get("name", ""), reference.get("podGroup", "")
    errors = [invalid(f"{path}.name", name, problem) for problem in naming.subdomain_problems(name)]
    errors += [invalid(f"{path}.podGroup", group, problem) for problem in naming.label_problems(group)]
    replica = reference.get("podGroupReplicaKey")
    if replica:
        errors += [
            invalid(f"{path}.podGroupReplicaKey", replica, problem) for problem in naming.label_problems(replica)
        ]
    return errors


def _gates(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for at, gate in enumerate(spec["schedulingGates"]):
        name = gate.get("name", "")
        where = f"{path}.schedulingGates[{at}]"
        errors += [invalid(where, name, problem) for problem in naming.qualified_problems(name)]
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    if spec.get("nodeName"):
        errors.append(forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors

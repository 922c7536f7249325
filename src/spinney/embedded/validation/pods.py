"""Pods and pod templates."""

from __future__ import annotations

from spinney.api.meta import Json
from spinney.embedded.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.validation import containers, names, placement, security
from spinney.embedded.validation.volumes import check_volumes

_RESTARTS = ("Always", "Never", "OnFailure")


def check_create(pod: Json) -> list[FieldError]:
    """What a new pod may not bring along."""
    if (pod.get("spec") or {}).get("ephemeralContainers"):
        return [forbidden_field("spec.ephemeralContainers", "cannot be set on create")]
    return []


def check(pod: Json) -> list[FieldError]:
    """A pod as it is about to be kept."""
    return check_spec(pod.get("spec") or {}, "spec")


def check_template(template: Json, path: str) -> list[FieldError]:
    """A pod template inside a workload."""
    metadata = template.get("metadata") or {}
    found = names.check_labels(metadata.get("labels"), f"{path}.labels")
    found += names.check_annotations(metadata.get("annotations"), f"{path}.annotations")
    return found + check_spec(template.get("spec") or {}, f"{path}.spec")


def check_spec(spec: Json, path: str) -> list[FieldError]:
    """A pod spec."""
    found: list[FieldError] = []
    volumes: dict[str, Json] = {}
    if spec.get("volumes"):
        found += check_volumes(spec["volumes"], f"{path}.volumes", volumes)
    mains = spec.get("containers") or ()
    seen: set[str] = set()
    if not mains:
        found.append(required(f"{path}.containers"))
    for at, container in enumerate(mains):
        found += containers.check_container(container, f"{path}.containers[{at}]", volumes, seen)
    for at, container in enumerate(spec.get("initContainers") or ()):
        found += containers.check_container(container, f"{path}.initContainers[{at}]", volumes, seen)
        if container.get("restartPolicy") is None:
            detail = "may not be set for init containers without restartPolicy=Always"
            for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(key) is not None:
                    found.append(forbidden_field(f"{path}.initContainers[{at}].{key}", detail))
    for key in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(key) or ()):
            policy = container.get("restartPolicy")
            if policy is not None and policy not in _RESTARTS:
                found.append(unsupported(f"{path}.{key}[{at}].restartPolicy", policy, _RESTARTS))
    found += _claims(spec, path)
    found += _enumerated(spec, path)
    if spec.get("schedulingGates"):
        found += _gates(spec, path)
    if spec.get("hostNetwork"):
        found += _host_ports(spec, path)
    if spec.get("workloadRef") is not None:
        found += _workload(spec["workloadRef"], f"{path}.workloadRef")
    for key, rule in (("nodeName", names.subdomain_problems), ("serviceAccountName", names.subdomain_problems)):
        if spec.get(key):
            found += [invalid(f"{path}.{key}", spec[key], problem) for problem in rule(spec[key])]
    if spec.get("nodeSelector"):
        found += names.check_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("tolerations"):
        found += placement.check_tolerations(spec["tolerations"], f"{path}.tolerations")
    if spec.get("affinity"):
        found += placement.check_affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("topologySpreadConstraints"):
        found += placement.check_spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        found.append(invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            found += [invalid(f"{path}.{key}", spec[key], problem) for problem in names.label_problems(spec[key])]
    return found


def _claims(spec: Json, path: str) -> list[FieldError]:
    """Resource claims of the pod, and the containers' references to them."""
    found: list[FieldError] = []
    known: set[str] = set()
    for at, claim in enumerate(spec.get("resourceClaims") or ()):
        where = f"{path}.resourceClaims[{at}]"
        name = claim.get("name", "")
        found += names.check_label_name(name, f"{where}.name")
        if name in known:
            found.append(duplicate(f"{where}.name", name))
        known.add(name)
        sources = [claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")]
        shown = {"Name": name, "ResourceClaimName": sources[0], "ResourceClaimTemplateName": sources[1]}
        which = "`resourceClaimName`, `resourceClaimTemplateName`"
        if not any(sources):
            found.append(invalid(where, shown, f"must specify one of: {which}"))
        elif all(sources):
            found.append(invalid(where, shown, f"at most one of {which} may be specified"))
    for key in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(key) or ()):
            for number, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
                if claim.get("name") in known:
                    continue
                where = f"{path}.{key}[{at}].resources.claims[{number}]"
                detail = "must be one of the names in pod.spec.resourceClaims"
                error = not_found_field(where, claim.get("name"))
                suffix = "" if known else " which is empty"
                found.append(FieldError(error.reason, error.field, f"{error.message}: {detail}{suffix}"))
    return found


def _enumerated(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    policy = spec.get("restartPolicy", "Always")
    if policy not in ("Always", "Never", "OnFailure"):
        found.append(unsupported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never")))
    dns = spec.get("dnsPolicy", "ClusterFirst")
    if dns not in ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"):
        allowed = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
        found.append(unsupported(f"{path}.dnsPolicy", dns, allowed))
    system = (spec.get("os") or {}).get("name")
    if system is not None and system not in ("linux", "windows"):
        found.append(unsupported(f"{path}.os", system, ("linux", "windows")))
    return found + security.check_pod(spec, path) + _names(spec, path)


def _names(spec: Json, path: str) -> list[FieldError]:
    """Name servers, host aliases and the conditions that a pod waits for."""
    found: list[FieldError] = []
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and not config:
        detail = "must provide `dnsConfig` when `dnsPolicy` is None"
        found.append(required(f"{path}.dnsConfig", detail))
    for at, address in enumerate((config or {}).get("nameservers") or ()):
        found += names.check_address(address, f"{path}.dnsConfig.nameservers[{at}]")
    for at, alias in enumerate(spec.get("hostAliases") or ()):
        found += names.check_address(alias.get("ip", ""), f"{path}.hostAliases[{at}].ip")
    for at, gate in enumerate(spec.get("readinessGates") or ()):
        name = gate.get("conditionType", "")
        where = f"{path}.readinessGates[{at}].conditionType"
        found += [invalid(where, name, problem) for problem in names.qualified_problems(name)]
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        found.append(forbidden_field(f"{path}.hostNetwork", "when `hostUsers` is false"))
    return found


def _host_ports(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort") != port.get("containerPort"):
                where = f"{path}.containers[{at}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(invalid(where, port.get("hostPort"), detail))
    return found


def _workload(reference: Json, path: str) -> list[FieldError]:
    name, group = reference.get("name", ""), reference.get("podGroup", "")
    found = [invalid(f"{path}.name", name, problem) for problem in names.subdomain_problems(name)]
    found += [invalid(f"{path}.podGroup", group, problem) for problem in names.label_problems(group)]
    replica = reference.get("podGroupReplicaKey")
    if replica:
        found += [invalid(f"{path}.podGroupReplicaKey", replica, problem) for problem in names.label_problems(replica)]
    return found


def _gates(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, gate in enumerate(spec["schedulingGates"]):
        name = gate.get("name", "")
        where = f"{path}.schedulingGates[{at}]"
        found += [invalid(where, name, problem) for problem in names.qualified_problems(name)]
        if name in seen:
            found.append(duplicate(where, name))
        seen.add(name)
    if spec.get("nodeName"):
        found.append(forbidden_field(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found

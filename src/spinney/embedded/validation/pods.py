"""Pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from spinney.api.meta import Json
from spinney.embedded import quantities
from spinney.embedded.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid,
    not_found_field,
    required,
    unsupported,
)
from spinney.embedded.validation import names

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage", "storage", "pods"))
_RANGE = "must be between 1 and 65535, inclusive"


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
    found = names.check_labels(metadata.get("labels"), f"{path}.metadata.labels")
    found += names.check_annotations(metadata.get("annotations"), f"{path}.metadata.annotations")
    return found + check_spec(template.get("spec") or {}, f"{path}.spec")


def check_spec(spec: Json, path: str) -> list[FieldError]:
    """A pod spec."""
    found: list[FieldError] = []
    volumes: dict[str, Json] = {}
    if spec.get("volumes"):
        found += _volumes(spec["volumes"], f"{path}.volumes", volumes)
    containers = spec.get("containers") or ()
    seen: set[str] = set()
    if not containers:
        found.append(required(f"{path}.containers"))
    for at, container in enumerate(containers):
        found += _container(container, f"{path}.containers[{at}]", volumes, seen)
    for at, container in enumerate(spec.get("initContainers") or ()):
        found += _container(container, f"{path}.initContainers[{at}]", volumes, seen)
        if container.get("restartPolicy") is None:
            detail = "may not be set for init containers without restartPolicy=Always"
            for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(key) is not None:
                    found.append(forbidden_field(f"{path}.initContainers[{at}].{key}", detail))
        if container.get("restartPolicy") not in (None, "Always"):
            found.append(
                unsupported(f"{path}.initContainers[{at}].restartPolicy", container["restartPolicy"], ("Always",))
            )
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
        found += _tolerations(spec["tolerations"], f"{path}.tolerations")
    if spec.get("affinity"):
        found += _affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("topologySpreadConstraints"):
        found += _spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
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
    grace = spec.get("terminationGracePeriodSeconds", 30)
    if grace < 0:
        found.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"))
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


def _container(container: Json, path: str, volumes: dict[str, Json], seen: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    name = container.get("name", "")
    found += names.check_label_name(name, f"{path}.name")
    if name and name in seen:
        found.append(duplicate(f"{path}.name", name))
    seen.add(name)
    image = container.get("image", "")
    if not image:
        found.append(required(f"{path}.image"))
    elif image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    policy = container.get("imagePullPolicy", "Always")
    if policy not in ("Always", "IfNotPresent", "Never"):
        found.append(unsupported(f"{path}.imagePullPolicy", policy, ("Always", "IfNotPresent", "Never")))
    if container.get("ports"):
        found += _ports(container["ports"], f"{path}.ports")
    if container.get("env"):
        found += _env(container["env"], f"{path}.env")
    if container.get("resources"):
        found += check_resources(container["resources"], f"{path}.resources")
    if container.get("volumeMounts"):
        found += _mounts(container["volumeMounts"], f"{path}.volumeMounts", volumes)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            found += _probe(container[probe], f"{path}.{probe}", probe)
    return found


def _ports(ports: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, port in enumerate(ports):
        where = f"{path}[{at}]"
        name = port.get("name")
        if name:
            if len(name) > 15:
                found.append(invalid(f"{where}.name", name, "must be no more than 15 characters"))
            if not names.PORT_NAME.match(name):
                rule = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
                found.append(invalid(f"{where}.name", name, rule))
            elif not any(letter.isalpha() for letter in name):
                found.append(invalid(f"{where}.name", name, "must contain at least one letter (a-z)"))
            if name in seen:
                found.append(duplicate(f"{where}.name", name))
            seen.add(name)
        number = port.get("containerPort", 0)
        if not number:
            found.append(required(f"{where}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(invalid(f"{where}.containerPort", number, _RANGE))
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            found.append(invalid(f"{where}.hostPort", host, _RANGE))
        protocol = port.get("protocol", "")
        if not protocol:
            found.append(required(f"{where}.protocol"))
        elif protocol not in ("SCTP", "TCP", "UDP"):
            found.append(unsupported(f"{where}.protocol", protocol, ("SCTP", "TCP", "UDP")))
    return found


def _env(variables: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, variable in enumerate(variables):
        where = f"{path}[{at}]"
        name = variable.get("name", "")
        if not name:
            found.append(required(f"{where}.name"))
        elif not names.ENV_NAME.match(name):
            rule = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            found.append(invalid(f"{where}.name", name, rule))
        source = variable.get("valueFrom")
        if source is not None:
            if variable.get("value"):
                detail = "may not be specified when `value` is not empty"
                found.append(invalid(f"{where}.valueFrom", "", detail))
            if not any(source.values()):
                detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
                found.append(invalid(f"{where}.valueFrom", "", detail))
    return found


def check_resources(resources: Json, path: str) -> list[FieldError]:
    """Requests and limits of a container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found = [
        invalid(f"{path}.{kind}[{name}]", value, problem)
        for kind, amounts in (("limits", limits), ("requests", requests))
        for name, text in amounts.items()
        for value, problem in _problems(name, text)
    ]
    if found:
        return found
    for name, text in requests.items():
        limit = limits.get(name)
        if limit == text:
            continue
        extended = "/" in name
        if limit is None:
            if extended or name.startswith("hugepages-"):
                found.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        elif extended and quantities.value(text) != quantities.value(limit):
            found.append(invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}"))
        elif quantities.value(text) > quantities.value(limit):
            found.append(invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}"))
    return found


@lru_cache(maxsize=4096)
def _problems(name: str, text: str) -> tuple[tuple[str, str], ...]:
    """What is wrong with an amount of a resource: the value to show, and why."""
    problems = names.qualified_problems(name)
    if problems:
        return tuple((name, problem) for problem in problems)
    if "/" not in name and name not in _NATIVE and not name.startswith(("hugepages-", "requests.", "limits.")):
        return (
            (name, "must be a standard resource type or fully qualified"),
            (name, "must be a standard resource for containers"),
        )
    amount = quantities.value(text)
    if amount < 0:
        return ((text, "must be greater than or equal to 0"),)
    if "/" in name and amount.denominator != 1:
        return ((text, "must be an integer"),)
    return ()


def _volumes(volumes: list[Json], path: str, known: dict[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    for at, volume in enumerate(volumes):
        where = f"{path}[{at}]"
        name = volume.get("name", "")
        found += names.check_label_name(name, f"{where}.name")
        if name in known:
            found.append(duplicate(f"{where}.name", name))
        known[name] = volume
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            for extra in sources[1:]:
                found.append(forbidden_field(f"{where}.{extra}", "may not specify more than 1 volume type"))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            found.append(required(f"{where}.persistentVolumeClaim.claimName"))
        if "hostPath" in volume and not volume["hostPath"].get("path"):
            found.append(required(f"{where}.hostPath.path"))
        if "configMap" in volume and not volume["configMap"].get("name"):
            found.append(required(f"{where}.configMap.name"))
        if "secret" in volume and not volume["secret"].get("secretName"):
            found.append(required(f"{where}.secret.secretName"))
    return found


def _mounts(mounts: list[Json], path: str, volumes: dict[str, Json]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for at, mount in enumerate(mounts):
        where = f"{path}[{at}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(f"{where}.name"))
        elif name not in volumes:
            found.append(not_found_field(f"{where}.name", name))
        if not target:
            found.append(required(f"{where}.mountPath"))
        elif target in seen:
            found.append(invalid(f"{where}.mountPath", target, "must be unique"))
        seen.add(target)
    return found


def _probe(probe: Json, path: str, name: str) -> list[FieldError]:
    found: list[FieldError] = []
    handlers = [key for key in ("exec", "httpGet", "tcpSocket", "grpc") if key in probe]
    if not handlers:
        found.append(required(path, "must specify a handler type"))
    for extra in handlers[1:]:
        found.append(forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type"))
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if probe.get(key, 0) < 0:
            found.append(invalid(f"{path}.{key}", probe[key], "must be greater than or equal to 0"))
    if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        found.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def _tolerations(tolerations: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, toleration in enumerate(tolerations):
        where = f"{path}[{at}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "Equal")
        if key:
            found += [invalid(f"{where}.key", key, problem) for problem in names.qualified_problems(key)]
        elif operator != "Exists":
            found.append(
                invalid(
                    f"{where}.operator",
                    operator,
                    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
                )
            )
        if operator not in ("Equal", "Exists"):
            found.append(unsupported(f"{where}.operator", operator, ("Equal", "Exists")))
        if operator == "Exists" and toleration.get("value"):
            found.append(
                invalid(f"{where}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
            )
        effect = toleration.get("effect", "")
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            found.append(
                invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
            )
        if effect and effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            found.append(unsupported(f"{where}.effect", effect, ("NoExecute", "NoSchedule", "PreferNoSchedule")))
    return found


def _affinity(affinity: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    node = affinity.get("nodeAffinity") or {}
    needed = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    where = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if needed is not None:
        terms = needed.get("nodeSelectorTerms") or ()
        if not terms:
            found.append(required(f"{where}.nodeSelectorTerms", "must have at least one node selector term"))
        for at, term in enumerate(terms):
            found += _node_term(term, f"{where}.nodeSelectorTerms[{at}]")
    for side in ("podAffinity", "podAntiAffinity"):
        terms = (affinity.get(side) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for at, term in enumerate(terms):
            at_path = f"{path}.{side}.requiredDuringSchedulingIgnoredDuringExecution[{at}]"
            if not term.get("topologyKey"):
                found.append(required(f"{at_path}.topologyKey", "can not be empty"))
    return found


def _node_term(term: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, expression in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{at}]"
        operator, values = expression.get("operator", ""), expression.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                found.append(required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(forbidden_field(f"{where}.values", detail))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(required(f"{where}.values", detail))
        else:
            found.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        key = expression.get("key", "")
        found += [invalid(f"{where}.key", key, problem) for problem in names.qualified_problems(key)]
    return found


def _spread(constraints: list[Json], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for at, constraint in enumerate(constraints):
        where = f"{path}[{at}]"
        if constraint.get("maxSkew", 0) <= 0:
            found.append(invalid(f"{where}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
        if not constraint.get("topologyKey"):
            found.append(required(f"{where}.topologyKey", "can not be empty"))
        when = constraint.get("whenUnsatisfiable", "")
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            found.append(unsupported(f"{where}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway")))
    return found


def check_update(new: Json, old: Json) -> list[FieldError]:
    """What an update may not do to a pod."""
    mine, was = new.get("spec") or {}, old.get("spec") or {}
    if mine == was:
        return []
    found: list[FieldError] = []
    for key in ("containers", "initContainers"):
        if len(mine.get(key) or ()) != len(was.get(key) or ()):
            return [*found, forbidden_field(f"spec.{key}", "pod updates may not add or remove containers")]
    found += _deadline_update(mine.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds"))
    found += _toleration_update(mine.get("tolerations") or [], was.get("tolerations") or [])
    found += _gate_update(mine.get("schedulingGates") or [], was.get("schedulingGates") or [])
    masked = _masked(mine, was)
    if was.get("schedulingGates"):
        found += _gated_update(masked, was)
    if masked != was:
        differing = ", ".join(sorted(_differing(masked, was)))
        found.append(
            forbidden_field(
                "spec", f"pod updates may not change fields other than {UPDATABLE}\n  core.PodSpec{{ {differing} }}\n"
            )
        )
    return found


def _differing(mine: Json, was: Json) -> Iterable[str]:
    return (key for key in {**mine, **was} if mine.get(key) != was.get(key))


def _masked(mine: Json, was: Json) -> Json:
    """The new spec with every field that may change put back to what it was."""
    masked = dict(mine)
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        masked.pop(key, None)
        if key in was:
            masked[key] = was[key]
    for key in ("containers", "initContainers"):
        if key in masked:
            masked[key] = [
                {**container, "image": before.get("image")}
                for container, before in zip(masked[key], was.get(key) or (), strict=False)
            ]
    if was.get("terminationGracePeriodSeconds", 0) < 0 and masked.get("terminationGracePeriodSeconds") == 1:
        masked["terminationGracePeriodSeconds"] = was["terminationGracePeriodSeconds"]
    return masked


def _deadline_update(mine: int | None, was: int | None) -> list[FieldError]:
    where = "spec.activeDeadlineSeconds"
    if mine is None:
        detail = "must not update from a positive integer to nil value"
        return [invalid(where, None, detail)] if was is not None else []
    if not 0 <= mine <= 2**31 - 1:
        return [invalid(where, mine, "must be between 0 and 2147483647, inclusive")]
    if was is not None and was < mine:
        return [invalid(where, mine, "must be less than or equal to previous value")]
    return []


def _toleration_update(mine: list[Json], was: list[Json]) -> list[FieldError]:
    def bare(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [bare(toleration) for toleration in mine]
    if any(bare(toleration) not in kept for toleration in was):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", detail)]
    return []


def _gate_update(mine: list[Json], was: list[Json]) -> list[FieldError]:
    before = {gate.get("name") for gate in was}
    return [
        forbidden_field(
            f"spec.schedulingGates[{at}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for at, gate in enumerate(mine)
        if gate.get("name") not in before
    ]


def _gated_update(masked: Json, was: Json) -> list[FieldError]:
    """While gated, node selectors may grow and node affinity may get stricter."""
    found: list[FieldError] = []
    mine, before = masked.get("nodeSelector") or {}, was.get("nodeSelector") or {}
    if mine != before:
        if any(mine.get(key) != value for key, value in before.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            found.append(invalid("spec.nodeSelector", mine, detail))
        _put_back(masked, was, "nodeSelector")
    affinity, earlier = masked.get("affinity") or {}, was.get("affinity") or {}
    if affinity.get("nodeAffinity") != earlier.get("nodeAffinity"):
        rest = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
        if "nodeAffinity" in earlier:
            rest["nodeAffinity"] = earlier["nodeAffinity"]
        if rest or "affinity" in was:
            masked["affinity"] = rest
        else:
            masked.pop("affinity", None)
    return found


def _put_back(masked: Json, was: Json, key: str) -> None:
    masked.pop(key, None)
    if key in was:
        masked[key] = was[key]

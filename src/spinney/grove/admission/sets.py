"""All checks of a PodCliqueSet, in the order of its manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from spinney.api.grove import MOST_REPLICAS
from spinney.api.labels import MNNVL_GROUP
from spinney.api.meta import Json
from spinney.grove.admission import cliques, groups, pod_specs, resource_sharing, syntax, topology, updates
from spinney.grove.admission.problems import Problems
from spinney.grove.model import startup_order
from spinney.grove.model.mnnvl import NO_GROUP

STARTUP_TYPES = frozenset({startup_order.ANY_ORDER, startup_order.IN_ORDER, startup_order.EXPLICIT})
STRATEGIES = frozenset({"RollingRecreate", "OnDelete"})


@dataclass(frozen=True)
class ClusterFacts:
    """What the checks know of the cluster and of the operator's configuration."""

    topology_aware: bool = True
    mnnvl: bool = False
    bindings: topology.Bindings = field(default_factory=dict)


def check_create(pcs: Json, cluster: ClusterFacts) -> Problems:
    """Everything that a new set must satisfy."""
    problems = Problems()
    template = _template(pcs)
    _check_always(pcs, problems)
    groups.check_new_names(str(pcs["metadata"].get("name") or ""), template, "spec.template", problems)
    for position, clique in enumerate(template.get("cliques") or ()):
        pod_spec = (clique.get("spec") or {}).get("podSpec") or {}
        pod_specs.check_new(pod_spec, f"spec.template.cliques[{position}].spec.podSpec", problems)
    topology.check_new(template, "spec.template", problems)
    if cluster.topology_aware:
        topology.check(template, "spec.template", cluster.bindings, problems)
    else:
        topology.check_disabled(template, "spec.template", problems)
    _check_mnnvl(pcs, cluster, problems)
    return problems


def check_update(old: Json, new: Json, cluster: ClusterFacts) -> Problems:
    """Everything that a changed set must satisfy, and what may not change.

    A binding may vanish under a running set: its topology is compared, not looked up again.
    """
    problems = Problems()
    _check_always(new, problems)
    _check_mnnvl(new, cluster, problems)
    updates.check(old, new, problems)
    return problems


def _check_always(pcs: Json, problems: Problems) -> None:
    template = _template(pcs)
    name = str(pcs["metadata"].get("name") or "")
    if name and not syntax.is_subdomain(name):
        problems.invalid("metadata.name", name, syntax.SUBDOMAIN_RULE)
    replicas = (pcs.get("spec") or {}).get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        problems.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
    strategy = ((pcs.get("spec") or {}).get("updateStrategy") or {}).get("type")
    if strategy and strategy not in STRATEGIES:
        problems.unsupported("spec.updateStrategy.type", strategy, STRATEGIES)
    startup = template.get("cliqueStartupType")
    if not startup:
        problems.required("spec.template.cliqueStartupType", f"use one of {', '.join(sorted(STARTUP_TYPES))}")
    elif startup not in STARTUP_TYPES:
        problems.unsupported("spec.template.cliqueStartupType", startup, STARTUP_TYPES)
    pod_specs.check_duration(template.get("terminationDelay"), "spec.template.terminationDelay", problems)
    cliques.check(template, "spec.template.cliques", problems)
    groups.check(template, "spec.template.podCliqueScalingGroups", problems)
    groups.check_name_lengths(name, template, "spec.template", problems)
    _check_pods(pcs, problems)
    resource_sharing.check(template, "spec.template", problems)
    topology.check_shape(template, "spec.template", problems)


def pods_of(pcs: Json) -> int:
    """How many pods a set makes."""
    replicas = (pcs.get("spec") or {}).get("replicas")
    return max(replicas, 0) * groups.pods_of_replica(_template(pcs)) if isinstance(replicas, int) else 0


def _check_pods(pcs: Json, problems: Problems) -> None:
    """Refuse a set of more pods than a cluster can hold: each of its counts alone may be small enough."""
    pods = pods_of(pcs)
    if pods > MOST_REPLICAS:
        problems.invalid(
            "spec.replicas", pcs["spec"]["replicas"],
            f"the set would have {pods} pods, at most {MOST_REPLICAS} are allowed; "
            "lower the replicas of the set, of its cliques or of its scaling groups",
        )  # fmt: skip


def _check_mnnvl(pcs: Json, cluster: ClusterFacts, problems: Problems) -> None:
    template = _template(pcs)
    owners = [("metadata", pcs["metadata"])]
    for kind in ("podCliqueScalingGroups", "cliques"):
        owners += [(f"spec.template.{kind}[{at}]", owner) for at, owner in enumerate(template.get(kind) or ())]
    for path, owner in owners:
        group = (owner.get("annotations") or {}).get(MNNVL_GROUP)
        if group is None or group == NO_GROUP:
            continue
        here = f"{path}.annotations[{MNNVL_GROUP}]"
        if not syntax.is_label(group):
            problems.invalid(here, group, f'{syntax.LABEL_RULE}, or "none" to opt out')
        elif not cluster.mnnvl:
            problems.forbidden(
                here,
                "MNNVL is not enabled; set network.autoMNNVLEnabled in the operator's configuration, "
                'or use "none" or no annotation',
            )


def _template(pcs: Json) -> Json:
    template = (pcs.get("spec") or {}).get("template")
    return template if isinstance(template, dict) else {}

"""Checks of a set's cliques: names, counts, start-up order, autoscaling."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any

from spinney.api.meta import Json
from spinney.api.numbers import whole_number
from spinney.grove.admission import pod_specs, syntax
from spinney.grove.admission.problems import Problems
from spinney.grove.model import startup_order


def check(template: Json, path: str, problems: Problems) -> None:
    """Every rule that looks at cliques alone."""
    cliques: list[Json] = template.get("cliques") or []
    if not cliques:
        problems.required(path, "at least one PodClique must be defined; add an entry with a name and a spec")
    names: set[str] = set()
    roles: set[str] = set()
    for position, clique in enumerate(cliques):
        item_path = f"{path}[{position}]"
        check_name(clique.get("name"), names, f"{item_path}.name", "clique", problems)
        _check_metadata(clique, item_path, problems)
        spec: Json = clique.get("spec") or {}
        _check_role(spec.get("roleName"), roles, f"{item_path}.spec.roleName", problems)
        check_counts(spec, f"{item_path}.spec", "leave it out to require all replicas", problems)
        check_scaling(
            spec.get("autoScalingConfig"), spec.get("minAvailable"), spec.get("replicas"),
            f"{item_path}.spec.autoScalingConfig", problems,
        )  # fmt: skip
        check_rollout(clique.get("rollingUpdate"), f"{item_path}.rollingUpdate", problems)
        pod_specs.check(spec.get("podSpec") or {}, f"{item_path}.spec.podSpec", problems)
    if template.get("cliqueStartupType") == startup_order.EXPLICIT:
        _check_order(cliques, path, problems)


def check_name(name: Any, seen: set[str], path: str, what: str, problems: Problems) -> None:
    """A name of a clique or scaling group: there, well-formed, and unique."""
    if not name:
        problems.required(path, f"give the {what} a name that is unique in the set")
    elif not syntax.is_subdomain(str(name)):
        problems.invalid(path, name, syntax.SUBDOMAIN_RULE)
    elif name in seen:
        problems.duplicate(path, name, f"{what} names must be unique in the set; rename one")
    seen.add(str(name))


def _check_role(role: Any, seen: set[str], path: str, problems: Problems) -> None:
    if not role:
        problems.required(path, "name the clique's role, or leave it out to use the clique's name")
    elif role in seen:
        problems.duplicate(path, role, "role names must be unique in the set; rename one")
    seen.add(str(role))


def _check_metadata(owner: Json, path: str, problems: Problems) -> None:
    for key, value in (owner.get("labels") or {}).items():
        if not syntax.is_label_key(key):
            problems.invalid(f"{path}.labels", key, f"not a label key; {syntax.QUALIFIED_RULE}")
        if not syntax.is_label_value(str(value)):
            problems.invalid(f"{path}.labels[{key}]", value, f"not a label value; {syntax.QUALIFIED_RULE}")
    for key in owner.get("annotations") or {}:
        if not syntax.is_label_key(key):
            problems.invalid(f"{path}.annotations", key, f"not an annotation key; {syntax.QUALIFIED_RULE}")


def check_counts(spec: Json, path: str, default: str, problems: Problems) -> None:
    """Replicas and minAvailable of a clique or scaling group; `default` says what leaving out minAvailable means."""
    replicas, minimum = spec.get("replicas"), spec.get("minAvailable")
    if isinstance(replicas, int) and replicas <= 0:
        problems.invalid(f"{path}.replicas", replicas, "must be greater than 0; to run none, scale the set to 0")
    if not isinstance(minimum, int):
        return
    if minimum <= 0:
        problems.invalid(f"{path}.minAvailable", minimum, f"must be greater than 0; {default}")
    if isinstance(replicas, int) and minimum > replicas:
        problems.invalid(
            f"{path}.minAvailable", minimum,
            f"minAvailable must not be greater than replicas ({replicas}); lower it or add replicas",
        )  # fmt: skip


def check_scaling(scaling: Any, minimum: Any, replicas: Any, path: str, problems: Problems) -> None:
    """An autoscaling range that fits the counts it scales."""
    if not isinstance(scaling, dict):
        return
    low, high = scaling.get("minReplicas"), scaling.get("maxReplicas")
    if high is None:
        problems.required(f"{path}.maxReplicas", "say how far it may scale out")
        return
    if low is not None and minimum is not None and low < minimum:
        problems.invalid(
            f"{path}.minReplicas", low, f"must be greater than or equal to minAvailable ({minimum}); raise it"
        )
    if low is not None and high < low:
        problems.invalid(f"{path}.maxReplicas", high, f"must be greater than or equal to minReplicas ({low}); raise it")
    if isinstance(replicas, int) and high < replicas:
        problems.invalid(
            f"{path}.maxReplicas", high, f"must be greater than or equal to replicas ({replicas}); raise it"
        )


def check_rollout(rollout: Any, path: str, problems: Problems) -> None:
    """`rollingUpdate`: how many may be away at once, and how long one step may take."""
    if not isinstance(rollout, dict):
        return
    away = rollout.get("maxUnavailable")
    remedy = "use a whole number of at least 1 or a percentage such as 25%"
    if isinstance(away, str):
        number = whole_number(away.removesuffix("%"))
        if not away.endswith("%") or number is None or not 1 <= number <= 100:
            problems.invalid(f"{path}.maxUnavailable", away, remedy)
    elif isinstance(away, int) and away < 1:
        problems.invalid(f"{path}.maxUnavailable", away, remedy)
    pod_specs.check_duration(rollout.get("progressDeadline"), f"{path}.progressDeadline", problems)


def _check_order(cliques: list[Json], path: str, problems: Problems) -> None:
    names = {str(clique.get("name")) for clique in cliques}
    graph: dict[str, list[str]] = {}
    for position, clique in enumerate(cliques):
        name = str(clique.get("name"))
        item_path = f"{path}[{position}].spec.startsAfter"
        parents = [str(parent) for parent in (clique.get("spec") or {}).get("startsAfter") or ()]
        for at, parent in enumerate(parents):
            if not parent:
                problems.required(f"{item_path}[{at}]", "name a clique of this set, or remove the entry")
            elif parent == name:
                problems.invalid(f"{item_path}[{at}]", parent, "a clique cannot start after itself; remove the entry")
            elif parent not in names:
                problems.invalid(
                    f"{item_path}[{at}]", parent, f"no such clique; name one of {', '.join(sorted(names - {name}))}"
                )
            elif parent in parents[:at]:
                problems.duplicate(f"{item_path}[{at}]", parent, "name each clique once")
        graph[name] = [parent for parent in parents if parent in names and parent != name]
    for cycle in cycles(graph):
        problems.forbidden(
            path,
            f"cliques wait for each other: {' -> '.join([*cycle, cycle[0]])}; remove one startsAfter entry of these",
        )


def cycles(graph: dict[str, list[str]]) -> list[list[str]]:
    """Names that wait for each other, cycle by cycle; no name is in two of them."""
    all_cycles: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1][-1:0:-1]
            all_cycles.append(cycle)
            graph = {
                name: [parent for parent in parents if parent not in cycle]
                for name, parents in graph.items()
                if name not in cycle
            }
        else:
            return all_cycles

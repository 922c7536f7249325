"""The PodGroup webhook: refuses invalid trees of subgroups, and text that is no duration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from spinney.api import labels
from spinney.api.kai import MOST_SUBGROUP_LEVELS, PodGroup, PodGroupSpec, SubGroup
from spinney.api.meta import Json, convert
from spinney.api.preemption import why_unusable
from spinney.kube.admission.review import checked
from spinney.kube.runtime import Runtime, Webhook, webhook_rule


def check(spec: PodGroupSpec, creating: bool) -> tuple[list[str], list[str]]:
    """Errors and warnings of a group."""
    errors = _structure(spec)
    if errors:
        return errors, []
    warnings: list[str] = []
    children: dict[str, int] = {}
    for subgroup in spec.sub_groups:
        children[subgroup.parent] = children.get(subgroup.parent, 0) + 1
    if spec.min_sub_group is not None and spec.min_sub_group > children.get("", 0):
        warnings.append(
            f"minSubGroup {spec.min_sub_group} is more than the {children.get('', 0)} subgroups at the root"
        )
    for subgroup in sorted(spec.sub_groups, key=lambda entry: entry.name):
        below = children.get(subgroup.name, 0)
        if below:
            _check_parent(subgroup, below, creating, errors, warnings)
        else:
            _check_leaf(subgroup, errors)
    return errors, warnings


def _check_leaf(subgroup: SubGroup, errors: list[str]) -> None:
    if subgroup.min_sub_group is not None:
        errors.append(f"subgroup {subgroup.name} has no subgroups below it: minSubGroup must not be set")
    elif subgroup.min_member is None:
        errors.append(f"subgroup {subgroup.name} holds pods: minMember must be set")


def _check_parent(subgroup: SubGroup, below: int, creating: bool, errors: list[str], warnings: list[str]) -> None:
    if subgroup.min_member is not None:
        # Groups stored before the rule existed must stay editable.
        (errors if creating else warnings).append(
            f"subgroup {subgroup.name} has subgroups below it: set minSubGroup instead of minMember"
        )
    if subgroup.min_sub_group is not None and subgroup.min_sub_group > below:
        warnings.append(
            f"subgroup {subgroup.name}: minSubGroup {subgroup.min_sub_group} is more than its {below} subgroups"
        )


def _structure(spec: PodGroupSpec) -> list[str]:
    errors: list[str] = []
    if spec.min_member is not None and spec.min_sub_group is not None:
        errors.append("minMember and minSubGroup exclude each other")
    parents: dict[str, str] = {}
    for subgroup in spec.sub_groups:
        if subgroup.min_member is not None and subgroup.min_sub_group is not None:
            errors.append(f"subgroup {subgroup.name}: minMember and minSubGroup exclude each other")
        if subgroup.name in parents:
            errors.append(f"subgroup {subgroup.name} is listed twice")
        parents[subgroup.name] = subgroup.parent
    for name, parent in parents.items():
        if parent and parent not in parents:
            errors.append(f"subgroup {name}: parent {parent} is not a subgroup")
    return errors or _tree_errors(parents)


def _tree_errors(parents: dict[str, str]) -> list[str]:
    """Cycles, and trees that are too deep; in time linear in the number of subgroups."""
    levels: dict[str, int] = {"": 0}
    errors: list[str] = []
    for name in list(parents):
        path: dict[str, None] = {}
        above = name
        while above not in levels and above not in path:
            path[above] = None
            above = parents[above]
        if above in path:
            cycle = [*path][[*path].index(above) :]
            errors += [f"subgroup {member} is its own ancestor" for member in cycle]
            levels |= dict.fromkeys(cycle, 0)
        for member in reversed(path):
            if member not in levels:
                levels[member] = levels[parents[member]] + 1
    if max(levels.values()) > MOST_SUBGROUP_LEVELS:
        errors.append(f"the tree of subgroups has {max(levels.values())} levels, more than {MOST_SUBGROUP_LEVELS}")
    return errors


def duration_errors(spec: PodGroupSpec, old: Json) -> list[str]:
    """Errors of durations that were not stored before: a group that has one must stay editable."""
    errors = []
    for field, annotation, text in (
        ("preemptionDelay", labels.PREEMPTION_DELAY, spec.preemption_delay),
        ("stalenessGracePeriod", labels.STALENESS_GRACE_PERIOD, spec.staleness_grace_period),
    ):
        if text and text != old.get(field) and (why := why_unusable(annotation, text)):
            errors.append(f"spec.{field}: {why}")
    return errors


def review(runtime: Runtime) -> Callable[[Json], Awaitable[Json]]:
    """Review the creation and update of groups."""

    async def answer(request: Json) -> Json:
        group = convert(PodGroup, request["object"])
        old: Json = (request.get("oldObject") or {}).get("spec") or {}
        errors, warnings = check(group.spec, request.get("operation") == "CREATE")
        return checked(request, f"PodGroup {group.name}", errors + duration_errors(group.spec, old), warnings)

    return answer


WEBHOOK = Webhook(
    name="podgroups.validation.kai.scheduler",
    path="/validate-scheduling-run-ai-v2alpha2-podgroup",
    mutating=False,
    review=review,
    rules=(webhook_rule((PodGroup.resource,), "CREATE", "UPDATE"),),
)

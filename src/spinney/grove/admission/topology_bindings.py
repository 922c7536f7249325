"""Whether a ClusterTopologyBinding may be stored."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api.meta import Json
from spinney.grove.admission import syntax
from spinney.grove.admission.problems import Problems


def check(binding: Json, enabled: Iterable[str], topology_aware: Iterable[str]) -> Problems:
    """Unique domains and keys; each scheduler named once, enabled, and able to place by topology."""
    problems = Problems()
    spec = binding.get("spec") or {}
    levels = spec.get("levels") or ()
    if not levels:
        problems.required("spec.levels", "name at least one level, broadest first")
    for field in ("domain", "key"):
        seen: set[str] = set()
        for position, level in enumerate(levels):
            value = str(level.get(field) or "")
            path = f"spec.levels[{position}].{field}"
            if value in seen:
                problems.duplicate(path, value, f"each level needs a {field} of its own; change one")
            seen.add(value)
            if field == "domain" and not syntax.is_topology_domain(value):
                problems.invalid(path, value, "use lower case letters, digits or '-', beginning with a letter")
            if field == "key" and not syntax.is_label_key(value):
                problems.invalid(path, value, f"not a node label key; {syntax.QUALIFIED_RULE}")
    _check_schedulers(spec, set(enabled), set(topology_aware), problems)
    return problems


def _check_schedulers(spec: Json, enabled: set[str], topology_aware: set[str], problems: Problems) -> None:
    seen: set[str] = set()
    for position, bound in enumerate(spec.get("schedulerTopologyBindings") or ()):
        # Upstream reports the field under its older name, and its tests look for that.
        path = f"spec.schedulerTopologyReferences[{position}].schedulerName"
        name = str(bound.get("schedulerName") or "")
        if name in seen:
            problems.duplicate(path, name, "bind each scheduler once")
        elif name not in enabled:
            problems.invalid(
                path, name, f"scheduler backend is not enabled in Grove; enabled: {', '.join(sorted(enabled))}"
            )
        elif name not in topology_aware:
            problems.invalid(
                path, name,
                "scheduler backend does not implement topology-aware scheduling; "
                f"these do: {', '.join(sorted(topology_aware)) or 'none'}",
            )  # fmt: skip
        seen.add(name)
